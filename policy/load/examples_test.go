package load_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/kubectl-sched/kubectl-sched/policy/load"
)

// TestExamples loads every example where it stands, inside a module, and as a
// copy outside of any.
func TestExamples(t *testing.T) {
	t.Parallel()
	dirs, err := filepath.Glob("../../examples/*/placement")
	if err != nil || len(dirs) < 8 {
		t.Fatalf("examples: %v, %v", dirs, err)
	}
	for _, dir := range dirs {
		t.Run(filepath.Base(filepath.Dir(dir)), func(t *testing.T) {
			t.Parallel()
			outside := filepath.Join(t.TempDir(), "placement")
			if err := os.CopyFS(outside, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			for _, path := range []string{dir, outside} {
				p, findings := load.Evaluate(context.Background(), load.Options{Paths: []string{path}})
				if len(findings) > 0 {
					t.Fatalf("%s:\n%v", path, findings)
				}
				if len(p.Policies) == 0 {
					t.Errorf("%s: no policies", path)
				}
			}
		})
	}
}

// TestOwnRepository holds that the schema's own folder is no document, and that
// examples are checked by the schema of this build.
func TestOwnRepository(t *testing.T) {
	t.Parallel()
	_, findings := load.Evaluate(context.Background(), load.Options{Paths: []string{"..", "../../examples/nightly-batch"}})
	for _, f := range findings {
		if f.Rule != "input/import" && f.Rule != "input/syntax" {
			continue
		}
		t.Errorf("got %s %v", f.Rule, f)
	}
}
