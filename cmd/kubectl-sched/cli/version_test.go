package cli

import (
	"bytes"
	"runtime/debug"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-sched/kubectl-sched/internal/report"
)

func TestVersion(t *testing.T) {
	t.Parallel()
	info := &debug.BuildInfo{
		Main: debug.Module{Version: "v0.3.0"},
		Deps: []*debug.Module{{Path: "k8s.io/api", Version: "v0.37.2"}, {Path: "cuelang.org/go", Version: "v0.17.1"}},
		Settings: []debug.BuildSetting{
			{Key: "vcs.revision", Value: "abc123"},
			{Key: "vcs.modified", Value: "false"},
		},
	}
	var out bytes.Buffer
	o := &versionOptions{out: &out, format: report.Text, info: func() (*debug.BuildInfo, bool) { return info, true }}
	if err := o.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := "Client Version: v0.3.0\nKubernetes Version: v1.37.2\nCUE Version: v0.17.1\nSchema Version: v0.1.0 (CUE language v0.15.0)\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	v := versionsOf(info, true)
	if v.ClientVersion.GitCommit != "abc123" || v.ClientVersion.GitTreeState != "clean" {
		t.Errorf("got %+v", v.ClientVersion)
	}
	v.ClientVersion.released(Release{Version: "v0.4.0", Commit: "def456"})
	if v.ClientVersion.GitVersion != "v0.4.0" || v.ClientVersion.GitCommit != "def456" {
		t.Errorf("a release is told by what the linker set, not as %+v", v.ClientVersion)
	}
	if v := versionsOf(nil, false); v.KubernetesVersion != unknownVersion {
		t.Errorf("without build information: %+v", v)
	}
}
