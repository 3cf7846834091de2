package adopt

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/policy"
)

// topologyNames are the names of the topologies that every cluster has.
var topologyNames = map[string]string{
	corev1.LabelTopologyZone: "zone", corev1.LabelTopologyRegion: "region", corev1.LabelHostname: "node",
}

func topologyName(key string) string { return cmp.Or(topologyNames[key], key) }

// topologySlug is a topology's name as a word.
func topologySlug(key string) string {
	name := topologyName(key)
	return name[strings.LastIndexByte(name, '/')+1:]
}

// subjects returns the ways to say which pods a selector counts: the workload's
// own, or those with its labels.
func subjects(t *template, s *metav1.LabelSelector, namespaces []string, namespaceSelector *metav1.LabelSelector) []policy.Subject {
	var out []policy.Subject
	if namespaceSelector == nil && len(namespaces) == 0 && t.countsOwn(s) {
		out = append(out, policy.Subject{Kind: policy.EachWorkload})
	}
	by := policy.Subject{Kind: policy.ByLabels, Labels: map[string]policy.Values{}, Namespaces: sorted(namespaces)}
	switch {
	case namespaceSelector == nil:
	case isEmpty(namespaceSelector) && len(namespaces) == 0:
		by.Namespaces = []string{"*", "kube-system"}
	default:
		return out
	}
	c := compiler.CanonicalSelector(s)
	if isEmpty(c) {
		return out
	}
	for _, e := range c.MatchExpressions {
		if _, twice := by.Labels[e.Key]; twice {
			return out
		}
		switch e.Operator {
		case metav1.LabelSelectorOpIn:
			by.Labels[e.Key] = policy.Values(e.Values)
		case metav1.LabelSelectorOpExists:
			by.Labels[e.Key] = policy.Values{"*"}
		default:
			return out
		}
	}
	return append(out, by)
}

// countsOwn reports whether the selector may be that of the workload's own pods,
// as the compiler takes it from the object.
func (t *template) countsOwn(s *metav1.LabelSelector) bool {
	own := asJSON(compiler.CanonicalSelector(s))
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil || !selector.Matches(labels.Set(t.t.Labels)) {
		return false
	}
	candidates := []*metav1.LabelSelector{{MatchLabels: t.t.Labels}, {MatchLabels: t.t.PodLabels}}
	if o := t.w.Selector; o != nil {
		of := &metav1.LabelSelector{MatchLabels: o.MatchLabels}
		for _, e := range o.MatchExpressions {
			of.MatchExpressions = append(of.MatchExpressions, metav1.LabelSelectorRequirement{Key: e.Key, Operator: metav1.LabelSelectorOperator(e.Operator), Values: e.Values})
		}
		candidates = append(candidates, of)
	}
	return slices.ContainsFunc(candidates, func(c *metav1.LabelSelector) bool { return asJSON(compiler.CanonicalSelector(c)) == own })
}

func describeSubject(s policy.Subject) string {
	if s.Kind != policy.ByLabels {
		return "each workload's own pods"
	}
	var parts []string
	for _, k := range sortedKeys(s.Labels) {
		parts = append(parts, k+"="+strings.Join(s.Labels[k], "|"))
	}
	text := "pods with " + strings.Join(parts, ", ")
	if len(s.Namespaces) > 0 {
		text += " in " + strings.Join(s.Namespaces, ", ")
	}
	return text
}

// spread says a constraint by spread, which is plain where the constraint has
// nothing of what the compiler adds.
func spread(t *template, c corev1.TopologySpreadConstraint) ([]phrase, string) {
	plain := c.NodeTaintsPolicy == nil && len(c.MatchLabelKeys) == 0
	switch {
	case c.MaxSkew < 1 || c.MinDomains != nil && *c.MinDomains < 1:
		return nil, "the API would refuse it"
	case c.NodeAffinityPolicy != nil:
		return nil, "spread does not say nodeAffinityPolicy"
	case c.NodeTaintsPolicy != nil && *c.NodeTaintsPolicy != corev1.NodeInclusionPolicyHonor:
		return nil, fmt.Sprintf("spread does not say nodeTaintsPolicy %s", *c.NodeTaintsPolicy)
	}
	require := c.WhenUnsatisfiable == corev1.DoNotSchedule
	s := policy.Spread{Strength: policy.Prefer, MaxSkew: int(c.MaxSkew), Plain: plain}
	if require {
		s.Strength = policy.Require
	}
	if c.MinDomains != nil {
		s.MinDomains = new(int(*c.MinDomains))
	}
	name := topologyName(c.TopologyKey)
	var out []phrase
	for _, of := range subjects(t, c.LabelSelector, nil, nil) {
		says := fmt.Sprintf("spread over %s, maxSkew %d, %sd: %s", name, c.MaxSkew, s.Strength, describeSubject(of))
		if s.Strength == policy.Prefer {
			says = fmt.Sprintf("spread over %s, maxSkew %d, preferred: %s", name, c.MaxSkew, describeSubject(of))
		}
		out = append(out, intent("spread-"+topologySlug(c.TopologyKey), says, !require, func(p *policy.Policy) bool {
			if _, there := p.Spread[name]; there {
				return false
			}
			entry := s
			entry.Of = of
			p.Spread = with(p.Spread, name, entry)
			return true
		}))
	}
	why := "spread does not give it back as it was: it adds minDomains, nodeTaintsPolicy or matchLabelKeys, or counts other pods"
	if len(out) == 0 {
		why = "spread counts pods by the values of their labels, and this selector says more"
	} else if selector, err := metav1.LabelSelectorAsSelector(c.LabelSelector); err == nil && !selector.Matches(labels.Set(t.t.Labels)) {
		why = "it counts other pods than the workload's own, which spread refuses (lint: workload/spread-misses-own-pods)"
	}
	return out, why
}

// colocation says a term by together or apart.
func colocation(t *template, apart bool, term podTerm) ([]phrase, string) {
	intentName := "together"
	if apart {
		intentName = "apart"
	}
	switch {
	case !term.Required && !isWeight(term.Weight):
		return nil, "the API would refuse it"
	case term.Term.LabelSelector == nil:
		return nil, "without a labelSelector it means no pods (lint: workload/affinity-no-selector)"
	case isEmpty(term.Term.LabelSelector):
		return nil, intentName + " counts pods by their labels, and this means all pods (lint: workload/affinity-no-selector)"
	case len(term.Term.MismatchLabelKeys) > 0:
		return nil, intentName + " does not say mismatchLabelKeys"
	}
	c := policy.Colocation{On: topologyName(term.Term.TopologyKey), Strength: policy.Require, Weight: defaultWeight}
	strength := "required"
	if !term.Required {
		c.Strength, c.Weight, c.Plain = policy.Prefer, int(term.Weight), len(term.Term.MatchLabelKeys) == 0
		strength = fmt.Sprintf("preferred with weight %d", term.Weight)
	}
	slug := intentName + "-" + topologySlug(term.Term.TopologyKey)
	var out []phrase
	for _, of := range subjects(t, term.Term.LabelSelector, term.Term.Namespaces, term.Term.NamespaceSelector) {
		name := colocationName(c, of)
		says := fmt.Sprintf("%s on one %s, %s: %s", intentName, c.On, strength, describeSubject(of))
		out = append(out, intent(slug, says, !term.Required, func(p *policy.Policy) bool {
			all := &p.Together
			if apart {
				all = &p.Apart
			}
			if _, there := (*all)[name]; there {
				return false
			}
			entry := c
			entry.Of = of
			*all = with(*all, name, entry)
			return true
		}))
	}
	why := intentName + " does not give it back as it was"
	if len(out) == 0 {
		why = intentName + " counts pods by the values of their labels, in namespaces by name, and this says more"
	}
	return out, why
}

// defaultWeight is what the schema says of a weight that is not given.
const defaultWeight = 50

// colocationName is the name, for people, of an entry.
func colocationName(c policy.Colocation, of policy.Subject) string {
	name := word(topologySlug(c.On))
	if of.Kind == policy.ByLabels {
		var values []string
		for _, k := range sortedKeys(of.Labels) {
			values = append(values, of.Labels[k][0])
		}
		name += "-" + word(strings.Join(values, "-"))
	}
	if c.Strength == policy.Prefer {
		name += "-preferred"
	}
	return word(name)
}

// with returns the map with one entry more, and leaves the one that was given.
func with[V any](m map[string]V, key string, value V) map[string]V {
	out := map[string]V{key: value}
	for k, v := range m {
		out[k] = v
	}
	return out
}
