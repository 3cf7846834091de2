package profile_test

import (
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/kubectl-sched/kubectl-sched/compiler/profile"
	"github.com/kubectl-sched/kubectl-sched/test/golden"
)

// TestCheck checks each *.yaml of testdata/*.txtar and compares the findings with
// "want"; UPDATE=1 writes that anew.
func TestCheck(t *testing.T) {
	t.Parallel()
	golden.Run(t, func(t *testing.T, input *txtar.Archive) []txtar.File {
		text := ""
		for _, f := range input.Files {
			if f.Name == "want" {
				continue
			}
			for _, finding := range profile.Check(f.Name, f.Data) {
				text += string(finding.Severity) + " " + finding.Rule + " " + finding.String() + "\n"
			}
		}
		return golden.Result("want", text)
	})
}

// FuzzCheck holds that no text of a stranger's breaks the check, and that what has
// findings has positions in it.
func FuzzCheck(f *testing.F) {
	f.Add([]byte("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n- schedulerName: x\n  pluginConfig:\n  - name: Gang\n    args: {timeout: 2m}\n"))
	f.Add([]byte("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles: [{plugins: {bind: {enabled: [{name: A}]}}}]\nextenders: [{urlPrefix: ':'}]\n"))
	f.Add([]byte(`{"apiVersion":"kubescheduler.config.k8s.io/v1","kind":"KubeSchedulerConfiguration","profiles":[{"pluginConfig":[{"name":"NodeResourcesFit","args":{"scoringStrategy":{"resources":4}}}]}]}`))
	f.Add([]byte("a: &a [*a]\n"))
	f.Add([]byte("- - -\n---\nb\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, finding := range profile.Check("c.yaml", data) {
			if finding.Range.Start.File != "c.yaml" || finding.Message == "" || finding.Rule == "" {
				t.Errorf("a finding without a place or a word: %+v", finding)
			}
		}
	})
}

func TestFragments(t *testing.T) {
	t.Parallel()
	named := func(names ...string) []any {
		var out []any
		for _, n := range names {
			out = append(out, map[string]any{"name": n})
		}
		return out
	}
	// What Configuration sees to, or another wish may mend, is no problem.
	for name, fragment := range map[string]map[string]any{
		"a binder":             {"plugins": map[string]any{"bind": map[string]any{"enabled": named("NodeAffinity")}}},
		"arguments of another": {"pluginConfig": []any{map[string]any{"name": "Gang", "args": map[string]any{"timeout": "2m"}}}},
	} {
		for _, p := range profile.CheckFragment(fragment) {
			if p.Rule != "scheduler/wrong-point" { // NodeAffinity binds nothing.
				t.Errorf("%s: %+v", name, p)
			}
		}
	}
	problems := profile.CheckFragment(map[string]any{"pluginConfig": []any{map[string]any{"name": "Gang", "args": map[string]any{"timeout": "soon"}}}})
	if len(problems) != 1 || len(problems[0].Path) != 4 || problems[0].Path[3] != "timeout" {
		t.Errorf("problems are %+v", problems)
	}
}
