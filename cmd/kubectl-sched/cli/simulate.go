package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kubectl-sched/kubectl-sched/internal/preview"
	"github.com/kubectl-sched/kubectl-sched/internal/report"
)

type simulateFlags struct {
	pipelineFlags
	snapshotSource
	scenarioFlags
	output string
	failOn bool
}

func newSimulateCommand(a *app) *cobra.Command {
	f := &simulateFlags{pipelineFlags: newPipelineFlags(a)}
	cmd := &cobra.Command{
		Use:     "simulate [--snapshot FILE] [-p POLICIES] [-f MANIFESTS] [SCENARIO]",
		Short:   "See which pods would be where, before anything is applied",
		GroupID: groupLook,
		Long: "Let the real scheduler, in process, place the pods of a snapshot: as things are, after the\n" +
			"policies have reached the workloads, and after what the scenario says. Without --snapshot one is\n" +
			"taken of the cluster now. Nothing is written to any cluster.\n\n" +
			"With -p or -f every workload that the policies change, or the manifests bring, is rolled out under\n" +
			"its own strategy. Then the scenario's steps come, in the order: --scale, --add-nodes, --lose,\n" +
			"--drain, --replay. Pods that wait are tried at the end, also without any step.\n\n" +
			"The same snapshot, policies, steps and --seed give the same result. The exit code is 0, also where\n" +
			"pods find no node; with --fail-on-pending it is 1 then.",
		Example: "  # What would these policies move?\n" +
			"  kubectl sched simulate --snapshot prod.snapshot -p placement\n\n" +
			"  # Does the shop survive the loss of a zone?\n" +
			"  kubectl sched simulate --lose zone=eu-1b\n\n" +
			"  # Is there room for 20 more?\n" +
			"  kubectl sched simulate --scale deployment/web=30 -n shop",
		Args: cobra.NoArgs,
		RunE: runE(func([]string) (*simulateOptions, error) { return f.toOptions(a) }),
	}
	flags := cmd.Flags()
	f.policyFlags.addTo(flags)
	f.manifestFlags.addTo(flags)
	f.clusterFlags.addTo(flags)
	f.snapshotSource.addTo(flags)
	f.scenarioFlags.addTo(flags)
	flags.BoolVar(&f.failOn, "fail-on-pending", false, "Exit with 1 if a pod finds no node")
	flags.StringVarP(&f.output, "output", "o", "text", "Format: text, json or yaml")
	completeValues(cmd, "output", []string{"text", "json", "yaml"})
	return cmd
}

// snapshotSource are the flags that say which snapshot to start from.
type snapshotSource struct {
	file   string
	maxAge time.Duration
}

func (f *snapshotSource) addTo(flags *pflag.FlagSet) {
	flags.StringVar(&f.file, "snapshot", "", "File that \"kubectl sched snapshot\" wrote, or YAML written by hand, in place of the cluster")
	flags.DurationVar(&f.maxAge, "max-snapshot-age", 0, "Refuse a snapshot that is older than this; 0 takes any")
}

type simulateOptions struct {
	app      *app
	pipeline *pipeline
	source   snapshotSource
	scenario scenarioFlags
	format   report.Format
	failOn   bool
	// failOnMoves says that a pod which moves or restarts counts as well.
	failOnMoves bool
	// policies says that policies are named, or in the usual place.
	policies bool
}

func (f *simulateFlags) toOptions(a *app) (*simulateOptions, error) {
	p, err := f.pipelineFlags.toOptions(a)
	if err != nil {
		return nil, err
	}
	format, err := report.ParseFormat(f.output, report.Text, report.JSON, report.YAML)
	if err != nil {
		return nil, err
	}
	return &simulateOptions{
		app: a, pipeline: p, source: f.snapshotSource, scenario: f.scenarioFlags, format: format, failOn: f.failOn,
		policies: len(f.policyFlags.paths) > 0 || a.defaultPolicyPath() == defaultPolicyFolder,
	}, nil
}

// Validate implements options.
func (o *simulateOptions) Validate() error {
	if o.pipeline.manifests.given() && !o.policies {
		return errors.New("there are manifests but no policies: name them with -p")
	}
	return o.scenario.validate()
}

// Run implements options.
func (o *simulateOptions) Run(ctx context.Context) error {
	s, err := o.app.snapshotFrom(ctx, o.source, o.pipeline.config)
	if err != nil {
		return err
	}
	request, pools, err := o.app.previewOf(ctx, o.pipeline, s, o.policies)
	if err != nil {
		return err
	}
	if request.Steps, err = o.scenario.steps(s, pools, o.pipeline.flagNamespace()); err != nil {
		return err
	}
	request.Seed = o.scenario.seed
	request.Pools = pools.elastic(s)
	result, findings, err := preview.Run(ctx, *request)
	if result == nil {
		return o.app.stop(findings, err)
	}
	o.app.printFindings(findings)
	interrupted := err != nil && ctx.Err() != nil
	if err != nil && !interrupted {
		return err
	}
	summary := result.Summarize(pools.of)
	if err := report.Placement(o.app.Out, o.format, result, summary, pools.of, o.app.reportOptions(o.app.Out)); err != nil {
		return err
	}
	if interrupted {
		return fmt.Errorf("the simulation was interrupted; what is above is what was known by then: %w", err)
	}
	n := summary.Pods()
	if o.failOn && n.Waiting > 0 || o.failOnMoves && n.Moved+n.Restarted > 0 {
		return exitError{code: exitFindings}
	}
	return nil
}
