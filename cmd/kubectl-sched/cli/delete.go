package cli

import (
	"context"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/kubectl-sched/kubectl-sched/internal/apply"
	"github.com/kubectl-sched/kubectl-sched/internal/report"
)

type deleteFlags struct {
	setFlags
	runFlags
	output string
	config *genericclioptions.ConfigFlags
}

func newDeleteCommand(a *app) *cobra.Command {
	f := &deleteFlags{config: a.newConfigFlags()}
	cmd := &cobra.Command{
		Use:     "delete --set NAME",
		Short:   "Take a set out of the cluster",
		GroupID: groupApply,
		Long: "Take every field of the set out of the workloads, put back what was there before, and\n" +
			"delete the objects, taints and records of the set. The workloads themselves stay.\n" +
			"Neither the policies nor anything else of ours is needed.",
		Example: "  kubectl sched delete --set shop --dry-run=server\n" +
			"  kubectl sched delete --set shop",
		Args: cobra.NoArgs,
		RunE: runE(func([]string) (*deleteOptions, error) { return f.toOptions(a) }),
	}
	f.setFlags.addTo(cmd.Flags())
	f.runFlags.addTo(cmd.Flags())
	f.config.AddFlags(cmd.Flags())
	cmd.Flags().StringVarP(&f.output, "output", "o", string(report.Text), "Format: text, json or yaml")
	completeDryRun(cmd)
	completeValues(cmd, "output", []string{"text", "json", "yaml"})
	return cmd
}

type deleteOptions struct {
	app    *app
	set    apply.Set
	format report.Format
	run    runFlags
	config *genericclioptions.ConfigFlags
}

func (f *deleteFlags) toOptions(a *app) (*deleteOptions, error) {
	set, err := f.setFlags.toOptions()
	if err != nil {
		return nil, err
	}
	format, err := report.ParseFormat(f.output, report.Text, report.JSON, report.YAML)
	if err != nil {
		return nil, err
	}
	return &deleteOptions{app: a, set: set, format: format, run: f.runFlags, config: f.config}, nil
}

// Validate implements options.
func (o *deleteOptions) Validate() error { return o.run.validate() }

// Run implements options.
func (o *deleteOptions) Run(ctx context.Context) error {
	client, state, err := openSet(ctx, o.config, o.set)
	if err != nil {
		return err
	}
	applier, err := o.app.applier(client, nil, state, o.run.managerFlag)
	if err != nil {
		return err
	}
	applier.ForceConflicts, applier.ClientOnly = o.run.force, o.run.dryRun == dryRunClient
	changes, findings, err := applier.PrepareDelete(ctx, state)
	if err != nil || findings.HasErrors() {
		return o.app.stop(findings, err)
	}
	o.app.printFindings(findings.Sort())
	r := &liveRun{app: o.app, applier: applier, flags: o.run, format: o.format}
	return r.run(ctx, changes, apply.RunOptions{Forget: true})
}
