package emit

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
	"github.com/kubectl-sched/kubectl-sched/compiler/nodeexpr"
	"github.com/kubectl-sched/kubectl-sched/compiler/nodelabel"
	"github.com/kubectl-sched/kubectl-sched/internal/objectyaml"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy"
)

// nodePool is one NodePool with the pools that it makes nodes for.
type nodePool struct {
	name    string
	effects []compiler.NodeEffect
	// known is nil where the NodePool itself has not been read.
	known *capability.NodePool
}

// nodePools emits a patch for each NodePool, and the whole of those that are
// known.
func (e *nodeEmitter) nodePools(effects []compiler.NodeEffect) {
	for _, np := range nodePoolsOf(effects) {
		patch, notes := np.patch()
		comments := []string{
			fmt.Sprintf("For Karpenter's NodePool %q: a merge patch, for kubectl patch nodepool %s --type merge --patch-file, or among the patches of a kustomization.", np.name, np.name),
		}
		for _, n := range np.effects {
			comments = append(comments, about(n))
		}
		comments = append(comments, newNodes(np.effects[0]))
		if np.known == nil {
			comments = append(comments, "The lists here stand for the NodePool's whole lists, and it was not read: add what it has already, or compile again with its manifest (-f) or with --with-cluster.")
		}
		e.add("karpenter/"+np.name+".patch.yaml", append(comments, notes...), e.yaml(patch))
		if np.known == nil {
			continue
		}
		comments[0] = fmt.Sprintf("Karpenter's NodePool %q, whole, with what the policies ask for.", np.name)
		e.add("karpenter/"+np.name+".nodepool.yaml", append(comments, notes...), e.yaml(merged(np.known.Object, patch)))
	}
}

// nodePoolsOf gathers the NodePools, sorted by name. The pools of each are in the
// order of how few NodePools they have, and by name, so that where two ask for
// the same thing the narrower pool has its way.
func nodePoolsOf(effects []compiler.NodeEffect) []nodePool {
	byName := map[string]*nodePool{}
	for _, n := range effects {
		if n.ManagedBy != policy.ManagedKarpenter {
			continue
		}
		for _, name := range n.Makers {
			if byName[name] == nil {
				byName[name] = &nodePool{name: name}
			}
			np := byName[name]
			np.effects = append(np.effects, n)
			if i := slices.IndexFunc(n.NodePools, func(k capability.NodePool) bool { return k.Name == name }); i >= 0 {
				np.known = &n.NodePools[i]
			}
		}
	}
	list := make([]nodePool, 0, len(byName))
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		np := *byName[name]
		slices.SortStableFunc(np.effects, func(a, b compiler.NodeEffect) int { return cmp.Compare(len(a.Makers), len(b.Makers)) })
		list = append(list, np)
	}
	return list
}

// patch returns the merge patch, whose lists are whole lists, and comments on what
// it leaves out or replaces.
func (np nodePool) patch() (map[string]any, []string) {
	var notes []string
	labels := map[string]any{}
	var taints []corev1.Taint
	for _, n := range np.effects {
		own, refused := settable(nodelabel.Karpenter, n)
		notes = append(notes, refused...)
		for key, value := range own {
			if _, ok := labels[key]; !ok {
				labels[key] = value
			}
		}
		for _, t := range n.Taints {
			if !slices.ContainsFunc(taints, func(o corev1.Taint) bool { return o.MatchTaint(&t) }) {
				taints = append(taints, t)
			}
		}
		if len(n.Selector) > 1 {
			notes = append(notes, demands(n)...)
		}
	}
	requirements, more := np.requirements()
	notes = append(notes, more...)

	template := map[string]any{}
	if len(labels) > 0 {
		template["metadata"] = map[string]any{"labels": labels}
	}
	spec := map[string]any{}
	if len(taints) > 0 {
		spec["taints"] = plainTaints(np.withTaints(taints))
	}
	if requirements != nil {
		spec["requirements"] = requirements
	}
	if len(spec) > 0 {
		template["spec"] = spec
	}
	return map[string]any{
		"apiVersion": capability.NodePoolGroup + "/" + capability.NodePoolVersion, "kind": capability.NodePoolKind,
		"metadata": map[string]any{"name": np.name}, "spec": map[string]any{"template": template},
	}, notes
}

// withTaints returns the taints that the NodePool has, with these in the place of
// those of the same key and effect.
func (np nodePool) withTaints(taints []corev1.Taint) []corev1.Taint {
	if np.known == nil {
		return taints
	}
	all := slices.Clone(np.known.Taints)
	for _, t := range taints {
		if i := slices.IndexFunc(all, func(o corev1.Taint) bool { return o.MatchTaint(&t) }); i >= 0 {
			all[i] = t
		} else {
			all = append(all, t)
		}
	}
	return all
}

// requirements returns the whole list of requirements, those of the NodePool
// first; nil where none has to be added.
func (np nodePool) requirements() ([]any, []string) {
	var list []capability.NodePoolRequirement
	var notes []string
	if np.known != nil {
		list = slices.Clone(np.known.Requirements)
	}
	changed := false
	for _, n := range np.effects {
		for _, r := range n.Requirements {
			if nodelabel.IsGiven(r.Key) && !nodelabel.KarpenterChooses(r.Key) {
				notes = append(notes, fmt.Sprintf("Left out: %s, which Karpenter does not choose nodes by.", requirementsText([]corev1.NodeSelectorRequirement{r})))
				continue
			}
			r.Key = nodelabel.Normal(r.Key)
			var added bool
			if list, added = narrow(list, r); added {
				changed = true
			}
		}
	}
	if !changed {
		return nil, notes
	}
	out := make([]any, len(list))
	for i := range list {
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&list[i])
		if err != nil {
			object = map[string]any{"key": list[i].Key, "operator": string(list[i].Operator)}
		}
		out[i] = object
	}
	return out, notes
}

// narrow adds a requirement to a list of which all must hold, and reports whether
// that changed it. What contradicts it is replaced by it.
func narrow(list []capability.NodePoolRequirement, r corev1.NodeSelectorRequirement) ([]capability.NodePoolRequirement, bool) {
	asked, err := exprOf(r)
	if err != nil {
		return list, false
	}
	there := nodeexpr.True()
	found := false
	for _, o := range list {
		if nodelabel.Normal(o.Key) != r.Key {
			continue
		}
		normal := o.Normal()
		normal.Key = r.Key
		if e, err := exprOf(normal); err == nil {
			found = true
			there, _ = nodeexpr.And(1, there, e)
		}
	}
	if found && nodeexpr.Implies(there, asked) {
		return list, false
	}
	both, err := nodeexpr.And(1, there, asked)
	kept := slices.DeleteFunc(slices.Clone(list), func(o capability.NodePoolRequirement) bool { return nodelabel.Normal(o.Key) == r.Key })
	if err != nil || both.IsFalse() {
		return append(kept, capability.NodePoolRequirement{NodeSelectorRequirement: r}), true
	}
	for _, joined := range both.Terms()[0].MatchExpressions {
		kept = append(kept, capability.NodePoolRequirement{NodeSelectorRequirement: joined, MinValues: minValues(list, joined)})
	}
	return kept, true
}

// minValues keeps what a requirement on the same key says of how many values
// there must be, as far as there are so many.
func minValues(list []capability.NodePoolRequirement, r corev1.NodeSelectorRequirement) *int {
	for _, o := range list {
		if o.Key == r.Key && o.Operator == r.Operator && o.MinValues != nil {
			n := min(*o.MinValues, len(r.Values))
			return &n
		}
	}
	return nil
}

func exprOf(r corev1.NodeSelectorRequirement) (nodeexpr.Expr, error) {
	return nodeexpr.FromTerm(corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{r}})
}

// merged returns the object with the merge patch applied (RFC 7386, without
// nulls, which our patches do not have).
func merged(object, patch map[string]any) map[string]any {
	out := maps.Clone(object)
	for key, value := range patch {
		below, isMap := value.(map[string]any)
		there, wasMap := out[key].(map[string]any)
		if isMap && wasMap {
			out[key] = merged(there, below)
			continue
		}
		out[key] = value
	}
	return out
}

// nodePoolPatches returns a merge patch for each NodePool among the manifests
// that lacks something.
func nodePoolPatches(plan *compiler.Plan, set *workload.Set) ([]patch, error) {
	var list []patch
	for _, np := range nodePoolsOf(plan.Nodes) {
		in := func(o *workload.Object) bool {
			return o.Group == capability.NodePoolGroup && o.Kind == capability.NodePoolKind && o.Name == np.name
		}
		if np.known == nil || !slices.ContainsFunc(set.Others, in) {
			continue
		}
		document, _ := np.patch()
		if sameJSON(np.known.Object, merged(np.known.Object, document)) {
			continue
		}
		text, err := objectyaml.Marshal(document)
		if err != nil {
			return nil, fmt.Errorf("encode the patch of NodePool %q: %w", np.name, err)
		}
		list = append(list, patch{Patch: string(text), Target: target{
			Group: capability.NodePoolGroup, Version: capability.NodePoolVersion, Kind: capability.NodePoolKind, Name: quoteName(np.name),
		}})
	}
	return list, nil
}

// sameJSON reports whether two objects are the same once they are encoded.
func sameJSON(a, b map[string]any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}
