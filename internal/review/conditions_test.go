package review_test

import (
	"testing"

	"github.com/kubectl-sched/kubectl-sched/internal/review"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

func TestConditions(t *testing.T) {
	t.Parallel()
	r := &review.Review{
		Findings: diag.Findings{{Severity: diag.Warning}},
		Sections: []review.Section{{
			Restarts: review.Restarts{Workloads: []string{"Deployment a/b"}, Pods: 5},
			Placement: &review.Placement{
				Pods: 100, Moved: 10, ByTie: 50, Pending: review.Count{Before: 2, After: 2}, NeedsNodes: review.Count{After: 3},
				Skews: []review.Skew{{Asked: true, Before: 1, After: 2}, {Asked: false, Before: 0, After: 9}, {Asked: true, Before: 7, After: 5}},
			},
		}},
	}
	for text, fails := range map[string]bool{
		"pending": false, "needs-nodes": true, "needs-nodes>3": false, "moved": true, "moved>9": true, "moved>10": false, "moved>10%": false, "moved>9.5%": true,
		"restarts": true, "restarts>5": false, "skew>1": true, "skew>2": false, "findings=error": false, "findings=warning": true, "findings=info": true,
	} {
		c, err := review.ParseCondition(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(c.Failed(r)) > 0; got != fails {
			t.Errorf("%s: fails %v, want %v", text, got, fails)
		}
		if c.String() != text {
			t.Errorf("%s is written %s", text, c)
		}
	}
	for _, text := range []string{"", "pendin", "pending>", "pending>x", "pending>-1", "pending>1.5", "pending>1%", "skew", "skew>1%", "findings", "findings>1", "findings=", "findings=off", "moved>1e3", "moved>NaN", "moved>Inf", "moved=1", "moved>1_0", "moved> 1"} {
		if c, err := review.ParseCondition(text); err == nil {
			t.Errorf("%q is taken for %s", text, c)
		}
	}
}
