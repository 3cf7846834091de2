package cli

import (
	"context"

	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
	"github.com/kubectl-sched/kubectl-sched/policy/load"
)

// loader evaluates policies.
type loader func(context.Context, policyOptions) (*policy.Placement, diag.Findings)

// isolated evaluates the policies in a child process that can be killed.
func (a *app) isolated(ctx context.Context, o policyOptions) (*policy.Placement, diag.Findings) {
	return load.Evaluate(ctx, load.Options{Paths: o.paths, AllowRegistry: o.allowRegistry})
}
