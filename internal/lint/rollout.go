package lint

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

func rolloutRules() []Rule {
	return []Rule{
		{
			ID: "workload/rollout-deadlock", Severity: diag.Warning, Needs: Nodes, each: rolloutDeadlock,
			Doc: "With one pod on each node, as many replicas as nodes and no pod that may go first, every rollout waits for a node that is not there.",
			Fix: "Set maxSurge: 0 and maxUnavailable: 1.",
		},
		{
			ID: "workload/pdb-blocks-drain", Severity: diag.Warning, Needs: Files, run: budgetBlocks,
			Doc: "A PodDisruptionBudget that never allows a pod less makes every eviction wait: nodes cannot be drained for an upgrade, an autoscaler cannot take them out, and a workload that rolls out by eviction (OnDelete) does not roll out. A controller's own rolling update does not ask the budget.",
			Fix: "Allow one pod less than there are.",
		},
		{
			ID: "workload/pdb-overlap", Severity: diag.Error, Needs: Files, run: budgetsOverlap,
			Doc: "The API server refuses to evict a pod that more than one PodDisruptionBudget selects, whatever they allow.",
			Fix: "Keep one budget for each pod.",
		},
		{
			ID: "workload/pdb-selects-nothing", Severity: diag.Warning, Needs: Cluster, run: budgetUnmatched,
			Doc: "A PodDisruptionBudget whose selector selects no pod protects nothing.",
			Fix: "Select the pods by the labels that they have.",
		},
		{
			ID: "workload/pinned", Severity: diag.Warning, Needs: Files, each: pinned,
			Doc: "A workload whose pods may run on one node or in one zone alone, and which asks for high availability, by a budget or by rules that keep its pods apart, goes down with that place.",
			Fix: "Allow more nodes or zones.",
		},
		{
			ID: "workload/selectors-overlap", Severity: diag.Warning, Needs: Files, run: selectorsOverlap,
			Doc: "Where the selectors of two workloads in a namespace select each other's pods, what counts pods by these labels counts both: their spreads, rules between pods, budgets and Services.",
			Fix: "Give each workload a label of its own, and select by that too.",
		},
	}
}

// budgetBlocks resolves a budget's numbers as the disruption controller does
// (pkg/controller/disruption, getExpectedPodCount): percentages are rounded up.
func budgetBlocks(j *judgement) {
	for _, b := range j.known.budgets {
		pods, counted := 0, false
		for _, t := range j.byNamespace[b.namespace] {
			n, known := t.replicas()
			if !b.covers(t) || t.t.Immutable {
				continue
			}
			if !known {
				counted = false
				break
			}
			pods, counted = pods+n, true
		}
		field := "maxUnavailable"
		if b.spec.MinAvailable != nil {
			field = "minAvailable"
		}
		if zero(b.spec.MaxUnavailable) {
			j.report(diag.Finding{Subject: b.ref(), Range: b.at("spec", field), Message: fmt.Sprintf("the budget allows no pod less (maxUnavailable %s), so that no node with one can be drained; allow 1", b.spec.MaxUnavailable)})
			continue
		}
		if b.spec.MinAvailable == nil || b.spec.MinAvailable.String() == "0" {
			continue
		}
		whole := b.spec.MinAvailable.Type == intstr.String && b.spec.MinAvailable.StrVal == "100%"
		if !whole && (!counted || pods == 0) {
			continue
		}
		least, err := intstr.GetScaledValueFromIntOrPercent(b.spec.MinAvailable, pods, true)
		switch {
		case err != nil || !whole && least < pods:
		case whole && !counted:
			j.report(diag.Finding{Subject: b.ref(), Range: b.at("spec", field), Message: "the budget allows no pod less (minAvailable 100%), so that no node with one can be drained; write maxUnavailable: 1"})
		case pods == 1:
			j.report(diag.Finding{Severity: diag.Info, Subject: b.ref(), Range: b.at("spec", field), Message: fmt.Sprintf("the budget wants %s of the 1 pod that there is, so that its node cannot be drained while it is there; run 2 pods, or leave the budget out", b.spec.MinAvailable)})
		default:
			j.report(diag.Finding{Subject: b.ref(), Range: b.at("spec", field), Message: fmt.Sprintf("the budget wants %s of %d pods, all that there are, so that no node with one can be drained; write maxUnavailable: 1", b.spec.MinAvailable, pods)})
		}
	}
}

func zero(n *intstr.IntOrString) bool { return n != nil && (n.String() == "0" || n.String() == "0%") }

func budgetsOverlap(j *judgement) {
	budgets := map[string][]*budget{}
	for i := range j.known.budgets {
		b := &j.known.budgets[i]
		budgets[b.namespace] = append(budgets[b.namespace], b)
	}
	for _, t := range j.templates {
		var first *budget
		for _, b := range budgets[t.w.Namespace] {
			switch {
			case !b.covers(t):
			case first == nil:
				first = b
			default:
				f := t.reportAt(fmt.Sprintf("two budgets select the pods, %q and %q, and the API server then refuses every eviction; keep one", first.name, b.name), "metadata", "name")
				for _, its := range []*budget{first, b} {
					if at := its.at("spec", "selector"); at.Start.IsValid() {
						f.Related = append(f.Related, diag.Related{Range: at, Message: its.ref()})
					}
				}
			}
		}
	}
}

// budgetUnmatched looks at budgets of the manifests; those of the cluster are not
// in anybody's hands here.
func budgetUnmatched(j *judgement) {
	for _, b := range j.known.budgets {
		if !b.at().Start.IsValid() || b.spec.Selector == nil || j.anyPod(b.namespace, b.spec.Selector) {
			continue
		}
		j.report(diag.Finding{Subject: b.ref(), Range: b.at("spec", "selector"), Message: "no pod of the cluster or the manifests is one that the budget selects, so that it protects nothing; select labels that the pods have"})
	}
}

// pinned looks for demands of availability beside a demand of one place. A spread
// over the same key has a rule of its own.
func pinned(t *template) {
	n, known := t.replicas()
	if known && n < 2 || !known || t.isDaemonSet() || t.t.Immutable {
		return
	}
	for _, place := range []struct{ key, what string }{{corev1.LabelHostname, "node"}, {corev1.LabelTopologyZone, "zone"}} {
		at, value := t.pinnedTo(place.key)
		if value == "" {
			continue
		}
		asks := t.asksForAvailability(place.key)
		if asks == "" {
			continue
		}
		f := t.judgement.report(diag.Finding{Subject: t.subject(), Range: at, Message: fmt.Sprintf("all %d pods are in the one %s %q, and %s: they go down together; allow more than one %s", n, place.what, value, asks, place.what)})
		if !at.Start.IsValid() {
			f.Range = t.w.Source.At("metadata", "name")
		}
		return
	}
}

// asksForAvailability says what of the workload asks that it survives the loss of
// the place; empty for nothing.
func (t *template) asksForAvailability(key string) string {
	for _, b := range t.known.budgets {
		if b.covers(t) {
			return fmt.Sprintf("budget %q is to keep them available", b.name)
		}
	}
	if a := t.pods.Affinity; a != nil && a.PodAntiAffinity != nil {
		for _, term := range a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			if t.selectsOwn(term.LabelSelector) {
				return "anti-affinity is to keep them apart"
			}
		}
		for _, term := range a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
			if t.selectsOwn(term.PodAffinityTerm.LabelSelector) {
				return "anti-affinity is to keep them apart"
			}
		}
	}
	for _, c := range t.pods.TopologySpreadConstraints {
		hard := c.WhenUnsatisfiable == corev1.DoNotSchedule
		if !selectsNothing(c) && (!hard || c.TopologyKey != key) {
			return fmt.Sprintf("a spread over %q is to keep them apart", c.TopologyKey)
		}
	}
	return ""
}

// selectorsOverlap compares workloads whose controllers count pods by labels.
func selectorsOverlap(j *judgement) {
	selects := func(s *workload.Selector, labels map[string]string) bool {
		if s == nil || len(s.MatchLabels) == 0 || len(s.MatchExpressions) > 0 {
			return false
		}
		for k, v := range s.MatchLabels {
			if got, ok := labels[k]; !ok || got != v {
				return false
			}
		}
		return true
	}
	byNamespace := map[string][]*template{}
	for _, t := range j.templates {
		if t.w.Selector != nil && !t.t.Immutable {
			byNamespace[t.w.Namespace] = append(byNamespace[t.w.Namespace], t)
		}
	}
	for _, t := range j.templates {
		for _, other := range byNamespace[t.w.Namespace] {
			if other == t {
				break // the later of two speaks
			}
			if other.w == t.w || t.w.Selector == nil || t.t.Immutable {
				continue
			}
			if selects(t.w.Selector, other.t.Labels) && selects(other.w.Selector, t.t.Labels) {
				f := t.reportAt(fmt.Sprintf("its selector and that of %s select each other's pods, which spreads, budgets and Services then count together; give each a label of its own", other.w.Ref()), "spec", "selector")
				f.Related = append(f.Related, diag.Related{Range: other.w.Source.At("spec", "selector"), Message: other.w.Ref()})
				break
			}
		}
	}
}
