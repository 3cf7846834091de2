package queueing

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/podgroup"
)

// LateMembers has sched take in a pod that comes into its group later than into the
// cluster, as when its scheduling gates are gone. Upstream takes a pod's group for
// unchangeable, and looks for an updated pod where it looked for the old one; here it is
// done as if the old pod were gone and the new one had come. It must be called before
// sched hears of pods.
func LateMembers(sched *scheduler.Scheduler) {
	sched.Cache = &lateCache{Cache: sched.Cache}
	sched.SchedulingQueue = &lateQueue{SchedulingQueue: sched.SchedulingQueue}
}

// movesGroup reports whether a pod without a node is in another group than before.
func movesGroup(before, after *corev1.Pod) bool {
	return podgroup.NameOf(before) != podgroup.NameOf(after)
}

type lateCache struct {
	cache.Cache
}

// UpdatePodGroupMember is the cache's own, but for a pod in another group than before.
func (c *lateCache) UpdatePodGroupMember(logger klog.Logger, before, after *corev1.Pod) {
	if !movesGroup(before, after) {
		c.Cache.UpdatePodGroupMember(logger, before, after)
		return
	}
	c.RemovePodGroupMember(before)
	c.AddPodGroupMember(after)
}

type lateQueue struct {
	queue.SchedulingQueue
}

// Update is the queue's own, but for a pod in another group than before.
func (q *lateQueue) Update(ctx context.Context, before, after *corev1.Pod) {
	if !movesGroup(before, after) {
		q.SchedulingQueue.Update(ctx, before, after)
		return
	}
	logger := klog.FromContext(ctx)
	q.Delete(logger, before)
	q.Add(ctx, after)
	// As upstream does for a new pod: it may be the one that its siblings wait for.
	q.MoveAllToActiveOrBackoffQueue(logger, framework.EventUnscheduledPodAdd, nil, after, nil)
}
