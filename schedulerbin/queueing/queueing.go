// Package queueing wraps the scheduler's queue where upstream leaves no other place for
// something: to begin what only the leader does, to place first what an earlier leader has
// left bound in part, to tell of room when the scheduler can see it, and to take in members
// of groups whose gates have opened.
//
// It must not know who is told, or why.
package queueing

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/podgroup"
)

// RunWith returns the queue that has run called when the scheduler begins to schedule, and
// so not in a replica that stands by: upstream's command leaves no other place for what
// only the leader does.
func RunWith(ctx context.Context, of queue.SchedulingQueue, run func(context.Context)) queue.SchedulingQueue {
	return &companionQueue{SchedulingQueue: of, start: func() { go run(ctx) }}
}

type companionQueue struct {
	queue.SchedulingQueue
	start func()
}

// Run starts the queue's own work and the companion.
func (q *companionQueue) Run(logger klog.Logger) {
	q.SchedulingQueue.Run(logger)
	q.start()
}

// PartsFirst returns the queue that has the gangs tried first that an earlier leader has
// left bound in part.
func PartsFirst(ctx context.Context, of queue.SchedulingQueue, parts Parts) queue.SchedulingQueue {
	return &partsQueue{SchedulingQueue: of, ctx: ctx, parts: parts}
}

// Parts says what is bound in part.
type Parts interface {
	// HasPlacedSiblings reports whether members of pod's gang have nodes.
	HasPlacedSiblings(pod *corev1.Pod) bool
	// ComeFirst is called with the pods of which that is so, while none is in the queue.
	ComeFirst(pods []*corev1.Pod)
}

type partsQueue struct {
	queue.SchedulingQueue
	ctx   context.Context
	parts Parts
}

// Run orders the queue and starts its work.
func (q *partsQueue) Run(logger klog.Logger) {
	q.putPartsFirst(logger)
	q.SchedulingQueue.Run(logger)
}

// putPartsFirst lets the gangs that are bound in part come before all pods of their
// priority: those might take the room that the rest needs. Nothing was scheduled
// yet, so the queue goes by when it heard of each pod. All are put in again, these
// first and then the oldest.
func (q *partsQueue) putPartsFirst(logger klog.Logger) {
	all := q.PodsInActiveQ()
	slices.SortFunc(all, func(a, b *corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	var rest, others []*corev1.Pod
	for _, pod := range all {
		if q.parts.HasPlacedSiblings(pod) {
			rest = append(rest, pod)
		} else {
			others = append(others, pod)
		}
	}
	if len(rest) == 0 {
		return
	}
	logger.Info("Gangs are bound in part; the rest of them is placed first", "pods", len(rest))
	for _, pod := range all {
		q.Delete(logger, pod)
	}
	q.parts.ComeFirst(rest)
	for _, pod := range append(rest, others...) {
		q.Add(q.ctx, pod)
	}
}

// GroupParts returns the parts of pod groups.
func GroupParts(groups fwk.PodGroupManager) Parts { return groupParts{groups} }

type groupParts struct{ groups fwk.PodGroupManager }

// HasPlacedSiblings reports whether members of pod's group have nodes.
func (p groupParts) HasPlacedSiblings(pod *corev1.Pod) bool {
	name := podgroup.NameOf(pod)
	if name == "" {
		return false
	}
	state, err := p.groups.PodGroupStates().Get(pod.Namespace, name)
	return err == nil && state.ScheduledPodsCount() > 0
}

// ComeFirst does nothing: the queue goes by when each was put in.
func (groupParts) ComeFirst([]*corev1.Pod) {}

// TellOfRoom returns the queue that has left called for each pod that has left its node,
// when the scheduler's cache is without it: an informer's handler might be called before.
func TellOfRoom(of queue.SchedulingQueue, left func(*corev1.Pod)) queue.SchedulingQueue {
	return &toldQueue{SchedulingQueue: of, left: left}
}

type toldQueue struct {
	queue.SchedulingQueue
	left func(*corev1.Pod)
}

// MoveAllToActiveOrBackoffQueue is the queue's own, and passes on which pod has left its
// node.
func (q *toldQueue) MoveAllToActiveOrBackoffQueue(logger klog.Logger, event fwk.ClusterEvent, before, after any, check queue.PreEnqueueCheck) {
	q.SchedulingQueue.MoveAllToActiveOrBackoffQueue(logger, event, before, after, check)
	if event != framework.EventAssignedPodDelete {
		return
	}
	if pod, ok := before.(*corev1.Pod); ok {
		q.left(pod)
	}
}
