package simulate

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"

	"github.com/kubectl-sched/kubectl-sched/internal/simulate/engine"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/podgroup"
)

// Gang is a group of pods that are placed together, as the scheduler knows it.
type Gang struct {
	// Name is what users call it.
	Name string
	// Min is how many members must be placed at once; 0 where nobody says.
	Min int32
	// Timeout is how long it may wait before seats are held for it, as its PodGroup
	// says; 0 where that does not say.
	Timeout time.Duration
	// Members are its pods, by name. Nobody may change them.
	Members []*corev1.Pod
}

// GangOf returns the gang of the pod, and false where the scheduler knows of none.
func (w *World) GangOf(pod *corev1.Pod) (Gang, bool) {
	stored, ok := w.engine.Pod(keyOf(pod))
	if !ok {
		return Gang{}, false
	}
	of := w.engine.GroupOf(stored)
	if of == "" {
		return Gang{}, false
	}
	g := Gang{Name: podgroup.GangName(of)}
	if group, ok := engine.Find(w.engine, &schedulingv1beta1.PodGroup{}, pod.Namespace, of); ok {
		if gang := group.Spec.SchedulingPolicy.Gang; gang != nil {
			g.Min = gang.MinCount
		}
		if own, ok := podgroup.OwnTimeout(group); ok {
			g.Timeout = own
		}
	}
	for name := range w.pods {
		if member, ok := w.engine.Pod(name); ok && name.Namespace == pod.Namespace && w.engine.GroupOf(member) == of {
			g.Members = append(g.Members, member)
		}
	}
	slices.SortFunc(g.Members, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return g, true
}

// Wanted is how many pods the workload that the pod belongs to is to have, and false
// where that is not known.
func (w *World) Wanted(pod *corev1.Pod) (int32, bool) {
	o := w.ownerOf(pod)
	if o == nil || o.template == nil || o.kind == "DaemonSet" {
		return 0, false
	}
	return o.replicas, true
}
