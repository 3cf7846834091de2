package lint

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

func podAffinityRules() []Rule {
	return []Rule{
		{
			ID: "workload/affinity-no-selector", Severity: diag.Error, Needs: Files, each: affinityNoSelector,
			Doc: "A term of affinity between pods without a label selector selects no pod: required affinity then keeps every pod Pending, and anti-affinity does nothing. An empty selector, {}, selects all pods.",
			Fix: "Select the pods that are meant.",
		},
		{
			ID: "workload/affinity-unmatched", Severity: diag.Warning, Needs: Cluster, each: affinityUnmatched,
			Doc: "A required affinity to pods that nobody has keeps every pod Pending.",
			Fix: "Select labels that the other pods have, in their namespace.",
		},
	}
}

func affinityNoSelector(t *template) {
	for _, a := range t.affinityTerms() {
		switch {
		case a.LabelSelector != nil:
		case a.field == workload.PodAffinity:
			t.report("", "the affinity has no labelSelector and selects no pod, so that all pods stay Pending; select the pods that are meant", a.field, a.path()...)
		default:
			t.report(diag.Warning, "the anti-affinity has no labelSelector and selects no pod, so that it keeps nobody apart; select the pods that are meant", a.field, a.path()...)
		}
	}
}

// affinityUnmatched leaves out terms that select the pods themselves: the first of
// them goes anywhere.
func affinityUnmatched(t *template) {
	for _, a := range t.affinityTerms() {
		if a.field != workload.PodAffinity || a.LabelSelector == nil || t.selectsOwn(a.LabelSelector) && t.looksAt(a.PodAffinityTerm, t.w.Namespace) {
			continue
		}
		found := false
		for ns := range t.byNamespace {
			found = found || t.looksAt(a.PodAffinityTerm, ns) && t.anyPod(ns, a.LabelSelector)
		}
		for ns := range t.podsIn {
			found = found || t.looksAt(a.PodAffinityTerm, ns) && t.anyPod(ns, a.LabelSelector)
		}
		if !found {
			t.report("", fmt.Sprintf("no pod of the cluster or the manifests has %s where the affinity looks, so that all pods stay Pending; select labels that the other pods have", metav1.FormatLabelSelector(a.LabelSelector)), a.field, append(a.path(), "labelSelector")...)
		}
	}
}

// anyPod reports whether the selector selects a pod of the namespace: one of the
// manifests, or one that runs.
func (j *judgement) anyPod(namespace string, s *metav1.LabelSelector) bool {
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return true // The API server refuses it.
	}
	return slices.ContainsFunc(j.byNamespace[namespace], func(t *template) bool { return selector.Matches(t.labels) }) ||
		slices.ContainsFunc(j.podsIn[namespace], func(p *corev1.Pod) bool { return selector.Matches(labels.Set(p.Labels)) })
}
