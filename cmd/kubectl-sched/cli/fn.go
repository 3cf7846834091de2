package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/kustomize/kyaml/fn/framework"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/internal/krm"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

func newFnCommand(a *app) *cobra.Command {
	f := &policyFlags{}
	cmd := &cobra.Command{
		Use:     "fn",
		Short:   "Write the placement into a ResourceList, as a KRM function",
		GroupID: groupApply,
		Long: "Read a ResourceList on standard input, write the placement into its items, and write\n" +
			"it to standard output with the findings as results. An error among them leaves the items\n" +
			"as they were and makes the function fail.\n\n" +
			"functionConfig says what to compile:\n\n" +
			"  apiVersion: kubectl-sched.github.io/v1alpha1\n" +
			"  kind: Placement\n" +
			"  metadata:\n" +
			"    name: placement\n" +
			"    annotations:\n" +
			"      config.kubernetes.io/function: |\n" +
			"        exec: {path: kubectl-sched, args: [fn]}\n" +
			"  spec:\n" +
			"    policies: [../placement]   # folders or .cue files, relative to the working directory\n" +
			"    policy: |                  # or CUE, here; or both\n" +
			"      policies: web: {...}\n" +
			"    cluster: prod-eu           # where the clusters of the policies come out differently\n" +
			"    namespace: shop            # of items that name none",
		Example: "  # With the configuration above listed under \"transformers\" of a kustomization\n" +
			"  kustomize build --enable-alpha-plugins --enable-exec overlays/prod",
		Args: cobra.NoArgs,
		RunE: runE(func([]string) (*fnOptions, error) { return newFnOptions(a, f) }),
	}
	f.addTo(cmd.Flags())
	return cmd
}

type fnOptions struct {
	app      *app
	policies policyOptions
}

func newFnOptions(a *app, f *policyFlags) (*fnOptions, error) {
	policies, err := f.toOptions(a)
	if err != nil {
		return nil, err
	}
	policies.paths = f.paths // without the default: functionConfig may name them
	return &fnOptions{app: a, policies: policies}, nil
}

// Validate implements options.
func (o *fnOptions) Validate() error { return nil }

// Run implements options.
func (o *fnOptions) Run(ctx context.Context) error {
	text, err := workload.ReadAll(ctx, o.app.In)
	if err != nil {
		return fmt.Errorf("read the ResourceList: %w", err)
	}
	o.app.texts[stdinName] = text
	function := krm.Function{Paths: o.policies.paths, Load: o.load, Kinds: kindTable, Compile: o.compile}
	err = function.Run(ctx, stdinName, text, o.app.Out)
	var results framework.Results
	if errors.As(err, &results) {
		return exitError{code: exitFailure, err: results}
	}
	return err
}

func (o *fnOptions) load(ctx context.Context, paths []string) (*policy.Placement, diag.Findings) {
	policies := o.policies
	policies.paths = paths
	return o.app.load(ctx, policies)
}

// compile compiles for the cluster that is meant, or for all, which must then come
// out the same.
func (o *fnOptions) compile(ctx context.Context, placement *policy.Placement, cluster string, workloads []*workload.Workload, incomplete bool) (*compiler.Plan, diag.Findings, error) {
	p := &pipeline{app: o.app, cluster: cluster, placement: placement, incomplete: incomplete}
	targets, err := p.targets(placement)
	if err != nil {
		return nil, nil, err
	}
	var plans []clusterPlan
	var findings diag.Findings
	for _, target := range orNone(targets) {
		plan, fs := p.compileFor(ctx, placement, target, workloads)
		findings = append(findings, fs...)
		if plan != nil {
			plans = append(plans, clusterPlan{Clusters: nameOf(target), Plan: plan, Surface: p.surfaceOf(target, policy.SurfaceRender)})
		}
	}
	if findings.HasErrors() || len(plans) == 0 {
		return nil, findings, nil
	}
	if plans = collapse(plans); len(plans) > 1 {
		return nil, nil, fmt.Errorf("the clusters come out differently (%s / %s); set spec.cluster in the functionConfig", plans[0].Name(), plans[1].Name())
	}
	return forManifests(plans[0].Plan, plans[0].Surface), findings, nil
}
