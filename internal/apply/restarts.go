package apply

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kubectl-sched/kubectl-sched/internal/workload"
)

// Restarts reports whether the change makes the object's controller replace its
// pods by itself, and how many there are. The built-in controllers do so when
// the pod template changes, unless told to wait for somebody to delete the pods.
// Objects of other kinds are taken to do so with any change of their spec.
func Restarts(before, after map[string]any) (bool, int) {
	kind, _ := before["kind"].(string)
	replicas := "/spec/replicas"
	changed := func(pointer string) bool {
		from, _ := valueAt(before, pointer)
		to, _ := valueAt(after, pointer)
		return !same(from, to)
	}
	switch kind {
	case "CronJob", "Job", "ReplicaSet", "ReplicationController", "Pod":
		return false, 0
	case "Deployment", "StatefulSet", "DaemonSet":
		if strategy, _ := valueAt(before, "/spec/updateStrategy/type"); strategy == "OnDelete" || !changed("/spec/template") {
			return false, 0
		}
		if kind == "DaemonSet" {
			replicas = "/status/desiredNumberScheduled"
		}
	default:
		if !changed("/spec") {
			return false, 0
		}
	}
	n, ok := valueAt(before, replicas)
	if !ok {
		return true, 0
	}
	count, _ := n.(int64)
	return count > 0 || kind != "Deployment" && kind != "StatefulSet", int(count)
}

// findDisruptions fills in the PodDisruptionBudgets that cover pods which
// restart. They are looked up, never acted on: who may not list them is told
// nothing about them.
func (a *Applier) findDisruptions(ctx context.Context, cs *ChangeSet) error {
	var restarting []*workload.Workload
	var namespaces []string
	for _, w := range cs.Workloads {
		if w.Restarts {
			restarting = append(restarting, w.Workload)
			namespaces = append(namespaces, w.Workload.Namespace)
		}
	}
	slices.Sort(namespaces)
	var budgets []*policyv1.PodDisruptionBudget
	for _, namespace := range slices.Compact(namespaces) {
		list, err := a.Client.Kube.PolicyV1().PodDisruptionBudgets(namespace).List(ctx, metav1.ListOptions{})
		if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("list poddisruptionbudgets in namespace %s: %w", namespace, err)
		}
		for i := range list.Items {
			budgets = append(budgets, &list.Items[i])
		}
	}
	cs.Disruptions = Disruptions(budgets, restarting)
	return nil
}

// Disruptions returns which of the budgets cover pods of the workloads, by name. A
// budget whose selector cannot be read covers none.
func Disruptions(budgets []*policyv1.PodDisruptionBudget, restarting []*workload.Workload) []Disruption {
	var out []Disruption
	for _, b := range budgets {
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err != nil {
			continue
		}
		d := Disruption{Namespace: b.Namespace, Name: b.Name, Allowed: b.Status.DisruptionsAllowed}
		for _, w := range restarting {
			if w.Namespace == b.Namespace && slices.ContainsFunc(w.Templates, func(t workload.Template) bool { return selector.Matches(labels.Set(t.Labels)) }) {
				d.Workloads = append(d.Workloads, w.Ref())
			}
		}
		if slices.Sort(d.Workloads); len(d.Workloads) > 0 {
			out = append(out, d)
		}
	}
	slices.SortFunc(out, func(a, b Disruption) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out
}
