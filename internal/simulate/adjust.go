package simulate

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"

	"github.com/kubectl-sched/kubectl-sched/internal/simulate/store"
)

// Create adds objects that pods depend on: PriorityClasses and PodGroups.
type Create struct{ Objects []store.Object }

func (c Create) what() string { return fmt.Sprintf("create %d objects", len(c.Objects)) }

func (c Create) take(_ context.Context, w *World) error {
	for _, o := range c.Objects {
		if class, ok := o.(*schedulingv1.PriorityClass); ok {
			w.classes[class.Name] = class
		}
		copied, ok := o.DeepCopyObject().(store.Object)
		if !ok {
			return fmt.Errorf("a simulated cluster cannot hold a %T", o)
		}
		if err := w.engine.Put(copied); err != nil {
			return err
		}
	}
	return nil
}

// Mark gives nodes labels and taints, beside those that they have. Pods that are
// on them stay.
type Mark struct {
	Nodes  []string
	Labels map[string]string
	Taints []corev1.Taint
}

func (m Mark) what() string { return fmt.Sprintf("mark %d nodes", len(m.Nodes)) }

func (m Mark) take(_ context.Context, w *World) error {
	for _, name := range m.Nodes {
		node := w.nodes[name]
		if node == nil {
			return fmt.Errorf("there is no node %q in the snapshot to mark", name)
		}
		marked := node.DeepCopy()
		if marked.Labels == nil {
			marked.Labels = map[string]string{}
		}
		maps.Copy(marked.Labels, m.Labels)
		for _, taint := range m.Taints {
			marked.Spec.Taints = slices.DeleteFunc(marked.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&taint) })
			marked.Spec.Taints = append(marked.Spec.Taints, taint)
		}
		if err := w.putNode(marked); err != nil {
			return err
		}
	}
	return nil
}
