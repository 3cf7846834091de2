package cli

import (
	"context"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/kubectl-sched/kubectl-sched/internal/apply"
	"github.com/kubectl-sched/kubectl-sched/internal/report"
)

// lookFlags are the flags of the verbs that look at a set.
type lookFlags struct {
	setFlags
	config *genericclioptions.ConfigFlags
	output string
}

func (f *lookFlags) addTo(cmd *cobra.Command) {
	f.setFlags.addTo(cmd.Flags())
	f.config.AddFlags(cmd.Flags())
	cmd.Flags().StringVarP(&f.output, "output", "o", string(report.Text), "Format: text, json or yaml")
	completeValues(cmd, "output", []string{"text", "json", "yaml"})
}

func newHistoryCommand(a *app) *cobra.Command {
	f := &lookFlags{config: a.newConfigFlags()}
	cmd := &cobra.Command{
		Use:     "history --set NAME",
		Short:   "List the revisions of a set",
		GroupID: groupLook,
		Long: "List the revisions of a set that are kept, the oldest first: when each was applied, by\n" +
			"whom, whether its run came to its end, and how much is in it.",
		Example: "  kubectl sched history --set shop",
		Args:    cobra.NoArgs,
		RunE:    runE(func([]string) (*historyOptions, error) { return f.toHistory(a) }),
	}
	f.addTo(cmd)
	return cmd
}

type historyOptions struct{ lookOptions }

// lookOptions are resolved lookFlags.
type lookOptions struct {
	app    *app
	set    apply.Set
	config *genericclioptions.ConfigFlags
	format report.Format
}

func (f *lookFlags) toOptions(a *app) (lookOptions, error) {
	set, err := f.setFlags.toOptions()
	if err != nil {
		return lookOptions{}, err
	}
	format, err := report.ParseFormat(f.output, report.Text, report.JSON, report.YAML)
	if err != nil {
		return lookOptions{}, err
	}
	return lookOptions{app: a, set: set, config: f.config, format: format}, nil
}

func (f *lookFlags) toHistory(a *app) (*historyOptions, error) {
	o, err := f.toOptions(a)
	return &historyOptions{o}, err
}

// Validate implements options.
func (o *lookOptions) Validate() error { return nil }

// Run implements options.
func (o *historyOptions) Run(ctx context.Context) error {
	_, state, err := openSet(ctx, o.config, o.set)
	if err != nil {
		return err
	}
	return report.History(o.app.Out, o.format, state, o.app.reportOptions(o.app.Out))
}
