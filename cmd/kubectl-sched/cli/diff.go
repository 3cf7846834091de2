package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubectl-sched/kubectl-sched/internal/apply"
	"github.com/kubectl-sched/kubectl-sched/internal/report"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// The formats of diff.
const (
	diffYAML    = "diff"
	diffEffects = "effects"
)

var diffFormats = []string{diffYAML, diffEffects, string(report.JSON), string(report.YAML)}

type diffFlags struct {
	policyFlags
	clusterFlags
	setFlags
	stepFlags
	managerFlag
	force, skipOwned, changeScope bool
	placement                     bool
	output                        string
}

func newDiffCommand(a *app) *cobra.Command {
	f := &diffFlags{clusterFlags: newClusterFlags(a)}
	cmd := &cobra.Command{
		Use:     "diff --set NAME [-p POLICIES] [--surface SURFACE] [-n NAMESPACE | -A]",
		Short:   "Show what apply would change in a cluster",
		GroupID: groupApply,
		Long: "Show what \"kubectl sched apply\" would change, found by server-side dry run: first which\n" +
			"workloads would restart, how many pods and which PodDisruptionBudgets they touch, then\n" +
			"the difference of the objects, or with -o effects the policies' lines behind it. There is\n" +
			"no output where nothing would change.\n\n" +
			"KUBECTL_EXTERNAL_DIFF names the program that compares, as for \"kubectl diff\". The exit\n" +
			"code is 0 without and 1 with differences, and above 1 on errors.",
		Example: "  kubectl sched diff --set shop\n" +
			"  kubectl sched diff --set shop --placement\n" +
			"  kubectl sched diff --set shop -o effects\n" +
			"  KUBECTL_EXTERNAL_DIFF=\"colordiff -N -u\" kubectl sched diff --set shop",
		Args: cobra.NoArgs,
		RunE: runE(func([]string) (*diffOptions, error) { return f.toOptions(a) }),
	}
	flags := cmd.Flags()
	f.policyFlags.addTo(flags)
	f.clusterFlags.addTo(flags)
	f.setFlags.addTo(flags)
	f.stepFlags.addTo(cmd)
	f.managerFlag.addTo(flags)
	flags.BoolVar(&f.force, "force-conflicts", false, "Show what taking over fields that somebody else owns would change")
	flags.BoolVar(&f.skipOwned, "skip-owned", false, "Leave objects out that Argo CD, Flux, Helm or a controller keeps")
	flags.BoolVar(&f.changeScope, "change-scope", false, "Show what recording this run's scope as that of the set would change")
	flags.BoolVar(&f.placement, "placement", false, "Show which pods would be where instead, simulated on the cluster as it is now; see \"kubectl sched simulate\"")
	flags.StringVarP(&f.output, "output", "o", diffYAML, "Format: "+strings.Join(diffFormats, ", "))
	completeValues(cmd, "output", diffFormats)
	return cmd
}

type diffOptions struct {
	app      *app
	pipeline *pipeline
	set      apply.Set
	flags    diffFlags
}

func (f *diffFlags) toOptions(a *app) (*diffOptions, error) {
	set, err := f.setFlags.toOptions()
	if err != nil {
		return nil, err
	}
	p, err := livePipeline(a, &f.policyFlags, &f.clusterFlags, &f.stepFlags)
	if err != nil {
		return nil, err
	}
	return &diffOptions{app: a, pipeline: p, set: set, flags: *f}, nil
}

// Validate implements options.
func (o *diffOptions) Validate() error {
	if !slices.Contains(diffFormats, o.flags.output) {
		return fmt.Errorf("unknown format %q for -o; %s", o.flags.output, didYouMean(o.flags.output, diffFormats))
	}
	return nil
}

// Run implements options.
func (o *diffOptions) Run(ctx context.Context) error {
	if o.flags.placement {
		return o.placement(ctx)
	}
	return o.pipeline.inEach(ctx, o.set, liveVerb{do: o.inCluster, goOn: true, format: report.Format(o.flags.output)})
}

// placement shows which pods would be where. The exit code is 1 if any pod moves,
// restarts or finds no node.
func (o *diffOptions) placement(ctx context.Context) error {
	format := report.Format(o.flags.output)
	if format != report.JSON && format != report.YAML {
		format = report.Text
	}
	s := &simulateOptions{app: o.app, pipeline: o.pipeline, format: format, policies: true, scenario: scenarioFlags{seed: 1}, failOn: true}
	s.failOnMoves = true
	return s.Run(ctx)
}

// inCluster shows what would change in one cluster.
func (o *diffOptions) inCluster(ctx context.Context, live *livePlan, findings diag.Findings) error {
	applier, err := o.app.applier(live.client, live.kinds, live.state, o.flags.managerFlag)
	if err != nil {
		return o.app.stop(findings, err)
	}
	applier.ForceConflicts, applier.ChangeScope, applier.SkipOwned = o.flags.force, o.flags.changeScope, o.flags.skipOwned
	changes, fs, err := applier.Prepare(ctx, live.request())
	findings = append(findings, fs...)
	if err != nil || changes == nil {
		return o.app.stop(findings, err)
	}
	if !findings.HasErrors() {
		o.app.printFindings(findings.Sort())
		return o.show(ctx, live, changes)
	}
	// What cannot be applied does not hide what can: it comes after it.
	var exit exitError
	if err := o.show(ctx, live, changes); err != nil && !errors.As(err, &exit) {
		return o.app.stop(findings, err)
	}
	return o.app.stop(findings, nil)
}

// show shows what would change; the error is the exit code.
func (o *diffOptions) show(ctx context.Context, live *livePlan, changes *apply.ChangeSet) error {
	if format := report.Format(o.flags.output); format == report.JSON || format == report.YAML {
		if err := report.Changes(o.app.Out, format, live.name(), changes); err != nil || changes.Empty() {
			return err
		}
		return exitError{code: exitFindings}
	}
	if changes.Empty() {
		return nil
	}
	o.app.sayChanges(changes)
	if o.flags.output == diffEffects {
		if err := report.ChangeEffects(o.app.Out, changes, o.app.reportOptions(o.app.Out)); err != nil {
			return err
		}
		return exitError{code: exitFindings}
	}
	comparisons, err := changes.Comparisons()
	if err != nil {
		return err
	}
	if err := o.app.compare(ctx, comparisons); err != nil {
		return err
	}
	return exitError{code: exitFindings}
}
