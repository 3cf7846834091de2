package permit

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/podgroup"
)

// podHandler follows the members. The scheduler itself tells plugins neither of new
// pods that have no node nor of pod groups while GenericWorkload is off; in an
// informer's handler, unlike in PreEnqueue and hints, the queue may be called.
func (s *State) podHandler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) {
			if pod, ok := object.(*corev1.Pod); ok {
				s.podChanged(nil, pod)
			}
		},
		UpdateFunc: func(before, object any) {
			old, ok := before.(*corev1.Pod)
			if pod, isPod := object.(*corev1.Pod); ok && isPod {
				s.podChanged(old, pod)
			}
		},
		DeleteFunc: func(object any) {
			if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = gone.Obj
			}
			if pod, ok := object.(*corev1.Pod); ok {
				s.podGone(pod)
			}
		},
	}
}

// podChanged takes in a pod that is new (old is nil) or has changed.
func (s *State) podChanged(old, pod *corev1.Pod) {
	name, ok := gangOf(pod)
	if !ok {
		return
	}
	same := old != nil && old.UID == pod.UID
	switch {
	case pod.DeletionTimestamp != nil:
		if !same || old.DeletionTimestamp == nil {
			s.lost(name, pod, after{})
		}
	case pod.Spec.NodeName != "":
		s.mu.Lock()
		delete(s.of(name).reserved, pod.UID) // the pod itself says it now
		delete(s.seats, pod.UID)
		s.mu.Unlock()
	case !same || isOut(old) && !isOut(pod):
		s.renewed(name)
	}
}

// podGone takes in a pod that is deleted or has finished.
func (s *State) podGone(pod *corev1.Pod) {
	name, ok := gangOf(pod)
	if !ok {
		return
	}
	s.lost(name, pod, after{gone: pod.UID})
	s.mu.Lock()
	defer s.mu.Unlock()
	if g := s.gangs[name]; g != nil {
		delete(g.reserved, pod.UID) // its Binding may never have been seen
	}
}

// lost notes that a member counts no more, and does a. One that waits at Permit and is
// deleted is rejected by the scheduler itself, and its Unreserve comes to the same.
func (s *State) lost(name types.NamespacedName, pod *corev1.Pod, a after) {
	s.mu.Lock()
	if g := s.gangs[name]; g != nil {
		if g.refused != nil { // the others are another gang
			g.refused, g.retry = nil, time.Time{}
			_, open := g.count(s.members(name))
			a.wake(byKey(open))
		}
		if g.blocked != nil && g.blocked.UID == pod.UID {
			g.blocked = nil
			_, open := g.count(s.members(name))
			a.wake(byKey(open))
		}
		if g.turn != nil && (g.turn.plan[pod.UID] != "" || g.reserved[pod.UID] != "") {
			s.lose(name, g, fmt.Sprintf("member %s of the gang is lost", pod.Name), &a)
		}
	}
	s.endSeat(pod.UID, &a)
	s.mu.Unlock()
	s.do(a)
}

// groupHandler follows the groups.
func (s *State) groupHandler() cache.ResourceEventHandler {
	changed := func(object any) {
		if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = gone.Obj
		}
		if group, ok := object.(*schedulingv1beta1.PodGroup); ok && podgroup.IsVirtual(group.Name) {
			s.renewed(types.NamespacedName{Namespace: group.Namespace, Name: group.Name})
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: changed, UpdateFunc: func(_, object any) { changed(object) }, DeleteFunc: changed}
}

// renewed has the members of a gang tried of which something is new: a member, or
// what its group says. What came of the last trial does not count any more.
func (s *State) renewed(name types.NamespacedName) {
	var a after
	s.mu.Lock()
	g := s.of(name)
	g.refused = nil
	need, known := s.need(name)
	placed, open := g.count(s.members(name))
	switch {
	case !known:
		if g.turn != nil {
			s.lose(name, g, "the gang's PodGroup is gone", &a)
		}
	case placed >= need && len(g.reserved) > 0 && !g.isLate(s.clock.Now()):
		s.complete(name, g, &a)
	}
	if known && placed+len(open) >= need {
		g.retry = time.Time{}
		a.wake(byKey(open))
	}
	s.mu.Unlock()
	s.do(a)
}
