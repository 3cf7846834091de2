package adopt

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-sched/kubectl-sched/compiler/nodeexpr"
	"github.com/kubectl-sched/kubectl-sched/policy"
)

// demand is one requirement as a field of a NodeTerm: positive ones are required
// or preferred, the others forbidden or disfavoured.
type demand struct {
	positive bool
	key      nodeexpr.Key
	values   policy.Values
}

// demandOf returns the requirement in the words of the language; false if it has
// none.
func demandOf(r nodeexpr.Requirement) (demand, bool) {
	d := demand{positive: true, key: r.Key}
	switch r.Operator {
	case corev1.NodeSelectorOpIn:
		d.values = policy.Values(r.Values)
	case corev1.NodeSelectorOpNotIn:
		d.positive, d.values = false, policy.Values(r.Values)
	case corev1.NodeSelectorOpExists:
		d.values = policy.Values{"*"}
	case corev1.NodeSelectorOpDoesNotExist:
		d.positive, d.values = false, policy.Values{"*"}
	case corev1.NodeSelectorOpGt:
		d.values = policy.Values{">" + strings.Join(r.Values, "")}
	case corev1.NodeSelectorOpLt:
		d.values = policy.Values{"<" + strings.Join(r.Values, "")}
	default:
		return d, false
	}
	return d, len(d.values) > 0 && !slices.Contains(d.values, "")
}

// addTo puts the demand into the term; false if the term has the field already.
func (d demand) addTo(t *policy.NodeTerm) bool {
	list := d.list(t)
	if list == nil {
		if _, there := t.Labels[d.key.Name]; there {
			return false
		}
		labels := map[string]policy.Values{d.key.Name: d.values}
		for k, v := range t.Labels {
			labels[k] = v
		}
		t.Labels = labels
		return true
	}
	if len(*list) > 0 {
		return false
	}
	*list = slices.Clone(d.values)
	return true
}

// list returns the term's own field for the key; nil if it goes with the labels.
func (d demand) list(t *policy.NodeTerm) *[]string {
	if d.key == nodeexpr.NodeName {
		return &t.Names
	}
	if slices.Contains(d.values, "*") || strings.HasPrefix(d.values[0], ">") || strings.HasPrefix(d.values[0], "<") {
		return nil
	}
	switch d.key.Name {
	case corev1.LabelTopologyZone:
		return &t.Zones
	case corev1.LabelTopologyRegion:
		return &t.Regions
	case corev1.LabelArchStable:
		return &t.Arch
	case corev1.LabelOSStable:
		return &t.OS
	}
	return nil
}

// name is for the names of policies.
func (d demand) name() string {
	name := d.key.Name[strings.LastIndexByte(d.key.Name, '/')+1:]
	if d.key == nodeexpr.NodeName {
		name = "node"
	}
	if len(d.values) == 1 && !strings.ContainsAny(d.values[0], "*<>") && len(d.values[0]) <= 24 {
		return name + "-" + d.values[0]
	}
	return name
}

func (d demand) String() string {
	name := d.key.Name
	if d.key.Field {
		name = "name"
	}
	switch values := strings.Join(d.values, " or "); {
	case values == "*":
		return "a label " + name
	case strings.HasPrefix(values, ">") || strings.HasPrefix(values, "<"):
		return name + values
	default:
		return name + "=" + values
	}
}

// require says a requirement by nodes.require or nodes.forbid.
func require(r nodeexpr.Requirement) []phrase {
	d, ok := demandOf(r)
	if !ok {
		return nil
	}
	if d.positive {
		return []phrase{intent("on-"+d.name(), "nodes with "+d.String()+" are required", false, func(p *policy.Policy) bool {
			term := policy.NodeTerm{}
			if p.Nodes != nil && p.Nodes.Require != nil {
				term = *p.Nodes.Require
			}
			if !d.addTo(&term) {
				return false
			}
			nodesOf(p).Require = &term
			return true
		})}
	}
	return []phrase{intent("off-"+d.name(), "nodes with "+d.String()+" are forbidden", false, func(p *policy.Policy) bool {
		term := policy.NodeTerm{}
		if p.Nodes != nil && p.Nodes.Forbid != nil {
			term = *p.Nodes.Forbid
		}
		if !d.addTo(&term) {
			return false
		}
		nodesOf(p).Forbid = &term
		return true
	})}
}

func nodesOf(p *policy.Policy) *policy.Nodes {
	if p.Nodes == nil {
		p.Nodes = &policy.Nodes{}
	}
	return p.Nodes
}

// aChoice is why no intent says several terms.
const aChoice = "a node needs to meet only one of its terms, and no intent says a choice between descriptions of nodes; it stays a choice (lint: workload/terms-are-alternatives asks whether all was meant)"

// alternatives says several terms of which one must hold. The language has a
// choice of values for one key, and none between descriptions.
func alternatives(s *corev1.NodeSelector) []phrase {
	var names []string
	for _, t := range s.NodeSelectorTerms {
		if len(t.MatchExpressions) > 0 || len(t.MatchFields) != 1 || t.MatchFields[0].Operator != corev1.NodeSelectorOpIn || t.MatchFields[0].Key != nodeexpr.NodeName.Name {
			return nil
		}
		names = append(names, t.MatchFields[0].Values...)
	}
	return require(nodeexpr.Requirement{Key: nodeexpr.NodeName, Operator: corev1.NodeSelectorOpIn, Values: sorted(names)})
}

// isWeight reports whether the API takes the weight.
func isWeight(n int32) bool { return n >= 1 && n <= 100 }

// preferred says a preferred term by nodes.prefer or nodes.disfavor.
func preferred(t corev1.PreferredSchedulingTerm) ([]phrase, string) {
	const why = "no intent says one weight of demands that are partly for and partly against, or twice about one label"
	if !isWeight(t.Weight) {
		return nil, "the API would refuse it"
	}
	var demands []demand
	positive := 0
	for _, r := range nodeexpr.Requirements(canonical(t).(corev1.PreferredSchedulingTerm).Preference) {
		d, ok := demandOf(r)
		if !ok {
			return nil, why
		}
		if d.positive {
			positive++
		}
		demands = append(demands, d)
	}
	term := policy.NodeTerm{}
	var names, texts []string
	for _, d := range demands {
		if !d.addTo(&term) {
			return nil, why
		}
		names, texts = append(names, d.name()), append(texts, d.String())
	}
	preference := &policy.Preference{NodeTerm: term, Weight: int(t.Weight)}
	says := fmt.Sprintf("nodes with %s, weight %d", strings.Join(texts, " and "), t.Weight)
	switch {
	case len(demands) > 0 && positive == len(demands):
		return []phrase{intent("prefer-"+strings.Join(names, "-"), says+", are preferred", true, func(p *policy.Policy) bool {
			if p.Nodes != nil && p.Nodes.Prefer != nil {
				return false
			}
			nodesOf(p).Prefer = preference
			return true
		})}, why
	case positive == 0 && len(demands) == 1:
		return []phrase{intent("avoid-"+strings.Join(names, "-"), says+", are disfavoured", true, func(p *policy.Policy) bool {
			if p.Nodes != nil && p.Nodes.Disfavor != nil {
				return false
			}
			nodesOf(p).Disfavor = preference
			return true
		})}, why
	}
	return nil, why
}
