package load

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubectl-sched/kubectl-sched/policy"
)

// poolMakers checks what a pool says of who makes its nodes.
func (s subject) poolMakers(p *policy.Pool) {
	only := func(field string, manager policy.ManagedBy) {
		if p.ManagedBy == manager {
			return
		}
		f := s.bad("policy/pool-maker", []string{field}, "%s is for pools that are managed by %q, and this one is managed by %q; set managedBy: %q, or take %s out", field, manager, p.ManagedBy, manager, field)
		if at, ok := p.Positions[policy.Pointer("managedBy")]; ok {
			relate(f, at, "who makes the nodes")
		}
	}
	if k := p.Karpenter; k != nil {
		only("karpenter", policy.ManagedKarpenter)
		s.makerNames([]string{"karpenter", "nodePools"}, "a NodePool", k.NodePools)
	}
	if g := p.NodeGroup; g != nil {
		only("nodeGroup", policy.ManagedNodeGroup)
		s.makerNames([]string{"nodeGroup", "names"}, "a node group", g.Names)
		if g.Provider == "" && len(g.Names) == 0 {
			s.bad("policy/pool-maker", []string{"nodeGroup"}, "nodeGroup says nothing; give its provider or its names, or take it out")
		}
	}
}

// makerNames checks the names of what makes nodes. Each provider has rules of
// its own, all of them narrower than this.
func (s subject) makerNames(at []string, what string, names []string) {
	for i, name := range names {
		here := join(at, nth(i))
		if len(validation.IsDNS1123Subdomain(name)) > 0 {
			s.bad("policy/bad-name", here, "%q cannot be %s: its name must be lower-case letters, digits, \"-\" and \".\"", name, what)
		}
		if slices.Index(names, name) < i {
			s.bad("policy/bad-name", here, "%q is listed twice", name)
		}
	}
}

// poolLabels checks the labels that a pool's nodes shall carry.
func (s subject) poolLabels(p *policy.Pool) {
	for _, key := range slices.Sorted(maps.Keys(p.Labels)) {
		at, value := []string{"labels", key}, p.Labels[key]
		s.labelKey(at, key)
		s.labelValue(at, value)
		told, ok := p.Nodes.Labels[key]
		if !ok {
			continue
		}
		where := p.Positions.At("nodes", "labels", key)
		switch {
		case p.ManagedBy == policy.ManagedLive:
			relate(s.bad("policy/own-label", at, "the pool's nodes are told by the very label that would be written, so no node would ever come to the pool; tell them by their names or by a label that somebody else sets"),
				where, fmt.Sprintf("the nodes are told by label %q", key))
		case !slices.Contains(told, value) && !slices.ContainsFunc(told, isPattern):
			relate(s.bad("policy/own-label", at, "nodes with %q: %q are not in the pool; give labels the value that nodes asks for, or leave it out", key, value),
				where, fmt.Sprintf("what nodes asks for of label %q", key))
		}
	}
}

// isPattern reports whether a value of a node's label stands for several.
func isPattern(value string) bool { return value == "*" || isComparison(value) }
