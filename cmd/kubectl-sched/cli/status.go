package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/kubectl-sched/kubectl-sched/internal/apply"
	"github.com/kubectl-sched/kubectl-sched/internal/report"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
)

func newStatusCommand(a *app) *cobra.Command {
	f := &lookFlags{config: a.newConfigFlags()}
	cmd := &cobra.Command{
		Use:     "status --set NAME",
		Short:   "Show what a set has applied, what drifted, and where pods are",
		GroupID: groupLook,
		Long: "Show the revision of a set that is in force, which fields somebody has changed since,\n" +
			"which running pods are where their placement rules them out now, and where pods are.\n" +
			"For surface admission: of each policy, how many pods it has placed and by which revision,\n" +
			"and how many running pods that it is for are older than it is; while it only observes, how\n" +
			"many it would change. It needs the cluster alone.",
		Example: "  kubectl sched status --set shop\n" +
			"  kubectl sched status --set shop -o json",
		Args: cobra.NoArgs,
		RunE: runE(func([]string) (*statusOptions, error) { return f.toStatus(a) }),
	}
	f.addTo(cmd)
	return cmd
}

type statusOptions struct{ lookOptions }

func (f *lookFlags) toStatus(a *app) (*statusOptions, error) {
	o, err := f.toOptions(a)
	return &statusOptions{o}, err
}

// Run implements options.
func (o *statusOptions) Run(ctx context.Context) error {
	client, state, err := openSet(ctx, o.config, o.set)
	if err != nil {
		return err
	}
	kinds, err := appliedKinds(state)
	if err != nil {
		return err
	}
	applier, err := o.app.applier(client, kinds, state, managerFlag{})
	if err != nil {
		return err
	}
	status, err := applier.Status(ctx, state)
	if err != nil {
		return err
	}
	o.app.printFindings(status.Findings.Sort())
	return report.Status(o.app.Out, o.format, status, o.app.reportOptions(o.app.Out))
}

// appliedKinds returns the table of kinds that the set was applied with; nil for the
// built-in one.
func appliedKinds(state *apply.State) (*workload.Kinds, error) {
	latest := state.Latest()
	if latest == nil || latest.Source.Placement == nil {
		return nil, nil
	}
	kinds, findings := kindTable(latest.Source.Placement)
	if findings.HasErrors() {
		return nil, findings
	}
	return kinds, nil
}
