package apply

import (
	"context"

	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// PrepareDelete finds out what taking the whole set out of the cluster changes.
// It needs nothing but the cluster: no policies, no manifests. The change set is
// to be run with RunOptions.Forget.
func (a *Applier) PrepareDelete(ctx context.Context, state *State) (*ChangeSet, diag.Findings, error) {
	targets, findings, err := a.unread(ctx, state, nil)
	if err != nil || findings.HasErrors() {
		return nil, findings, err
	}
	changes, fs, err := a.examine(ctx, &intent{state: state, scope: state.Scope, cause: "delete", prune: true, targets: targets, withdrawKept: true})
	return changes, append(findings, fs...), err
}
