package load_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-sched/kubectl-sched/policy/load"
)

func TestSources(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"p/a.cue": "package p\n", "p/below/b.cue": "no CUE {", "p/c.yaml": "c: 1\n", "other/d.cue": "package d\n"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got := map[string]string{}
	for _, s := range load.Sources(t.Context(), load.Options{Dir: dir, Paths: []string{"p", "nowhere"}}) {
		got[s.File] = string(s.Data)
	}
	if diff := cmp.Diff(map[string]string{"p/a.cue": "package p\n", "p/below/b.cue": "no CUE {"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
