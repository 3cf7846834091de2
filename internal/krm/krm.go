// Package krm is the KRM function: a ResourceList goes in, and the same list comes out
// with the placement in its items and the findings as results. An error among the
// findings leaves the items as they were.
//
// It must not know how policies are loaded, nor for which cluster they are compiled.
package krm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

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

// Function is the function with what it has to be told.
type Function struct {
	// Paths are where policies are, besides those that the functionConfig names.
	Paths []string
	// Load loads the policies at the paths. The placement is nil where nothing of them
	// can be judged.
	Load func(ctx context.Context, paths []string) (*policy.Placement, diag.Findings)
	// Kinds returns the table of kinds, those of the placement included.
	Kinds func(*policy.Placement) (*workload.Kinds, diag.Findings)
	// Compile compiles for the cluster, or for all where the name is empty. Incomplete
	// says that policies or workloads have errors and are missing.
	Compile func(ctx context.Context, p *policy.Placement, cluster string, workloads []*workload.Workload, incomplete bool) (*compiler.Plan, diag.Findings, error)
}

// config is the functionConfig.
type config struct {
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

// Run reads the list in text, which findings call name, and writes it to out. The error
// is diag.Findings where the text cannot be a list at all, and the framework.Results that
// the list has too where there are errors among the findings.
func (f Function) Run(ctx context.Context, name string, text []byte, out io.Writer) error {
	if findings := workload.CheckText(name, text); findings.HasErrors() {
		return findings.Sort()
	}
	stream := &kio.ByteReadWriter{Reader: bytes.NewReader(text), Writer: out, KeepReaderAnnotations: true}
	return framework.Execute(framework.ResourceListProcessorFunc(func(list *framework.ResourceList) error {
		return f.process(ctx, list)
	}), stream)
}

// process writes the placement into the items of the list. An error leaves them
// as they are.
func (f Function) process(ctx context.Context, list *framework.ResourceList) error {
	config, err := readConfig(list.FunctionConfig)
	if err != nil {
		return err
	}
	inline, err := writeInline(config.Spec.Policy)
	if err != nil {
		return err
	}
	defer inline.remove()
	paths := slices.Concat(f.Paths, config.Spec.Policies, inline.paths())
	if len(paths) == 0 {
		return errors.New("there are no policies; functionConfig must have spec.policies (folders) or spec.policy (CUE)")
	}
	placement, findings := f.Load(ctx, paths)
	if placement == nil {
		return addResults(list, inline.rename(findings), nil)
	}
	read := &items{}
	kinds, fs := f.Kinds(placement)
	findings = append(findings, fs...)
	if !fs.HasErrors() {
		read, fs = readItems(list.Items, workload.Options{Namespace: config.Spec.Namespace, Kinds: kinds})
		findings = append(findings, fs...)
	}
	plan, fs, err := f.Compile(ctx, placement, config.Spec.Cluster, read.workloads, findings.HasErrors())
	if err != nil {
		return err
	}
	findings = append(findings, fs...)
	if findings.HasErrors() {
		return addResults(list, inline.rename(findings.Sort()), read)
	}
	written, fs := emit.Write(ctx, plan, read.workloads, workload.Stamp{})
	findings = append(findings, fs...)
	if findings.HasErrors() {
		return addResults(list, inline.rename(findings.Sort()), read)
	}
	edited, err := read.edit(list.Items, written)
	if err != nil {
		return err
	}
	if list.Items, err = withObjects(edited, plan); err != nil {
		return err
	}
	return addResults(list, inline.rename(findings.Sort()), read)
}

func readConfig(node *kyaml.RNode) (config, error) {
	var c config
	if node == nil {
		return c, nil
	}
	text, err := node.String()
	if err != nil {
		return c, fmt.Errorf("read functionConfig: %w", err)
	}
	if err := yaml.UnmarshalStrict([]byte(text), &c); err != nil {
		return c, fmt.Errorf("read functionConfig: %w", err)
	}
	return c, nil
}
