package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/kubectl-sched/kubectl-sched/internal/apply"
	"github.com/kubectl-sched/kubectl-sched/internal/report"
)

type undoFlags struct {
	setFlags
	runFlags
	output string
	config *genericclioptions.ConfigFlags
	to     int
}

func newUndoCommand(a *app) *cobra.Command {
	f := &undoFlags{config: a.newConfigFlags()}
	cmd := &cobra.Command{
		Use:     "undo --set NAME [--to-revision N]",
		Short:   "Go back to an earlier revision of a set",
		GroupID: groupApply,
		Long: "Write the fields of an earlier revision again, as a new revision, and withdraw what later\n" +
			"ones added. Without --to-revision it goes back to the last complete revision before the\n" +
			"newest. Objects that Argo CD or Flux keep are refused: what to revert in git is said.",
		Example: "  kubectl sched undo --set shop\n" +
			"  kubectl sched undo --set shop --to-revision 3 --wait",
		Args: cobra.NoArgs,
		RunE: runE(func([]string) (*undoOptions, error) { return f.toOptions(a) }),
	}
	f.setFlags.addTo(cmd.Flags())
	f.runFlags.addTo(cmd.Flags())
	cmd.Flags().IntVar(&f.to, "to-revision", 0, "Revision to go back to; 0 for the last complete one before the newest")
	f.config.AddFlags(cmd.Flags())
	cmd.Flags().StringVarP(&f.output, "output", "o", string(report.Text), "Format: text, json or yaml")
	completeDryRun(cmd)
	completeValues(cmd, "output", []string{"text", "json", "yaml"})
	return cmd
}

type undoOptions struct {
	app    *app
	set    apply.Set
	format report.Format
	run    runFlags
	config *genericclioptions.ConfigFlags
	to     int
}

func (f *undoFlags) toOptions(a *app) (*undoOptions, error) {
	set, err := f.setFlags.toOptions()
	if err != nil {
		return nil, err
	}
	format, err := report.ParseFormat(f.output, report.Text, report.JSON, report.YAML)
	if err != nil {
		return nil, err
	}
	return &undoOptions{app: a, set: set, format: format, run: f.runFlags, config: f.config, to: f.to}, nil
}

// Validate implements options.
func (o *undoOptions) Validate() error {
	if o.to < 0 {
		return fmt.Errorf("--to-revision must not be below 0, not %d", o.to)
	}
	return o.run.validate()
}

// Run implements options.
func (o *undoOptions) Run(ctx context.Context) error {
	client, state, err := openSet(ctx, o.config, o.set)
	if err != nil {
		return err
	}
	to, err := state.UndoTarget(o.to)
	if err != nil {
		return err
	}
	applier, err := o.app.applier(client, nil, state, o.run.managerFlag)
	if err != nil {
		return err
	}
	applier.ForceConflicts, applier.ClientOnly = o.run.force, o.run.dryRun == dryRunClient
	changes, findings, err := applier.PrepareUndo(ctx, state, to)
	if err != nil || findings.HasErrors() {
		return o.app.stop(findings, err)
	}
	o.app.printFindings(findings.Sort())
	r := &liveRun{app: o.app, applier: applier, flags: o.run, format: o.format, pools: recordedPools(to)}
	return r.run(ctx, changes, apply.RunOptions{})
}

// recordedPools names the pools of the nodes that are in a revision: without the
// policies, no others are known.
func recordedPools(r *apply.Revision) map[string]string {
	pools := map[string]string{}
	for _, n := range r.Nodes {
		pools[n.Name] = n.Pool
	}
	return pools
}
