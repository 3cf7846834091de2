package load

import (
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// Check returns what Evaluate would find wrong with a Placement beyond what the
// schema says, for one that was made by a program and has no file yet.
func Check(p *policy.Placement) diag.Findings {
	return validate(&merged{Placement: p}).findings.Sort()
}
