package simulate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Drain cordons the nodes and evicts their pods, but for those of DaemonSets and
// static ones, as PodDisruptionBudgets allow.
type Drain struct{ Nodes []string }

func (d Drain) what() string { return fmt.Sprintf("drain %d nodes", len(d.Nodes)) }

func (d Drain) take(ctx context.Context, w *World) error {
	for _, name := range d.Nodes {
		node := w.nodes[name]
		if node == nil {
			return fmt.Errorf("there is no node %q in the snapshot to drain", name)
		}
		cordoned := node.DeepCopy()
		cordoned.Spec.Unschedulable = true
		if err := w.putNode(cordoned); err != nil {
			return err
		}
	}
	for _, name := range d.Nodes {
		if err := w.drain(ctx, name); err != nil {
			return err
		}
	}
	return w.settle(ctx)
}

// drain evicts the pods of the node one after the other. A budget that allows no
// eviction now may once the pods that went before run elsewhere; one that never
// does keeps its pod.
func (w *World) drain(ctx context.Context, node string) error {
	for {
		evicted := false
		for _, pod := range w.on(node) {
			if o := w.pods[keyOf(pod)]; isMirror(pod) || o != nil && o.kind == "DaemonSet" {
				continue
			}
			if budget := w.forbids(pod); budget != nil {
				continue
			}
			evicted = true
			if err := w.engine.Remove(pod); err != nil {
				return err
			}
			if err := w.replace(pod); err != nil {
				return err
			}
			if err := w.settle(ctx); err != nil {
				return err
			}
		}
		if !evicted {
			break
		}
	}
	for _, pod := range w.on(node) {
		if budget := w.forbids(pod); budget != nil && !isMirror(pod) {
			w.stuck = append(w.stuck, Stuck{Workload: w.WorkloadOf(pod), At: pod.Name, Budget: budget.Name, Node: node})
		}
	}
	return nil
}

// on returns the pods on the node, by name.
func (w *World) on(node string) []*corev1.Pod {
	var pods []*corev1.Pod
	for name := range w.pods {
		if pod, ok := w.engine.Pod(name); ok && pod.Spec.NodeName == node {
			pods = append(pods, pod)
		}
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return strings.Compare(keyOf(a).String(), keyOf(b).String()) })
	return pods
}

// forbids returns the budget that does not allow the pod's eviction now, or nil.
func (w *World) forbids(pod *corev1.Pod) *policyv1.PodDisruptionBudget {
	for _, budget := range w.budgets[pod.Namespace] {
		selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		if err != nil || !selector.Matches(labels.Set(pod.Labels)) {
			continue
		}
		healthy := int32(0)
		for name := range w.pods {
			if other, ok := w.engine.Pod(name); ok && name.Namespace == pod.Namespace && other.Spec.NodeName != "" && selector.Matches(labels.Set(other.Labels)) {
				healthy++
			}
		}
		if healthy-1 < budget.Status.DesiredHealthy {
			return budget
		}
	}
	return nil
}
