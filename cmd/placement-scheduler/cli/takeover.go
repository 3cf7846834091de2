package cli

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// runWithQueue has run called when the scheduler begins to schedule, and so not in
// a replica that stands by: upstream's command leaves no other place for what only
// the leader does. Gangs that an earlier leader left bound in part are tried first.
func runWithQueue(ctx context.Context, sched *scheduler.Scheduler, run func(context.Context)) {
	q := &companionQueue{SchedulingQueue: sched.SchedulingQueue, ctx: ctx, start: func() { go run(ctx) }}
	for _, profile := range sched.Profiles {
		q.groups = profile.PodGroupManager() // one for all profiles
	}
	sched.SchedulingQueue = q
}

// tellOfRoom has left called for each pod that has left its node, when the scheduler's
// cache is without it: an informer's handler might be called before.
func tellOfRoom(sched *scheduler.Scheduler, left func(*corev1.Pod)) {
	sched.SchedulingQueue = &toldQueue{SchedulingQueue: sched.SchedulingQueue, left: left}
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

type companionQueue struct {
	queue.SchedulingQueue
	ctx    context.Context
	groups fwk.PodGroupManager
	start  func()
}

// Run orders the queue, and starts its own work and the companion.
func (q *companionQueue) Run(logger klog.Logger) {
	q.putPartsFirst(logger)
	q.SchedulingQueue.Run(logger)
	q.start()
}

// putPartsFirst lets the gangs that are bound in part come before all pods of their
// priority: those might take the room that the rest needs. Nothing was scheduled
// yet, so the queue goes by when it heard of each pod. The others are put in again,
// the oldest first.
func (q *companionQueue) putPartsFirst(logger klog.Logger) {
	all := q.PodsInActiveQ()
	others := slices.DeleteFunc(slices.Clone(all), func(pod *corev1.Pod) bool { return hasPlacedSiblings(q.groups, pod) })
	if len(others) == len(all) {
		return
	}
	logger.Info("Gangs are bound in part; the rest of them is placed first", "pods", len(all)-len(others))
	slices.SortFunc(others, func(a, b *corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	for _, pod := range others {
		q.Delete(logger, pod)
	}
	for _, pod := range others {
		q.Add(q.ctx, pod)
	}
}

// hasPlacedSiblings reports whether members of pod's group have nodes.
func hasPlacedSiblings(groups fwk.PodGroupManager, pod *corev1.Pod) bool {
	if pod.Spec.SchedulingGroup == nil || pod.Spec.SchedulingGroup.PodGroupName == nil {
		return false
	}
	state, err := groups.PodGroupStates().Get(pod.Namespace, *pod.Spec.SchedulingGroup.PodGroupName)
	return err == nil && state.ScheduledPodsCount() > 0
}
