package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"sigs.k8s.io/kustomize/kyaml/fn/framework"
	"sigs.k8s.io/kustomize/kyaml/kio"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/compiler/emit"
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
	if findings := workload.CheckText(stdinName, text); findings.HasErrors() {
		return o.app.failOn(findings.Sort())
	}
	stream := &kio.ByteReadWriter{Reader: bytes.NewReader(text), Writer: o.app.Out, KeepReaderAnnotations: true}
	err = framework.Execute(framework.ResourceListProcessorFunc(func(list *framework.ResourceList) error {
		return o.process(ctx, list)
	}), stream)
	var results framework.Results
	if errors.As(err, &results) {
		return exitError{code: exitFailure, err: results}
	}
	return err
}

// fnConfig is the functionConfig.
type fnConfig struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Metadata   map[string]any `json:"metadata"`
	Spec       struct {
		Policies  []string `json:"policies"`
		Policy    string   `json:"policy"`
		Cluster   string   `json:"cluster"`
		Namespace string   `json:"namespace"`
	} `json:"spec"`
}

// process writes the placement into the items of the list. An error leaves them
// as they are.
func (o *fnOptions) process(ctx context.Context, list *framework.ResourceList) error {
	config, err := readFnConfig(list.FunctionConfig)
	if err != nil {
		return err
	}
	inline, err := writeInline(config.Spec.Policy)
	if err != nil {
		return err
	}
	defer inline.remove()
	policies := o.policies
	policies.paths = slices.Concat(o.policies.paths, config.Spec.Policies, inline.paths())
	if len(policies.paths) == 0 {
		return errors.New("there are no policies; functionConfig must have spec.policies (folders) or spec.policy (CUE)")
	}
	p := &pipeline{app: o.app, policies: policies, cluster: config.Spec.Cluster}
	placement, findings := p.loadPlacement(ctx)
	if placement == nil {
		return addResults(list, inline.rename(findings), nil)
	}
	items, fs := readItems(list.Items, placement, config.Spec.Namespace)
	findings = append(findings, fs...)
	p.incomplete = findings.HasErrors()
	plan, fs, err := o.plan(ctx, p, placement, items.workloads)
	if err != nil {
		return err
	}
	findings = append(findings, fs...)
	if findings.HasErrors() {
		return addResults(list, inline.rename(findings.Sort()), items)
	}
	written, fs := emit.Write(ctx, plan, items.workloads, workload.Stamp{})
	findings = append(findings, fs...)
	if findings.HasErrors() {
		return addResults(list, inline.rename(findings.Sort()), items)
	}
	edited, err := items.edit(list.Items, written)
	if err != nil {
		return err
	}
	if list.Items, err = withObjects(edited, plan); err != nil {
		return err
	}
	return addResults(list, inline.rename(findings.Sort()), items)
}

// plan compiles for the cluster that is meant, or for all, which must then come
// out the same.
func (o *fnOptions) plan(ctx context.Context, p *pipeline, placement *policy.Placement, workloads []*workload.Workload) (*compiler.Plan, diag.Findings, error) {
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

func readFnConfig(node *kyaml.RNode) (fnConfig, error) {
	var config fnConfig
	if node == nil {
		return config, nil
	}
	text, err := node.String()
	if err != nil {
		return config, fmt.Errorf("read functionConfig: %w", err)
	}
	if err := yaml.UnmarshalStrict([]byte(text), &config); err != nil {
		return config, fmt.Errorf("read functionConfig: %w", err)
	}
	return config, nil
}
