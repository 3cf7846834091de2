package cli

import (
	"context"
	"fmt"

	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
	"github.com/kubectl-sched/kubectl-sched/policy/load"
)

// loader evaluates policies, as load.Evaluate does.
type loader func(context.Context, policyOptions) (*policy.Placement, diag.Findings)

// isolated evaluates the policies in a child process that can be killed: this
// program again, as the hidden command of newEvaluateCommand.
func (a *app) isolated(ctx context.Context, o policyOptions) (*policy.Placement, diag.Findings) {
	self, err := a.executable()
	if err != nil {
		return nil, diag.Findings{{Rule: "input/isolation", Severity: diag.Error, Message: fmt.Sprintf("find this program, to evaluate policies in a process of their own: %v", err)}}
	}
	return load.Isolated(ctx,
		load.Options{Paths: o.paths, AllowRegistry: o.allowRegistry, Replace: o.replace},
		load.Limits{Timeout: o.timeout, Memory: uint64(o.memory)},
		[]string{self, evaluateCommand})
}
