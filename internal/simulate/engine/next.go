package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// SetTime sets the time in the cluster, unless it is later already.
func (e *Engine) SetTime(now time.Time) {
	if now.After(e.clock.Now()) {
		e.clock.SetTime(now)
	}
}

// Attempt has the scheduler try one pod now, or one group, whose members are tried in
// the order of the pods. What else waits is left alone, and pods that nothing has
// happened for are tried all the same. The error says that the queue does not give
// the pods, because something holds them back.
func (e *Engine) Attempt(ctx context.Context, pods ...types.NamespacedName) error {
	wanted := make([]*corev1.Pod, 0, len(pods))
	for _, name := range pods {
		pod, ok := e.Pod(name)
		if !ok {
			return fmt.Errorf("try pod %s, which is not in the simulated cluster", name)
		}
		wanted = append(wanted, pod)
	}
	e.activate(wanted)
	if !slices.ContainsFunc(e.sched.SchedulingQueue.PodsInActiveQ(), func(p *corev1.Pod) bool { return slices.Contains(pods, key(p)) }) {
		return fmt.Errorf("the queue holds back pod %s", pods[0])
	}
	next := e.sched.NextEntity
	defer func() { e.sched.NextEntity = next }()
	var aside []types.NamespacedName
	e.sched.NextEntity = func(logger klog.Logger) (framework.QueuedEntityInfo, error) {
		for {
			entity, err := next(logger)
			if err != nil || entity == nil {
				return entity, err
			}
			var names []types.NamespacedName
			entity.ForEachPodInfo(func(info *framework.QueuedPodInfo) bool {
				names = append(names, key(info.Pod))
				return true
			})
			if slices.ContainsFunc(names, func(n types.NamespacedName) bool { return slices.Contains(pods, n) }) {
				inOrder(entity, pods)
				e.putBack(ctx, aside)
				return entity, nil
			}
			aside = append(aside, names...)
		}
	}
	_, err := e.step(ctx)
	if e.look != nil && err == nil {
		err = e.look() // a group can be refused before any pod is looked at
	}
	e.known = 0
	return err
}

// Nominate has the scheduler keep room on the node for the pod, whatever the pod's
// status says, or on none. Upstream notes that before it is written, and an attempt
// in between takes the node for nothing special.
func (e *Engine) Nominate(name types.NamespacedName, node string) error {
	pod, ok := e.Pod(name)
	if !ok {
		return fmt.Errorf("nominate pod %s, which is not in the simulated cluster", name)
	}
	info, err := framework.NewPodInfo(pod)
	if err != nil {
		return err
	}
	e.chooser.nominate(pod.UID, node)
	e.sched.SchedulingQueue.AddNominatedPod(logr.Discard(), info, &fwk.NominatingInfo{NominatingMode: fwk.ModeOverride, NominatedNodeName: node})
	return nil
}

// putBack puts pods that the queue has given into it again, before the cycle begins:
// the queue is where upstream looks for what pods ask for that are nominated to a node.
func (e *Engine) putBack(ctx context.Context, pods []types.NamespacedName) {
	for _, name := range pods {
		if pod, ok := e.Pod(name); ok {
			e.sched.SchedulingQueue.Done(pod.UID)
			e.sched.SchedulingQueue.Add(klog.NewContext(ctx, logr.Discard()), pod)
		}
	}
}

// inOrder has the members of a group come in the order of the pods. Upstream orders
// them by when it heard of each.
func inOrder(entity framework.QueuedEntityInfo, pods []types.NamespacedName) {
	group, ok := entity.(*framework.QueuedPodGroupInfo)
	if !ok {
		return
	}
	at := func(pod *corev1.Pod) int { return slices.Index(pods, key(pod)) }
	for _, members := range group.QueuedPodInfos {
		slices.SortStableFunc(members, func(a, b *framework.QueuedPodInfo) int { return at(a.Pod) - at(b.Pod) })
	}
	slices.SortStableFunc(group.UnscheduledPods, func(a, b *corev1.Pod) int { return at(a) - at(b) })
}

// Idle reports whether the pod has no node and is not on its way to one.
func (e *Engine) Idle(uid types.UID) bool {
	for _, profile := range e.sched.Profiles {
		if profile.GetWaitingPod(uid) != nil {
			return false
		}
	}
	return true
}
