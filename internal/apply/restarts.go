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
)

// restarts reports whether the change makes the object's controller replace its
// pods by itself, and how many there are. The built-in controllers do so when
// the pod template changes, unless told to wait for somebody to delete the pods.
// Objects of other kinds are taken to do so with any change of their spec.
func restarts(before, after map[string]any) (bool, int) {
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
	byNamespace := map[string][]*WorkloadChange{}
	var namespaces []string
	for i := range cs.Workloads {
		if w := &cs.Workloads[i]; w.Restarts {
			if _, ok := byNamespace[w.Workload.Namespace]; !ok {
				namespaces = append(namespaces, w.Workload.Namespace)
			}
			byNamespace[w.Workload.Namespace] = append(byNamespace[w.Workload.Namespace], w)
		}
	}
	slices.Sort(namespaces)
	for _, namespace := range namespaces {
		budgets, err := a.Client.Kube.PolicyV1().PodDisruptionBudgets(namespace).List(ctx, metav1.ListOptions{})
		if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("list poddisruptionbudgets in namespace %s: %w", namespace, err)
		}
		for i := range budgets.Items {
			if d, ok := disruption(&budgets.Items[i], byNamespace[namespace]); ok {
				cs.Disruptions = append(cs.Disruptions, d)
			}
		}
	}
	slices.SortFunc(cs.Disruptions, func(a, b Disruption) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return nil
}

func disruption(budget *policyv1.PodDisruptionBudget, changes []*WorkloadChange) (Disruption, bool) {
	d := Disruption{Namespace: budget.Namespace, Name: budget.Name, Allowed: budget.Status.DisruptionsAllowed}
	selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	if err != nil {
		return d, false
	}
	for _, change := range changes {
		for _, template := range change.Workload.Templates {
			if selector.Matches(labels.Set(template.Labels)) {
				d.Workloads = append(d.Workloads, change.Workload.Ref())
				break
			}
		}
	}
	slices.Sort(d.Workloads)
	return d, len(d.Workloads) > 0
}
