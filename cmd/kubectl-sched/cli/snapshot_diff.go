package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/kubectl-sched/kubectl-sched/internal/cluster/snapshot"
	"github.com/kubectl-sched/kubectl-sched/internal/report"
)

func newSnapshotDiffCommand(a *app) *cobra.Command {
	f := &snapshotDiffFlags{}
	cmd := &cobra.Command{
		Use:   "diff FILE FILE",
		Short: "Show what changed between two snapshots",
		Long: "Show what changed from one snapshot to another and matters to scheduling: nodes that came,\n" +
			"went or changed, pods by their workloads, and everything else field by field. The exit code\n" +
			"is 0 without and 1 with differences, and above 1 on errors.",
		Example: "  kubectl sched snapshot diff monday.snapshot friday.snapshot\n" +
			"  kubectl sched snapshot diff monday.snapshot friday.snapshot -o json",
		Args: cobra.ExactArgs(2),
		RunE: runE(func(args []string) (*snapshotDiffOptions, error) { return f.toOptions(a, args) }),
	}
	cmd.Flags().StringVarP(&f.output, "output", "o", string(report.Text), "Format: text, json or yaml")
	f.ownNames.addTo(cmd.Flags())
	completeValues(cmd, "output", []string{"text", "json", "yaml"})
	return cmd
}

type snapshotDiffFlags struct {
	output string
	ownNames
}

type snapshotDiffOptions struct {
	app           *app
	before, after string
	format        report.Format
	names         ownNames
}

func (f *snapshotDiffFlags) toOptions(a *app, args []string) (*snapshotDiffOptions, error) {
	format, err := report.ParseFormat(f.output, report.Text, report.JSON, report.YAML)
	return &snapshotDiffOptions{app: a, before: args[0], after: args[1], format: format, names: f.ownNames}, err
}

// Validate implements options.
func (o *snapshotDiffOptions) Validate() error { return nil }

// Run implements options.
func (o *snapshotDiffOptions) Run(context.Context) error {
	before, err := readSnapshot(o.before)
	if err != nil {
		return err
	}
	after, err := readSnapshot(o.after)
	if err != nil {
		return err
	}
	difference, err := snapshot.Diff(before, after)
	if err != nil {
		return err
	}
	_, options, err := o.names.of(o.app, after)
	if err != nil {
		return err
	}
	if err := report.SnapshotDiff(o.app.Out, o.format, difference, options); err != nil {
		return err
	}
	if len(difference.Changes) > 0 {
		return exitError{code: exitFindings}
	}
	return nil
}
