package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/kubectl-sched/kubectl-sched/internal/cluster"
	"github.com/kubectl-sched/kubectl-sched/internal/gating"
	"github.com/kubectl-sched/kubectl-sched/internal/report"
)

func newGatesCommand(a *app) *cobra.Command {
	return newGroupCommand(&cobra.Command{
		Use:     "gates",
		Short:   "List what pods wait for, approve or deny it",
		GroupID: groupLook,
		Long: "Scheduling gates hold a pod back until something is there: peers, an object, room in a\n" +
			"quota, a time, or somebody's approval. The bundled scheduler opens the gates of kubectl\n" +
			"sched, and leaves everybody else's alone.",
		Example: "  kubectl sched gates list -A\n" +
			"  kubectl sched gates approve train.approval -l app=train -n ml",
	}, newGatesListCommand(a), newGatesDecideCommand(a, false), newGatesDecideCommand(a, true))
}

// podFlags say which pods a verb is about.
type podFlags struct {
	config        *genericclioptions.ConfigFlags
	selector      string
	allNamespaces bool
}

func (f *podFlags) addTo(cmd *cobra.Command) {
	f.config.AddFlags(cmd.Flags())
	cmd.Flags().StringVarP(&f.selector, "selector", "l", "", "Labels of the pods (app=web)")
}

// toQuery returns which pods are meant; with names, those of them.
func (f *podFlags) toQuery(names []string) (gating.Query, error) {
	q := gating.Query{Names: names}
	var err error
	if f.selector != "" {
		if q.Selector, err = labels.Parse(f.selector); err != nil {
			return q, fmt.Errorf("--selector: %w", err)
		}
	}
	if f.allNamespaces {
		q.Namespace = metav1.NamespaceAll
		return q, nil
	}
	q.Namespace, _, err = f.config.ToRawKubeConfigLoader().Namespace()
	return q, err
}

func newGatesListCommand(a *app) *cobra.Command {
	f := &gatesListFlags{podFlags: podFlags{config: a.newConfigFlags()}}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the gates that hold pods back, since when and why",
		Long: "List the scheduling gates that hold pods back: of each, how long it has been there, and\n" +
			"what the bundled scheduler says it waits for. Gates that are not of kubectl sched are\n" +
			"listed with who put them in.",
		Example: "  kubectl sched gates list -n ml\n" +
			"  kubectl sched gates list -A -o json",
		Args: cobra.NoArgs,
		RunE: runE(func([]string) (*gatesListOptions, error) { return f.toOptions(a) }),
	}
	f.addTo(cmd)
	cmd.Flags().BoolVarP(&f.allNamespaces, "all-namespaces", "A", false, "In all namespaces")
	cmd.Flags().StringVarP(&f.output, "output", "o", string(report.Text), "Format: text, json or yaml")
	completeValues(cmd, "output", []string{"text", "json", "yaml"})
	return cmd
}

type gatesListFlags struct {
	podFlags
	output string
}

type gatesListOptions struct {
	app    *app
	config *genericclioptions.ConfigFlags
	query  gating.Query
	all    bool
	format report.Format
}

func (f *gatesListFlags) toOptions(a *app) (*gatesListOptions, error) {
	format, err := report.ParseFormat(f.output, report.Text, report.JSON, report.YAML)
	if err != nil {
		return nil, err
	}
	query, err := f.toQuery(nil)
	return &gatesListOptions{app: a, config: f.config, query: query, all: f.allNamespaces, format: format}, err
}

// Validate implements options.
func (o *gatesListOptions) Validate() error { return nil }

// Run implements options.
func (o *gatesListOptions) Run(ctx context.Context) error {
	client, err := connectTo(o.config)
	if err != nil {
		return err
	}
	waits, findings, err := gating.List(ctx, client, o.query)
	if err != nil {
		return err
	}
	o.app.printFindings(findings)
	if len(waits) == 0 && o.format == report.Text {
		o.app.say(o.app.ErrOut, "No gate holds a pod back.")
		return nil
	}
	return report.Gates(o.app.Out, o.format, waits, o.all, o.app.reportOptions(o.app.Out))
}

func newGatesDecideCommand(a *app, deny bool) *cobra.Command {
	verb, past := "approve", "approved"
	if deny {
		verb, past = "deny", "denied"
	}
	f := &gatesDecideFlags{podFlags: podFlags{config: a.newConfigFlags()}, deny: deny, past: past}
	cmd := &cobra.Command{
		Use:   verb + " GATE (POD ... | -l SELECTOR | --all)",
		Short: fmt.Sprintf("%s a gate of pods that wait for it", map[bool]string{false: "Approve", true: "Deny"}[deny]),
		Long: fmt.Sprintf("Note on pods that a gate is %s, in your own name. It takes the verb approve on\n", past) +
			"gates.kubectl-sched.github.io, by the name of the gate, in the namespace of the pods: the\n" +
			"API server sees to it where the scheduler was installed with its admission policies.\n" +
			"What was decided last counts, until the pod has been let go.",
		Example: fmt.Sprintf("  kubectl sched gates %[1]s train.approval train-0 train-1 -n ml\n", verb) +
			fmt.Sprintf("  kubectl sched gates %[1]s train.approval -l app=train -n ml --dry-run=server", verb),
		Args: cobra.MinimumNArgs(1),
		RunE: runE(func(args []string) (*gatesDecideOptions, error) { return f.toOptions(a, args) }),
	}
	f.addTo(cmd)
	cmd.Flags().BoolVar(&f.all, "all", false, "All pods of the namespace that wait for it")
	cmd.Flags().StringVar(&f.dryRun, "dry-run", dryRunNone, "server: have it checked, and write nothing; or none")
	completeValues(cmd, "dry-run", []string{dryRunServer, dryRunNone})
	return cmd
}

type gatesDecideFlags struct {
	podFlags
	deny   bool
	past   string
	all    bool
	dryRun string
}

type gatesDecideOptions struct {
	app      *app
	config   *genericclioptions.ConfigFlags
	query    gating.Query
	decision gating.Decision
	all      bool
	past     string
}

func (f *gatesDecideFlags) toOptions(a *app, args []string) (*gatesDecideOptions, error) {
	switch f.dryRun {
	case dryRunNone, dryRunServer:
	default:
		return nil, fmt.Errorf("--dry-run must be \"server\" or \"none\", not %q", f.dryRun)
	}
	query, err := f.toQuery(args[1:])
	return &gatesDecideOptions{
		app: a, config: f.config, query: query, all: f.all, past: f.past,
		decision: gating.Decision{Gate: args[0], Deny: f.deny, DryRun: f.dryRun == dryRunServer},
	}, err
}

// Validate implements options.
func (o *gatesDecideOptions) Validate() error {
	ways := 0
	for _, given := range []bool{len(o.query.Names) > 0, o.query.Selector != nil, o.all} {
		if given {
			ways++
		}
	}
	if ways != 1 {
		return errors.New("say which pods: by their names, by -l, or by --all, and by one of these only")
	}
	return nil
}

// Run implements options.
func (o *gatesDecideOptions) Run(ctx context.Context) error {
	client, err := connectTo(o.config)
	if err != nil {
		return err
	}
	return o.decide(ctx, client)
}

func (o *gatesDecideOptions) decide(ctx context.Context, client *cluster.Client) error {
	done, findings, err := gating.Decide(ctx, client, o.query, o.decision)
	for _, d := range done {
		words := fmt.Sprintf("pod/%s: gate %s %s by %s", d.Pod, d.Gate, o.past, d.By)
		switch {
		case d.Unchanged:
			words += " already"
		case o.decision.DryRun:
			words += " (server dry run)"
		}
		o.app.say(o.app.Out, "%s", words)
	}
	if err != nil {
		return err
	}
	return o.app.failOn(findings)
}
