package cli_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-sched/kubectl-sched/cmd/kubectl-sched/cli"
	"github.com/kubectl-sched/kubectl-sched/internal/cluster/anonymize"
	"github.com/kubectl-sched/kubectl-sched/internal/cluster/capture/capturetest"
	"github.com/kubectl-sched/kubectl-sched/internal/cluster/snapshot"
)

// snapshotRig is a cluster that can only be listed, and a folder to write to.
type snapshotRig struct {
	t               *testing.T
	dir, kubeconfig string
}

func newSnapshotRig(t *testing.T, server *capturetest.Server) snapshotRig {
	t.Helper()
	s := httptest.NewServer(server)
	t.Cleanup(s.Close)
	dir := t.TempDir()
	rig := snapshotRig{t: t, dir: dir, kubeconfig: filepath.Join(dir, "config")}
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: prod\ncontexts: [{name: prod, context: {cluster: c}}, {name: other, context: {cluster: c}}]\nclusters: [{name: c, cluster: {server: %q}}]\n", s.URL)
	if err := os.WriteFile(rig.kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return rig
}

func (r snapshotRig) path(name string) string { return filepath.Join(r.dir, name) }

// run runs the verb and returns its exit code and what it printed.
func (r snapshotRig) run(args ...string) (code int, out, errOut string) {
	var stdout, stderr bytes.Buffer
	code = cli.Main(append([]string{"snapshot", "--kubeconfig", r.kubeconfig}, args...), genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &stdout, ErrOut: &stderr}, cli.Release{})
	return code, stdout.String(), stderr.String()
}

func (r snapshotRig) read(name string) *snapshot.Snapshot {
	r.t.Helper()
	s, err := snapshot.ReadFile(r.path(name), snapshot.ReadOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

func TestSnapshotIsWritten(t *testing.T) {
	t.Parallel()
	r := newSnapshotRig(t, &capturetest.Server{Resources: capturetest.Large(4, 90)})
	code, out, errOut := r.run("-o", r.path("a.snapshot"))
	if code != 0 || !regexp.MustCompile(`4 nodes, 90 pods, [1-9][0-9]* kB\n`).MatchString(out) || errOut != "" {
		t.Fatalf("exit code %d\n%s%s", code, out, errOut)
	}
	if code, _, errOut := r.run("-o", r.path("b.yaml"), "--context", "other"); code != 0 {
		t.Fatal(errOut)
	}
	a, b := r.read("a.snapshot"), r.read("b.yaml")
	if a.Cluster != "prod" || b.Cluster != "other" {
		t.Errorf("clusters %q and %q", a.Cluster, b.Cluster)
	}
	d, err := snapshot.Diff(a, b)
	if err != nil {
		t.Fatal(err)
	}
	// Reading a text adds what every cluster has and this one does not list.
	d.Changes = slices.DeleteFunc(d.Changes, func(c snapshot.Change) bool { return c.Kind == "PriorityClass" })
	if len(d.Changes) > 0 {
		t.Errorf("as text it is another one: %v", d.Changes)
	}
	for _, name := range []string{"a.snapshot", "b.yaml"} {
		info, err := os.Stat(r.path(name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, %v", name, info.Mode(), err)
		}
	}
}

func TestSnapshotIsAnonymised(t *testing.T) {
	t.Parallel()
	r := newSnapshotRig(t, &capturetest.Server{Resources: capturetest.Large(4, 90)})
	for _, name := range []string{"a.yaml", "b.yaml"} {
		code, out, errOut := r.run("-o", r.path(name), "--anonymize", "--names", r.path("words"))
		if code != 0 || !strings.Contains(strings.Join(strings.Fields(out), " "), "which you should not give away") {
			t.Fatalf("exit code %d\n%s%s", code, out, errOut)
		}
	}
	if info, err := os.Stat(r.path("words")); err != nil || info.Mode().Perm() != fs.FileMode(0o600) {
		t.Errorf("the names: %v %v", info, err)
	}
	a, b := r.read("a.yaml"), r.read("b.yaml")
	if d, err := snapshot.Diff(a, b); err != nil || len(d.Changes) > 0 || !a.Anonymized {
		t.Errorf("with the same names it is another one: %v %v", d, err)
	}
	text, err := os.ReadFile(r.path("a.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"team-", "app-0", "node-0", "example.com", "prod"} {
		if bytes.Contains(text, []byte(word)) {
			t.Errorf("%q is left", word)
		}
	}
	f, err := os.Open(r.path("words"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	names, err := anonymize.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	if original, ok := names.Original(a.Nodes[0].Name); !ok || !strings.HasPrefix(original, "node-0") {
		t.Errorf("the first node was %q", original)
	}
	if code, _, errOut := r.run("-o", r.path("c.snapshot"), "--anonymize"); code != 0 {
		t.Fatal(errOut)
	}
	if _, err := os.Stat(r.path("c.snapshot.names")); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(r.path("words"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, errOut := r.run("-o", r.path("d.snapshot"), "--anonymize", "--names", r.path("words")); code != 2 || !strings.Contains(errOut, "read names") {
		t.Errorf("exit code %d: %s", code, errOut)
	}
}

// TestSnapshotLeavesTheOldOne holds that a capture that fails leaves the file that
// is there, and no other.
func TestSnapshotLeavesTheOldOne(t *testing.T) {
	t.Parallel()
	r := newSnapshotRig(t, &capturetest.Server{Resources: capturetest.Large(4, 90), Refuse: func(resource string, _ int) (int, metav1.Status) {
		if resource == "pods" {
			return 403, capturetest.Forbidden(resource)
		}
		return 0, metav1.Status{}
	}})
	if err := os.WriteFile(r.path("a.snapshot"), []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, errOut := r.run("-o", r.path("a.snapshot"), "--anonymize")
	if code != 2 || !strings.Contains(errOut, "list pods") {
		t.Errorf("exit code %d: %s", code, errOut)
	}
	files, err := filepath.Glob(r.path("*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 2 { // the kubeconfig besides
		t.Errorf("there are %v", files)
	}
	if text, err := os.ReadFile(r.path("a.snapshot")); err != nil || string(text) != "old" {
		t.Errorf("it is now %q, %v", text, err)
	}
}
