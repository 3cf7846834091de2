package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kubectl-sched/kubectl-sched/internal/apply"
	"github.com/kubectl-sched/kubectl-sched/internal/report"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// defaultRolloutTimeout is how long rollouts may take, as a Deployment's own
// progress deadline.
const defaultRolloutTimeout = 10 * time.Minute

// The values of --dry-run.
const (
	dryRunNone   = "none"
	dryRunClient = "client"
	dryRunServer = "server"
)

// runFlags are the flags of the verbs that write to a cluster.
type runFlags struct {
	dryRun       string
	wait         bool
	timeout      time.Duration
	maxWorkloads int
	historyLimit int
	force        bool
	skipOwned    bool
	managerFlag
}

func (f *runFlags) addTo(flags *pflag.FlagSet) {
	flags.StringVar(&f.dryRun, "dry-run", dryRunNone, "\"client\" says what would be written without asking the cluster whether it may be, \"server\" asks it; nothing is written")
	flags.Lookup("dry-run").NoOptDefVal = dryRunClient
	flags.BoolVar(&f.wait, "wait", false, "Wait until admission policies are in force and the workloads that restart have done so, and say where their pods are")
	flags.DurationVar(&f.timeout, "timeout", defaultRolloutTimeout, "How long to wait for that")
	flags.IntVar(&f.maxWorkloads, "max-unavailable-workloads", 0, "How many workloads may be restarting at a time; 0 for any number")
	flags.IntVar(&f.historyLimit, "history-limit", apply.DefaultHistoryLimit, "How many revisions to keep")
	flags.BoolVar(&f.force, "force-conflicts", false, "Take over fields that somebody else owns")
	f.managerFlag.addTo(flags)
}

func (f *runFlags) validate() error {
	switch f.dryRun {
	case dryRunNone, dryRunClient, dryRunServer:
	default:
		return fmt.Errorf("--dry-run must be \"none\", \"client\" or \"server\", not %q", f.dryRun)
	}
	switch {
	case f.timeout <= 0:
		return errors.New("--timeout must be above 0")
	case f.maxWorkloads < 0:
		return errors.New("--max-unavailable-workloads must not be below 0")
	case f.historyLimit < 1:
		return errors.New("--history-limit must be at least 1")
	}
	return nil
}

func completeDryRun(cmd *cobra.Command) {
	completeValues(cmd, "dry-run", []string{dryRunNone, dryRunClient, dryRunServer})
}

type applyFlags struct {
	policyFlags
	clusterFlags
	setFlags
	runFlags
	stepFlags
	changeScope bool
	output      string
}

func newApplyCommand(a *app) *cobra.Command {
	f := &applyFlags{clusterFlags: newClusterFlags(a)}
	cmd := &cobra.Command{
		Use:     "apply --set NAME [-p POLICIES] [--surface SURFACE] [-n NAMESPACE | -A]",
		Short:   "Write the placement into the workloads of a cluster",
		GroupID: groupApply,
		Long: "Compile the policies for the workloads that run in a cluster, and write the placement\n" +
			"fields into them by server-side apply. Workloads are never created or deleted; what no\n" +
			"policy of the set asks for any more goes back to what it was before.\n\n" +
			"A set is what is applied together. It remembers the policy folders and namespaces it was\n" +
			"made from, and a run that covers less leaves the rest alone. Before the first write all\n" +
			"of it is tried as a dry run: a field that somebody else owns, a missing permission or an\n" +
			"object that Argo CD, Flux, Helm or a controller keeps stops the run with nothing written.\n" +
			"A run that is interrupted is finished by running it again.\n\n" +
			"Every change of a pod template restarts its pods: see first with \"kubectl sched diff\".\n\n" +
			"For surface admission no workload is written at all: the API server's own admission\n" +
			"policies give pods their placement as they are created. They are rolled out in steps, each\n" +
			"a revision that \"kubectl sched undo\" goes back from: --observe changes nothing and notes in\n" +
			"the audit log what would be changed, -n acts in some namespaces, -A in all.",
		Example: "  # Apply the policies in ./placement to all namespaces, and see where the pods land\n" +
			"  kubectl sched apply --set shop --wait\n\n" +
			"  # At most two workloads restarting at a time\n" +
			"  kubectl sched apply --set shop --max-unavailable-workloads 2\n\n" +
			"  # With permissions for one namespace only\n" +
			"  kubectl sched apply --set shop -n shop --set-namespace shop\n\n" +
			"  # Whatever is created from now on: first look, then one namespace, then all\n" +
			"  kubectl sched apply --set shop --surface admission --observe\n" +
			"  kubectl sched apply --set shop --surface admission -n shop --wait\n" +
			"  kubectl sched apply --set shop --surface admission -A --wait",
		Args: cobra.NoArgs,
		RunE: runE(func([]string) (*applyOptions, error) { return f.toOptions(a) }),
	}
	flags := cmd.Flags()
	f.policyFlags.addTo(flags)
	f.clusterFlags.addTo(flags)
	f.setFlags.addTo(flags)
	f.runFlags.addTo(flags)
	f.stepFlags.addTo(cmd)
	flags.BoolVar(&f.skipOwned, "skip-owned", false, "Leave objects alone that Argo CD, Flux, Helm or a controller keeps, instead of stopping")
	flags.BoolVar(&f.changeScope, "change-scope", false, "Record this run's policy folders and namespaces as those of the set")
	flags.StringVarP(&f.output, "output", "o", string(report.Text), "Format: text, json or yaml")
	completeDryRun(cmd)
	completeValues(cmd, "output", []string{"text", "json", "yaml"})
	return cmd
}

type applyOptions struct {
	app      *app
	pipeline *pipeline
	set      apply.Set
	run      runFlags
	change   bool
	format   report.Format
}

func (f *applyFlags) toOptions(a *app) (*applyOptions, error) {
	set, err := f.setFlags.toOptions()
	if err != nil {
		return nil, err
	}
	p, err := livePipeline(a, &f.policyFlags, &f.clusterFlags, &f.stepFlags)
	if err != nil {
		return nil, err
	}
	format, err := report.ParseFormat(f.output, report.Text, report.JSON, report.YAML)
	if err != nil {
		return nil, err
	}
	return &applyOptions{app: a, pipeline: p, set: set, run: f.runFlags, change: f.changeScope, format: format}, nil
}

// livePipeline returns the pipeline of the verbs that compile for what runs in a
// cluster.
func livePipeline(a *app, policies *policyFlags, flags *clusterFlags, step *stepFlags) (*pipeline, error) {
	options, err := policies.toOptions(a)
	if err != nil {
		return nil, err
	}
	p := &pipeline{app: a, policies: options, cluster: flags.name, live: true, withCluster: true, config: flags.config}
	return p, step.toPipeline(p)
}

// Validate implements options.
func (o *applyOptions) Validate() error { return o.run.validate() }

// Run implements options.
func (o *applyOptions) Run(ctx context.Context) error {
	return o.pipeline.inEach(ctx, o.set, liveVerb{do: o.inCluster, format: o.format})
}

// inCluster applies what the policies come to in one cluster.
func (o *applyOptions) inCluster(ctx context.Context, live *livePlan, findings diag.Findings) error {
	applier, err := o.app.applier(live.client, live.kinds, live.state, o.run.managerFlag)
	if err != nil {
		return o.app.stop(findings, err)
	}
	applier.ForceConflicts, applier.ChangeScope, applier.SkipOwned = o.run.force, o.change, o.run.skipOwned
	applier.ClientOnly = o.run.dryRun == dryRunClient
	changes, fs, err := applier.Prepare(ctx, live.request())
	findings = append(findings, fs...)
	if err != nil || findings.HasErrors() {
		return o.app.stop(findings, err)
	}
	o.app.printFindings(findings.Sort())
	r := &liveRun{app: o.app, applier: applier, flags: o.run, format: o.format, cluster: live.name(), pools: live.pools}
	return r.run(ctx, changes, apply.RunOptions{})
}
