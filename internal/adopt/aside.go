package adopt

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-sched/kubectl-sched/compiler/nodeexpr"
	"github.com/kubectl-sched/kubectl-sched/compiler/profile"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gates/condition"
)

// setAside takes away the pieces that no policy shall say, and notes why.
func (t *template) setAside() {
	note := func(field, value, why string) { t.aside = append(t.aside, aside{field: field, value: value, why: why}) }
	seen := map[string]bool{}
	t.pieces = slices.DeleteFunc(t.pieces, func(p *piece) bool {
		why := t.noMatter(p)
		if seen[p.key] {
			why = "it is there twice, and once says as much"
		}
		seen[p.key] = true
		if why != "" {
			t.aside = append(t.aside, aside{p.field(), p.describe(), why, p.key})
		}
		return why != ""
	})
	pods := t.t.Pods
	if g := pods.SchedulingGroup; g != nil && g.PodGroupName != nil {
		note(string(workload.SchedulingGroup), *g.PodGroupName, "it names the PodGroup of this one object; a policy with gang adopts it")
	}
	for _, k := range sortedKeys(pods.Labels) {
		note(string(workload.TemplateLabels), k+"="+pods.Labels[k], "it says which gang this one object's pods are in; a policy with gang adopts it")
	}
	for _, k := range sortedKeys(pods.Annotations) {
		note(string(workload.TemplateAnnotations), k, "it is for the bundled scheduler, which policies with cache, gpuMemory, gang or gates speak to")
	}
	if t.t.PodSpec == nil {
		return
	}
	name, _ := workload.Lookup(t.w.Object, append(slices.Clone(t.t.PodSpec), "nodeName")...)
	if text, _ := name.(string); text != "" && !t.livePod() {
		note("nodeName", text, "it binds the pods by itself, past every scheduler, so no policy says it (lint: workload/pinned)")
	}
}

// silent is why a piece is left out that nobody wrote.
const silent = "-"

// livePod reports whether the template is a pod of a cluster, in which the API
// server has filled in what nobody said.
func (t *template) livePod() bool { return t.w.Source.Live && t.w.Kind == "Pod" && t.w.Group == "" }

// noMatter says why a piece is no matter of a policy; empty for what is.
func (t *template) noMatter(p *piece) string {
	switch v := p.value.(type) {
	case corev1.TopologySpreadConstraint:
		if isEmpty(v.LabelSelector) {
			return "without a labelSelector it counts no pods and constrains nothing, and no policy says such a thing (lint: workload/spread-no-selector)"
		}
	case corev1.Toleration:
		if (v.Key == corev1.TaintNodeNotReady || v.Key == corev1.TaintNodeUnreachable) && v.Effect == corev1.TaintEffectNoExecute &&
			v.TolerationSeconds != nil && *v.TolerationSeconds == 300 {
			return "the API server gives it to every pod that says nothing else"
		}
	case *corev1.NodeSelector:
		switch {
		case len(v.NodeSelectorTerms) == 0:
			return "no node can meet it (lint: workload/no-node)"
		case unreadable(v):
			return "it cannot be read as node affinity, and the API would refuse it"
		}
	case string:
		switch {
		case p.sort == sortGate && condition.Ours(v):
			return "it is a gate of kubectl sched, which policies with gates put in"
		case p.sort == sortScheduler && strings.HasPrefix(v, profile.NamePrefix):
			return "it is a profile of the bundled scheduler, which policies choose"
		case p.sort == sortPreemption && v == string(corev1.PreemptLowerPriority) && t.livePod():
			return silent
		}
	case priority:
		// Admission fills in what the class says.
		if t.livePod() && v.Preemption == string(corev1.PreemptLowerPriority) {
			p.value = priority{Class: v.Class}
			p.key = newPiece(p.sort, p.value).key
			p.want = p.key
		}
	}
	return ""
}

// describe writes the piece for people, short.
func (p *piece) describe() string {
	switch v := p.value.(type) {
	case selectorLabel:
		return v.Key + "=" + v.Value
	case corev1.Toleration:
		return describeToleration(v)
	case corev1.TopologySpreadConstraint:
		return fmt.Sprintf("%s, maxSkew %d, %s", v.TopologyKey, v.MaxSkew, v.WhenUnsatisfiable)
	case podTerm:
		if v.Required {
			return v.Term.TopologyKey + ", required"
		}
		return fmt.Sprintf("%s, weight %d", v.Term.TopologyKey, v.Weight)
	case priority:
		return v.Class
	case string:
		return v
	case corev1.PreferredSchedulingTerm:
		return fmt.Sprintf("%s, weight %d", describeTerm(v.Preference), v.Weight)
	case *corev1.NodeSelector:
		texts := make([]string, len(v.NodeSelectorTerms))
		for i, term := range v.NodeSelectorTerms {
			texts[i] = describeTerm(term)
		}
		return strings.Join(texts, " or ")
	default:
		return asJSON(v)
	}
}

func describeTerm(t corev1.NodeSelectorTerm) string {
	var texts []string
	for _, r := range append(slices.Clone(t.MatchExpressions), t.MatchFields...) {
		texts = append(texts, strings.TrimSpace(fmt.Sprintf("%s %s %s", r.Key, r.Operator, strings.Join(r.Values, ","))))
	}
	return strings.Join(texts, " and ")
}

func describeToleration(t corev1.Toleration) string {
	text := t.Key
	switch {
	case t.Key == "" && t.Operator == corev1.TolerationOpExists:
		text = "every taint"
	case t.Value != "":
		text += "=" + t.Value
	}
	if t.Effect != "" {
		text += ":" + string(t.Effect)
	}
	if t.TolerationSeconds != nil {
		text += fmt.Sprintf(" for %ds", *t.TolerationSeconds)
	}
	return text
}

// unreadable reports whether the compiler cannot read the terms.
func unreadable(s *corev1.NodeSelector) bool {
	_, err := nodeexpr.FromSelector(s)
	return err != nil
}
