package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/internal/report"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

type explainWorkloadOptions struct {
	app      *app
	pipeline *pipeline
	format   report.Format
	ref      workloadRef
}

func (f *explainFlags) toWorkloadOptions(a *app, args []string) (*explainWorkloadOptions, error) {
	p, err := f.pipelineFlags.toOptions(a)
	if err != nil {
		return nil, err
	}
	format, err := report.ParseFormat(f.output, report.Text, report.JSON, report.YAML)
	if err != nil {
		return nil, err
	}
	ref, err := parseRef(args)
	if err != nil {
		return nil, err
	}
	// Manifests are looked through whole; what runs is looked up as kubectl does.
	if ref.namespace = p.flagNamespace(); p.live {
		ref.namespace = contextNamespace(f.config)
		p.explained = ref.namespace
	}
	return &explainWorkloadOptions{app: a, pipeline: p, format: format, ref: ref}, nil
}

// Validate implements options.
func (o *explainWorkloadOptions) Validate() error {
	if !o.pipeline.manifests.given() && !o.pipeline.live {
		return errors.New("where is the workload? give manifests with -f or -k, or --live")
	}
	return nil
}

// Run implements options.
func (o *explainWorkloadOptions) Run(ctx context.Context) error {
	plans, findings, err := o.pipeline.compilePlans(ctx)
	if err != nil {
		return err
	}
	if findings.HasErrors() {
		return o.app.failOn(findings)
	}
	found, err := o.ref.find(o.pipeline.workloads)
	if err != nil {
		return err
	}
	// Warnings about others do not belong here.
	o.app.printFindings(slices.DeleteFunc(findings, func(f diag.Finding) bool { return f.Subject != found[0].Ref() }))

	var explained []clusterPlan
	for _, p := range plans {
		for _, w := range found {
			if c, ok := explainIn(p, w); ok {
				explained = append(explained, c)
			}
		}
	}
	collapsed := collapse(explained)
	list := make([]report.Plan, len(collapsed))
	for i, p := range collapsed {
		list[i] = report.Plan{Clusters: p.Clusters, Plan: p.Plan, Overridden: o.overridden(ctx, p)}
	}
	return report.Plans(o.app.Out, o.format, list, o.app.reportOptions(o.app.Out))
}

// explainIn reduces a plan to one workload; false if the workload was read from
// another cluster than the plan is for.
func explainIn(p clusterPlan, w *workload.Workload) (clusterPlan, bool) {
	if !slices.Contains(p.Workloads, w) {
		return clusterPlan{}, false
	}
	only := &compiler.Plan{Cluster: p.Plan.Cluster}
	for _, c := range p.Plan.Changes {
		if c.Workload == w {
			only.Changes = append(only.Changes, c)
		}
	}
	if len(only.Changes) == 0 {
		for i := range w.Templates {
			only.Changes = append(only.Changes, compiler.Change{Workload: w, Template: i, After: w.Templates[i].Pods})
		}
	}
	for _, u := range p.Plan.Profiles {
		if slices.ContainsFunc(only.Changes, func(c compiler.Change) bool { return c.After.SchedulerName == u.Name }) {
			only.Profiles = append(only.Profiles, u)
		}
	}
	for _, e := range p.Plan.Exceptions {
		if e.Workload == w.Ref() {
			only.Exceptions = append(only.Exceptions, e)
		}
	}
	return clusterPlan{Clusters: p.Clusters, Plan: only, Workloads: []*workload.Workload{w}}, true
}

// overridden finds the policies that others replace for the workload: those
// that come into force when nothing overrides them.
func (o *explainWorkloadOptions) overridden(ctx context.Context, p clusterPlan) []report.Overridden {
	inForce := map[string]bool{}
	for _, c := range p.Plan.Changes {
		for _, name := range c.Policies {
			inForce[name] = true
		}
	}
	var overridden []report.Overridden
	var plan *compiler.Plan // only if anything overrides anything
	for _, by := range o.pipeline.placement.Policies {
		if !inForce[by.Name] || len(by.Overrides) == 0 {
			continue
		}
		if plan == nil {
			plan = o.withoutOverrides(ctx, p)
		}
		for i, name := range by.Overrides {
			if !inForce[name] && inPlan(plan, p.Workloads[0], name) {
				overridden = append(overridden, report.Overridden{
					Policy: name, By: by.Name, Workload: p.Workloads[0].Ref(), Reason: by.Reason,
					Range: by.Positions.At("overrides", fmt.Sprint(i)),
				})
			}
		}
	}
	return overridden
}

// withoutOverrides compiles the workload as if no policy overrode another.
func (o *explainWorkloadOptions) withoutOverrides(ctx context.Context, p clusterPlan) *compiler.Plan {
	without := *o.pipeline.placement
	without.Policies = slices.Clone(without.Policies)
	for i := range without.Policies {
		without.Policies[i].Overrides = nil
	}
	var target *policy.Cluster
	if len(p.Clusters) > 0 {
		target = without.Cluster(p.Clusters[0])
	}
	plan, _ := o.pipeline.compileFor(ctx, &without, target, p.Workloads)
	return plan
}

// inPlan reports whether a policy is in force for a workload.
func inPlan(plan *compiler.Plan, w *workload.Workload, name string) bool {
	return plan != nil && slices.ContainsFunc(plan.Changes, func(c compiler.Change) bool {
		return c.Workload == w && slices.Contains(c.Policies, name)
	})
}

// maxListed is how many names an error lists.
const maxListed = 12

// workloadRef is how the command line names a workload.
type workloadRef struct{ kind, group, namespace, name string }

// shortKinds are kubectl's short names.
var shortKinds = map[string]string{
	"cj": "cronjob", "deploy": "deployment", "ds": "daemonset", "po": "pod",
	"rc": "replicationcontroller", "rs": "replicaset", "sts": "statefulset",
}

// parseRef reads "KIND/NAME" or "KIND NAME", where KIND may be a plural, a short
// name, and have its group ("pytorchjobs.kubeflow.org").
func parseRef(args []string) (workloadRef, error) {
	kind, name, _ := strings.Cut(args[0], "/")
	if len(args) == 2 {
		kind, name = args[0], args[1]
	}
	if kind == "" || name == "" || strings.Contains(name, "/") {
		return workloadRef{}, fmt.Errorf("%q is not a workload; write KIND/NAME, such as \"deployment/web\"", strings.Join(args, " "))
	}
	r := workloadRef{name: name}
	r.kind, r.group, _ = strings.Cut(strings.ToLower(kind), ".")
	if long, ok := shortKinds[r.kind]; ok {
		r.kind = long
	}
	return r, nil
}

func (r workloadRef) matches(w *workload.Workload) bool {
	kind := strings.ToLower(w.Kind)
	return (r.kind == kind || r.kind == kind+"s" || r.kind == kind+"es") &&
		(r.group == "" || strings.EqualFold(r.group, w.Group) || strings.HasSuffix(r.group, "."+strings.ToLower(w.Group))) &&
		(r.namespace == "" || r.namespace == w.Namespace) && r.name == w.Name
}

// find returns the workload, once for each cluster that it was read from. The
// error names what is near, or the namespaces to choose from.
func (r workloadRef) find(workloads []*workload.Workload) ([]*workload.Workload, error) {
	var found []*workload.Workload
	refs := map[string]bool{}
	var names []string
	for _, w := range workloads {
		names = append(names, strings.ToLower(w.Kind)+"/"+w.Name)
		if r.matches(w) && !slices.Contains(found, w) {
			found = append(found, w)
			refs[w.Ref()] = true
		}
	}
	switch {
	case len(refs) > 1:
		var list []string
		for _, w := range found {
			list = append(list, w.Ref())
		}
		slices.Sort(list)
		return nil, fmt.Errorf("there are several: %s; choose with --namespace or by the full kind", strings.Join(slices.Compact(list), ", "))
	case len(found) > 0:
		return found, nil
	}
	asked := r.kind + "/" + r.name
	if slices.Contains(names, asked) || len(names) == 0 {
		if r.namespace == "" {
			return nil, fmt.Errorf("there is no %s: nothing with a pod template was read", asked)
		}
		return nil, fmt.Errorf("there is no %s in namespace %q; choose another with --namespace", asked, r.namespace)
	}
	if near, ok := diag.Nearest(asked, names); ok {
		return nil, fmt.Errorf("there is no %s among the %s; did you mean %s?", asked, count(len(workloads), "workload", "workloads"), near)
	}
	slices.Sort(names)
	if names = slices.Compact(names); len(names) <= maxListed {
		return nil, fmt.Errorf("there is no %s; there are: %s", asked, strings.Join(names, ", "))
	}
	return nil, fmt.Errorf("there is no %s among the %s that were read", asked, count(len(workloads), "workload", "workloads"))
}
