package lint

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-sched/kubectl-sched/compiler/nodelabel"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

func nodeRules() []Rule {
	return []Rule{
		{
			ID: "workload/terms-are-alternatives", Severity: diag.Warning, Needs: Files, each: termsAreAlternatives,
			Doc: "A node needs to meet one of several node selector terms, not all of them. Terms that speak of different labels look like demands, and are alternatives.",
			Fix: "Write what must hold together as one term.",
		},
		{
			ID: "workload/hostname-is-not-name", Severity: diag.Warning, Needs: Nodes, each: hostnameIsNotName,
			Doc: "The label kubernetes.io/hostname may differ from the node's name. Pods that ask for the name by the label stay Pending.",
			Fix: "Write the value of the label, or matchFields with metadata.name.",
		},
		{
			ID: "workload/no-node", Severity: diag.Warning, Needs: Nodes, each: noNode,
			Doc: "What the manifest demands of nodes is met by none that there is, or by none whose taints the pods tolerate: all of them stay Pending.",
			Fix: "Demand labels that nodes have, and tolerate their taints.",
		},
		{
			ID: "workload/too-large", Severity: diag.Warning, Needs: Cluster, each: tooLarge,
			Doc: "A pod asks for more than any node has that can take it, even an empty one, and stays Pending. Where nodes are made on demand it is a note, since a larger one may come.",
			Fix: "Ask for less, or add larger nodes.",
		},
		{
			ID: "workload/deprecated-label", Severity: diag.Warning, Needs: Files, each: deprecatedLabels,
			Doc: "Nodes are no longer given the labels failure-domain.beta.kubernetes.io/*, beta.kubernetes.io/* and the role master; what still asks for them fails on a new cluster, and a toleration of the old taint tolerates nothing. Where the label that took its place is named beside it, nothing is said.",
			Fix: "Write the label that took its place.",
		},
	}
}

// noNode judges what the manifest says by itself, with what policies have
// tolerated: of what they demand the compiler speaks.
func noNode(t *template) {
	if t.isDaemonSet() || len(t.t.Pods.NodeSelector) == 0 && len(nodeTerms(t.t.Pods)) == 0 || len(t.caps().Nodes) == 0 {
		return
	}
	if t.asksForHostname() {
		return // hostname-is-not-name has more to say
	}
	reached := t.reachBy(t.t.Pods)
	if len(reached.usable) > 0 {
		return
	}
	field, below := workload.NodeAffinity, []any{requiredTerms}
	if len(t.t.Pods.NodeSelector) > 0 {
		field, below = workload.NodeSelector, nil
	}
	severity := diag.Warning
	if t.caps().NodePoolsKnown {
		severity = diag.Info // one may be made on demand
	}
	if len(reached.allowed) > 0 {
		var names []string
		for _, n := range reached.allowed {
			names = append(names, n.Name)
		}
		taint := t.keptOffBy(reached.allowed[0])[0]
		t.report(severity, fmt.Sprintf("only %s would do, where the pods do not tolerate %s, so that all stay Pending; tolerate it", named(names), taint.ToString()), field, below...)
		return
	}
	t.report(severity, fmt.Sprintf("none of the %d nodes meets it, so that all pods stay Pending; demand labels that nodes have%s", len(t.caps().Nodes), t.nearestLabel()), field, below...)
}

func (t *template) asksForHostname() bool {
	_, said := t.t.Pods.NodeSelector[corev1.LabelHostname]
	for _, term := range nodeTerms(t.t.Pods) {
		for _, e := range term.MatchExpressions {
			said = said || e.Key == corev1.LabelHostname
		}
	}
	return said
}

// nearestLabel says which label may have been meant, where no node has one that the
// manifest asks for.
func (t *template) nearestLabel() string {
	known := map[string]bool{}
	for _, n := range t.caps().Nodes {
		for key := range n.Labels {
			known[key] = true
		}
	}
	asked := map[string]bool{}
	for key := range t.t.Pods.NodeSelector {
		asked[key] = true
	}
	for _, term := range nodeTerms(t.t.Pods) {
		for _, e := range term.MatchExpressions {
			asked[e.Key] = asksFor(e)
		}
	}
	for _, key := range sortedKeys(asked) {
		if !asked[key] || known[key] {
			continue
		}
		if near, ok := diag.Nearest(key, sortedKeys(known)); ok {
			return fmt.Sprintf(" (no node has %q; did you mean %q?)", key, near)
		}
		return fmt.Sprintf(" (no node has %q)", key)
	}
	return ""
}

// deprecatedLabels looks at every place of a manifest that names a label or taint of
// nodes.
func deprecatedLabels(t *template) {
	type use struct {
		key   string
		field workload.Field
		below []any
		// entry is what stands there in YAML with another key.
		entry func(key string) string
	}
	var uses []use
	named := map[string]bool{}
	add := func(key string, f workload.Field, entry func(string) string, below ...any) {
		named[string(f)+key] = true
		uses = append(uses, use{key, f, below, entry})
	}
	asKey := func(key string) string { return "key: " + key }
	for _, key := range sortedKeys(t.t.Pods.NodeSelector) {
		value := t.t.Pods.NodeSelector[key]
		add(key, workload.NodeSelector, func(key string) string { return key + ": " + scalar(value) }, key)
	}
	for i, term := range nodeTerms(t.t.Pods) {
		for j, e := range term.MatchExpressions {
			add(e.Key, workload.NodeAffinity, asKey, requiredTerms, "nodeSelectorTerms", i, "matchExpressions", j, "key")
		}
	}
	for i, term := range preferredTerms(t.t.Pods) {
		for j, e := range term.Preference.MatchExpressions {
			add(e.Key, workload.NodeAffinity, asKey, preferredTermsKey, i, "preference", "matchExpressions", j, "key")
		}
	}
	asTopology := func(key string) string { return "topologyKey: " + key }
	for i, c := range t.t.Pods.TopologySpreadConstraints {
		add(c.TopologyKey, workload.SpreadConstraints, asTopology, i, "topologyKey")
	}
	for _, a := range t.affinityTerms() {
		add(a.TopologyKey, a.field, asTopology, append(a.path(), "topologyKey")...)
	}
	for i, tol := range t.t.Pods.Tolerations {
		add(tol.Key, workload.Tolerations, asKey, i, "key")
	}
	for _, u := range uses {
		now := nodelabel.Replacement(u.key)
		if now == "" || named[string(u.field)+now] {
			continue
		}
		f := t.report("", fmt.Sprintf("%q is out of use, and new clusters do not have it; write %q", u.key, now), u.field, u.below...)
		f.Fix = replace(f.Range, fmt.Sprintf("write %s", now), u.entry(now))
	}
}
