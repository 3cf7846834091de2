package review

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	policyv1 "k8s.io/api/policy/v1"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/compiler/emit"
	"github.com/kubectl-sched/kubectl-sched/internal/apply"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// Compilation is one side of a change for one cluster.
type Compilation struct {
	Plan      *compiler.Plan
	Workloads []*workload.Workload
}

// Compare returns what is different but for the placement, and whether anything is
// that can move a pod. Budgets are the cluster's PodDisruptionBudgets. Of workloads
// that restart, a count of pods that the manifests do not tell is 0.
func Compare(ctx context.Context, base, head Compilation, budgets []*policyv1.PodDisruptionBudget, places Places) (Section, bool, error) {
	var s Section
	var err error
	if s.Fields, err = fieldChanges(base, head, places); err != nil {
		return s, false, err
	}
	before, err := written(ctx, base)
	if err != nil {
		return s, false, err
	}
	after, err := written(ctx, head)
	if err != nil {
		return s, false, err
	}
	moves := false
	var restarting []*workload.Workload
	for _, w := range head.Workloads {
		b, there := before[w.Ref()]
		if !there {
			s.Workloads, moves = append(s.Workloads, Workload{w.Ref(), Added, named(places.Head, w.Source.At())}), true
			continue
		}
		h := after[w.Ref()]
		if equal(b, h) {
			continue
		}
		moves = true
		if restarts, pods := apply.Restarts(b, h); restarts {
			restarting = append(restarting, w)
			s.Restarts.Workloads = append(s.Restarts.Workloads, w.Ref())
			s.Restarts.Pods += pods
		}
	}
	for _, w := range base.Workloads {
		if _, there := after[w.Ref()]; !there {
			s.Workloads, moves = append(s.Workloads, Workload{w.Ref(), Removed, named(places.Base, w.Source.At())}), true
		}
	}
	slices.SortFunc(s.Workloads, func(a, b Workload) int { return cmp.Compare(a.Name, b.Name) })
	slices.Sort(s.Restarts.Workloads)
	s.Restarts.Budgets = apply.Disruptions(budgets, restarting)
	if s.Objects, err = objectChanges(base.Plan, head.Plan, places); err != nil {
		return s, false, err
	}
	return s, moves || len(s.Objects) > 0, nil
}

// written returns the objects of the workloads with what the plan has for them.
func written(ctx context.Context, c Compilation) (map[string]map[string]any, error) {
	list, findings := emit.Write(ctx, c.Plan, c.Workloads, workload.Stamp{})
	if err := failed(ctx, findings); err != nil {
		return nil, err
	}
	out := map[string]map[string]any{}
	for i, w := range c.Workloads {
		out[w.Ref()] = w.Object
		if list[i] != nil {
			out[w.Ref()] = list[i].Object
		}
	}
	return out, nil
}

// failed returns the errors among the findings, or that of the context.
func failed(ctx context.Context, findings diag.Findings) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if findings.HasErrors() {
		return findings
	}
	return nil
}

func equal(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// object is something that a plan has besides pod templates.
type object struct {
	text    string
	origins []compiler.Origin
}

func objectChanges(base, head *compiler.Plan, places Places) ([]Object, error) {
	before, err := objects(base)
	if err != nil {
		return nil, err
	}
	after, err := objects(head)
	if err != nil {
		return nil, err
	}
	var out []Object
	for _, name := range slices.Sorted(maps.Keys(before)) {
		b := before[name]
		if h, there := after[name]; !there {
			out = append(out, Object{name, Removed, relocated(b.origins, places.Base)})
		} else if h.text != b.text {
			out = append(out, Object{name, Changed, relocated(h.origins, places.Head)})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if _, there := before[name]; !there {
			out = append(out, Object{name, Added, relocated(after[name].origins, places.Head)})
		}
	}
	return out, nil
}

func relocated(origins []compiler.Origin, at func(diag.Range) diag.Range) []compiler.Origin {
	out := slices.Clone(origins)
	for i := range out {
		out[i].Range = named(at, out[i].Range)
	}
	return out
}

// objects returns what the plan has besides pod templates, by name.
func objects(plan *compiler.Plan) (map[string]object, error) {
	out := map[string]object{}
	add := func(name string, v any, origins []compiler.Origin) error {
		text, err := json.Marshal(v)
		if err != nil {
			return fmt.Errorf("compare %s: %w", name, err)
		}
		out[name] = object{string(text), origins}
		return nil
	}
	for _, o := range plan.Objects {
		name := o.Kind() + " " + o.Object.GetName()
		if ns := o.Object.GetNamespace(); ns != "" {
			name = o.Kind() + " " + ns + "/" + o.Object.GetName()
		}
		if err := add(name, o.Object, o.Origins); err != nil {
			return nil, err
		}
	}
	for _, n := range plan.Nodes {
		if err := add("nodes of pool "+n.Pool, []any{n.Taints, n.Labels, n.Selector, n.Members}, n.Origins); err != nil {
			return nil, err
		}
	}
	for _, u := range plan.Profiles {
		var origins []compiler.Origin
		for _, w := range u.Need.Wishes() {
			origins = append(origins, compiler.Origin(w.Origin))
		}
		if err := add("scheduler profile "+u.Name, []any{u.Name, u.Plugins(), u.Arithmetic()}, origins); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Join returns the sections with those joined that differ in nothing but the names of
// their clusters, in the order of the first of each.
func Join(sections []Section) []Section {
	var out []Section
next:
	for _, s := range sections {
		for i := range out {
			a, b := out[i], s
			a.Clusters, b.Clusters = nil, nil
			if equal(a, b) {
				out[i].Clusters = append(out[i].Clusters, s.Clusters...)
				continue next
			}
		}
		out = append(out, s)
	}
	return out
}
