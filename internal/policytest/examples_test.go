package policytest_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/kubectl-sched/kubectl-sched/internal/policytest"
	"github.com/kubectl-sched/kubectl-sched/policy/load"
)

// TestExamples runs the tests that stand beside the examples.
func TestExamples(t *testing.T) {
	t.Parallel()
	folders, err := filepath.Glob("../../examples/*/placement/tests.cue")
	if err != nil || len(folders) < 3 {
		t.Fatalf("%d examples have tests (%v)", len(folders), err)
	}
	for _, file := range folders {
		dir, err := filepath.Abs(filepath.Dir(filepath.Dir(file)))
		if err != nil {
			t.Fatal(err)
		}
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			placement, findings := load.Evaluate(t.Context(), load.Options{Dir: dir, Paths: []string{"placement"}})
			if len(findings) > 0 {
				t.Fatal(findings)
			}
			report, err := policytest.Run(t.Context(), policytest.Options{
				Placement: placement, Dir: dir, Now: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC),
			})
			if err != nil {
				t.Fatal(err)
			}
			if len(report.Results) == 0 {
				t.Fatal("no test was run")
			}
			for _, r := range report.Results {
				if !r.Passed() {
					t.Errorf("%s: %v%v", r.Name, r.Errors, r.Failures)
				}
			}
		})
	}
}
