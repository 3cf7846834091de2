package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/kubectl-sched/kubectl-sched/internal/report"
)

func newSnapshotShowCommand(a *app) *cobra.Command {
	f := &snapshotShowFlags{}
	cmd := &cobra.Command{
		Use:   "show FILE",
		Short: "Show what is in a snapshot",
		Long: "Show how old a snapshot is, how many objects of each kind are in it, and how full the\n" +
			"nodes of each pool and zone are. The file may be one that was written by hand.",
		Example: "  kubectl sched snapshot show prod-eu.snapshot\n" +
			"  kubectl sched snapshot show prod-eu.snapshot -o json",
		Args: cobra.ExactArgs(1),
		RunE: runE(func(args []string) (*snapshotShowOptions, error) { return f.toOptions(a, args) }),
	}
	cmd.Flags().StringVarP(&f.output, "output", "o", string(report.Text), "Format: text, json or yaml")
	f.ownNames.addTo(cmd.Flags())
	completeValues(cmd, "output", []string{"text", "json", "yaml"})
	return cmd
}

type snapshotShowFlags struct {
	output string
	ownNames
}

type snapshotShowOptions struct {
	app    *app
	file   string
	format report.Format
	names  ownNames
}

func (f *snapshotShowFlags) toOptions(a *app, args []string) (*snapshotShowOptions, error) {
	format, err := report.ParseFormat(f.output, report.Text, report.JSON, report.YAML)
	return &snapshotShowOptions{app: a, file: args[0], format: format, names: f.ownNames}, err
}

// Validate implements options.
func (o *snapshotShowOptions) Validate() error { return nil }

// Run implements options.
func (o *snapshotShowOptions) Run(context.Context) error {
	s, err := readSnapshot(o.file)
	if err != nil {
		return err
	}
	_, options, err := o.names.of(o.app, s)
	if err != nil {
		return err
	}
	return report.Snapshot(o.app.Out, o.format, s, options)
}
