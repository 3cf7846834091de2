package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-sched/kubectl-sched/internal/cluster/snapshot"
	"github.com/kubectl-sched/kubectl-sched/internal/preview"
	"github.com/kubectl-sched/kubectl-sched/internal/report"
	"github.com/kubectl-sched/kubectl-sched/internal/simulate"
)

type whyFlags struct {
	pipelineFlags
	snapshotSource
	ownNames
	output string
	seed   uint64
}

func newWhyCommand(a *app) *cobra.Command {
	f := &whyFlags{pipelineFlags: newPipelineFlags(a)}
	cmd := &cobra.Command{
		Use:     "why pod/NAME | KIND/NAME",
		Short:   "Say why a pod has no node, or why it has this one",
		GroupID: groupLook,
		Long: "Say what holds a pod back: its gates and who opens them, a scheduler that is not there, nodes\n" +
			"grouped by what is in the way, the nearest node, and the smallest change that would let it fit,\n" +
			"which was tried. Of a pod that runs it says why it is on its node and not on another. With the\n" +
			"policies (-p, or ./" + defaultPolicyFolder + ") it names their lines.\n\n" +
			"Of a workload the first pod without a node is explained, else its first pod; and of one that has\n" +
			"no pods, whether it should have any.",
		Example: "  kubectl sched why pod/web-7d9c5-abcde -n shop\n" +
			"  kubectl sched why deployment/web -n shop --snapshot prod.snapshot -p placement",
		Args: cobra.RangeArgs(1, 2),
		RunE: runE(func(args []string) (*whyOptions, error) { return f.toOptions(a, args) }),
	}
	flags := cmd.Flags()
	f.policyFlags.addTo(flags)
	f.clusterFlags.addTo(flags)
	f.snapshotSource.addTo(flags)
	f.ownNames.addTo(flags)
	flags.Uint64Var(&f.seed, "seed", 1, "What decides between nodes that are equal in everything")
	flags.StringVarP(&f.output, "output", "o", "text", "Format: text, json or yaml")
	completeValues(cmd, "output", []string{"text", "json", "yaml"})
	return cmd
}

type whyOptions struct {
	app        *app
	pipeline   *pipeline
	source     snapshotSource
	names      ownNames
	format     report.Format
	policies   bool
	kind, name string
	namespace  string
	seed       uint64
}

func (f *whyFlags) toOptions(a *app, args []string) (*whyOptions, error) {
	f.maxFileSize = defaultMaxFileSize // there are no manifests
	p, err := f.pipelineFlags.toOptions(a)
	if err != nil {
		return nil, err
	}
	format, err := report.ParseFormat(f.output, report.Text, report.JSON, report.YAML)
	if err != nil {
		return nil, err
	}
	o := &whyOptions{
		app: a, pipeline: p, source: f.snapshotSource, names: f.ownNames, format: format, seed: f.seed,
		policies: len(f.policyFlags.paths) > 0 || a.defaultPolicyPath() == defaultPolicyFolder,
	}
	target := strings.Join(args, "/")
	var ok bool
	if o.kind, o.name, ok = strings.Cut(target, "/"); !ok {
		o.kind, o.name = "pod", target
	}
	if o.namespace = p.flagNamespace(); o.namespace == "" {
		o.namespace = corev1.NamespaceDefault
		if f.snapshotSource.file == "" {
			o.namespace = contextNamespace(f.config)
		}
	}
	return o, nil
}

// Validate implements options.
func (o *whyOptions) Validate() error {
	if o.name == "" || strings.Contains(o.name, "/") {
		return errors.New("name one pod or workload, as pod/NAME")
	}
	return nil
}

// Run implements options.
func (o *whyOptions) Run(ctx context.Context) error {
	s, err := o.app.snapshotFrom(ctx, o.source, o.pipeline.config)
	if err != nil {
		return err
	}
	names, options, err := o.names.of(o.app, s)
	if err != nil {
		return err
	}
	o.name, o.namespace = names.Word(o.name), names.Word(o.namespace)
	pod := o.pod(s)
	var without *simulate.Workload
	if pod == "" {
		if without, err = o.workload(s); err != nil {
			return err
		}
	}
	// The policies are asked for their lines; what they would change is not.
	request, pools, err := o.app.previewOf(ctx, o.pipeline, s, o.policies)
	if err != nil {
		return err
	}
	request.Seed = o.seed
	request.Pools = pools.elastic(s)
	var explanation *preview.Explanation
	if without != nil {
		explanation, err = preview.ExplainWithoutPods(ctx, *request, *without)
	} else {
		explanation, err = preview.Explain(ctx, *request, o.namespace, pod, pools.of)
	}
	if err != nil {
		return err
	}
	return report.Why(o.app.Out, o.format, explanation, options)
}

// pod is the name of the pod to explain, empty where the workload has none.
func (o *whyOptions) pod(s *snapshot.Snapshot) string {
	if slices.Contains([]string{"pod", "pods", "po"}, strings.ToLower(o.kind)) {
		return o.name
	}
	owner := simulate.Owners(s)
	var placed string
	for _, p := range s.Pods {
		ref := owner(p)
		if p.Namespace != o.namespace || ref.Name != o.name || !o.isKind(ref.Kind) {
			continue
		}
		if p.Spec.NodeName == "" {
			return p.Name
		}
		if placed == "" {
			placed = p.Name
		}
	}
	return placed
}

// workload is the workload to explain, which has no pods.
func (o *whyOptions) workload(s *snapshot.Snapshot) (*simulate.Workload, error) {
	var elsewhere []string
	for _, w := range simulate.Workloads(s) {
		switch {
		case w.Name != o.name || !o.isKind(w.Kind):
		case w.Namespace == o.namespace:
			return &w, nil
		default:
			elsewhere = append(elsewhere, w.Namespace)
		}
	}
	text := fmt.Sprintf("there is no %s %q in namespace %q", o.kind, o.name, o.namespace)
	if len(elsewhere) > 0 {
		text += "; there is one in " + strings.Join(elsewhere, ", ")
	}
	return nil, errors.New(text)
}

// isKind reports whether the user means the kind, which may have a group.
func (o *whyOptions) isKind(kind string) bool {
	said := strings.ToLower(o.kind)
	plain, _, _ := strings.Cut(strings.ToLower(kind), ".")
	return said == plain || said == plain+"s" || kindNames[said] == kind || said == "ds" && kind == "DaemonSet"
}
