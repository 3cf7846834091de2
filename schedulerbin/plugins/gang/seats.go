package gang

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gangkey"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/podgroup"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/room"
)

// While seats are held, the gang is tried 20 times, but not more often or less
// often than this: its own backoff would make it miss the time when all are free.
const (
	retries     = 20
	shortestTry = time.Second
	longestTry  = 15 * time.Second
)

// PodGroupPostFilter holds seats for a gang that has not fit for its timeout. It
// makes no room, so it never succeeds: preemption, which comes after it, may.
func (p *Plugin) PodGroupPostFilter(ctx context.Context, cycle fwk.PodGroupCycleState, info fwk.PodGroupInfo, try fwk.PodGroupSchedulingFunc) (*fwk.PodGroupPostFilterResult, *fwk.Status) {
	group, pods := info.GetPodGroup(), info.GetUnscheduledPods()
	if group == nil || group.Spec.SchedulingPolicy.Gang == nil || len(pods) == 0 {
		return nil, fwk.NewStatus(fwk.Unschedulable)
	}
	name := types.NamespacedName{Namespace: info.GetNamespace(), Name: info.GetName()}
	if holds := p.holds.of(name); len(holds) > 0 { // which has it tried often
		return nil, fwk.NewStatus(fwk.Unschedulable, holds[0].message())
	}
	timeout := p.timeout(pods[0])
	overdue := p.holds.failed(name, pods[0], timeout, func() bool { return p.wake(ctx, name) })
	minCount, bound := int(group.Spec.SchedulingPolicy.Gang.MinCount), p.bound(name)
	p.noteLack(ctx, name, pods[0], minCount-bound, placedBy(cycle))
	until, inPart := p.clock.Now().Add(timeout), bound > 0 && bound < minCount
	if inPart {
		until, overdue = p.holds.untilForPart(name, timeout)
	}
	if !overdue || awaitsPreemption(pods) || !inPart && !p.isTurn(klog.FromContext(ctx), name, pods[0]) {
		return nil, fwk.NewStatus(fwk.Unschedulable)
	}
	seats, err := p.findSeats(ctx, info, try)
	switch {
	case err != nil:
		return nil, fwk.AsStatus(fmt.Errorf("find seats for the gang: %w", err))
	case seats == nil: // single pods are not what keeps it from starting
		p.holds.again(name)
		return nil, fwk.NewStatus(fwk.Unschedulable)
	}
	why := fmt.Sprintf("it did not fit for %s", timeout)
	if inPart {
		why = "it is bound in part and the rest does not fit"
	}
	held := p.take(ctx, name, pods[0], seats, until, why)
	return nil, fwk.NewStatus(fwk.Unschedulable, held.message())
}

// bound returns how many members of the group have nodes.
func (p *Plugin) bound(name types.NamespacedName) int {
	state, err := p.handle.PodGroupManager().PodGroupStates().Get(name.Namespace, name.Name)
	if err != nil {
		return 0
	}
	return state.ScheduledPodsCount()
}

// keepSeat holds the seat of a member that has lost it, as by a failed bind, while
// siblings are bound or being bound: what is bound in part must be whole before
// others get the room.
func (p *Plugin) keepSeat(ctx context.Context, pod *corev1.Pod, node string) {
	name := nameOf(pod)
	state, err := p.handle.PodGroupManager().PodGroupStates().Get(name.Namespace, name.Name)
	if err != nil {
		return
	}
	isBinding := func(sibling *corev1.Pod) bool {
		return sibling.UID != pod.UID && p.handle.GetWaitingPod(sibling.UID) == nil
	}
	if !slices.ContainsFunc(state.ScheduledPods(), isBinding) {
		return
	}
	timeout := p.timeout(pod)
	until, may := p.holds.untilForPart(name, timeout)
	if !may {
		return
	}
	seat, err := room.NewSeat(pod)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Cannot hold the seat of a member whose bind failed", "pod", klog.KObj(pod))
		return
	}
	p.take(ctx, name, seat.GetPod(), map[string][]fwk.PodInfo{node: {seat}}, until, "it was not bound, and siblings are")
}

// awaitsPreemption reports whether room is being made for pods.
func awaitsPreemption(pods []*corev1.Pod) bool {
	for _, pod := range pods {
		if pod.Status.NominatedNodeName != "" {
			return true
		}
	}
	return false
}

// isTurn reports whether seats may be held for the gang of member.
func (p *Plugin) isTurn(logger klog.Logger, group types.NamespacedName, member *corev1.Pod) bool {
	reaches := room.CouldBeOn(logger, member)
	couldBeOn := func(name string) bool {
		node, err := p.handle.SnapshotSharedLister().NodeInfos().Get(name)
		if err != nil {
			return false // it is gone
		}
		could, err := reaches(node.Node())
		return err == nil && could
	}
	sameNeeds := func(other *corev1.Pod) bool { return room.SameNodes(other, member) }
	return p.holds.turn(group, couldBeOn, sameNeeds)
}

// findSeats returns where the members would be if other pods were gone, by node, or
// nil where that would not do. Pods that end by themselves are thought away first,
// of them the ones in no gang: only then is waiting likely to help. Everything
// about a node is judged by the profile's own plugins, in a whole trial.
func (p *Plugin) findSeats(ctx context.Context, info fwk.PodGroupInfo, try fwk.PodGroupSchedulingFunc) (map[string][]fwk.PodInfo, error) {
	priority := gangkey.Priority(info.GetUnscheduledPods()[0])
	own := types.NamespacedName{Namespace: info.GetNamespace(), Name: info.GetName()}
	for _, gone := range []func(*corev1.Pod) bool{
		func(pod *corev1.Pod) bool { return endsByItself(pod) && podgroup.NameOf(pod) == "" },
		endsByItself,
		func(pod *corev1.Pod) bool { return endsByItself(pod) || podgroup.NameOf(pod) == "" && !isOfNode(pod) },
	} {
		seats, err := p.tryWithout(ctx, try, func(pod *corev1.Pod) bool {
			return gangkey.Priority(pod) <= priority && nameOf(pod) != own && gone(pod)
		})
		if err != nil || seats != nil {
			return seats, err
		}
	}
	return nil, nil
}

// endsByItself reports whether pod is leaving or will, if all goes well.
func endsByItself(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil || pod.Spec.RestartPolicy != corev1.RestartPolicyAlways
}

// isOfNode reports whether pod belongs to its node and will not make room on it.
func isOfNode(pod *corev1.Pod) bool {
	controller := metav1.GetControllerOf(pod)
	return controller != nil && (controller.Kind == "DaemonSet" || controller.Kind == "Node")
}

// tryWithout returns where try would place the members without the pods that are
// gone, or nil where it would not place enough of them.
func (p *Plugin) tryWithout(ctx context.Context, try fwk.PodGroupSchedulingFunc, gone func(*corev1.Pod) bool) (seats map[string][]fwk.PodInfo, err error) {
	snapshot := p.handle.MutableSnapshotSharedLister()
	if err := snapshot.StartMutations(); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, snapshot.EndMutations()) }()
	nodes, err := snapshot.NodeInfos().List()
	if err != nil {
		return nil, err
	}
	for _, node := range nodes {
		var leaving []*corev1.Pod
		for _, pod := range node.GetPods() {
			if gone(pod.GetPod()) {
				leaving = append(leaving, pod.GetPod())
			}
		}
		for _, pod := range leaving {
			if err := snapshot.RemovePod(klog.FromContext(ctx), pod, node.Node().Name); err != nil {
				return nil, err
			}
		}
	}
	assignments, status := try(ctx)
	if !status.IsSuccess() {
		return nil, nil
	}
	seats = map[string][]fwk.PodInfo{}
	for _, a := range assignments.ProposedAssignments {
		// Not the trial's own: that one is the queue's, which changes it.
		seat, err := framework.NewPodInfo(a.GetPod())
		if err != nil {
			return nil, err
		}
		seats[a.GetNodeName()] = append(seats[a.GetNodeName()], seat)
	}
	return seats, nil
}

// take holds the seats, says so, and has the gang tried often.
func (p *Plugin) take(ctx context.Context, group types.NamespacedName, member *corev1.Pod, seats map[string][]fwk.PodInfo, until time.Time, why string) *hold {
	logger, now := klog.FromContext(ctx), p.clock.Now()
	held := &hold{
		group: group, priority: gangkey.Priority(member), seats: seats, since: now, until: until,
		rejected: map[types.UID]*corev1.Pod{},
		activate: func(pods map[string]*corev1.Pod) { p.handle.Activate(logger, pods) },
	}
	p.holds.take(held)
	logger.Info("Seats are held for a gang", "podGroup", klog.KRef(group.Namespace, group.Name), "why", why, "nodes", len(seats), "until", until)
	if recorder := p.handle.EventRecorder(); recorder != nil {
		recorder.Eventf(member, nil, corev1.EventTypeNormal, "GangSeatsHeld", "Scheduling", "%s: %s", why, held.message())
	}
	if podgroup.IsVirtual(group.Name) {
		p.groups.Held(group.Namespace, group.Name, len(seats), held.until)
	}
	p.retry(ctx, held, min(max(until.Sub(now)/retries, shortestTry), longestTry))
	return held
}

// retry has the gang tried again and again until its hold is over.
func (p *Plugin) retry(ctx context.Context, held *hold, every time.Duration) {
	p.clock.AfterFunc(min(every, max(held.until.Sub(p.clock.Now()), 0)), func() {
		go func() {
			switch {
			case !slices.Contains(p.holds.of(held.group), held): // it has ended
			case !p.clock.Now().Before(held.until):
				p.letGo(ctx, held, outcomeExpired)
				p.holds.again(held.group)
			case !p.wake(ctx, held.group):
				p.letGo(ctx, held, outcomeDropped)
			default:
				p.retry(ctx, held, every)
			}
		}()
	})
}

// letGo ends the hold.
func (p *Plugin) letGo(ctx context.Context, held *hold, outcome string) {
	p.holds.release(held, outcome)
	klog.FromContext(ctx).Info("Seats are not held any more", "podGroup", klog.KRef(held.group.Namespace, held.group.Name), "outcome", outcome)
	if podgroup.IsVirtual(held.group.Name) {
		p.groups.Held(held.group.Namespace, held.group.Name, 0, time.Time{})
	}
}

// wake has the group tried at once. It reports whether enough members are there, and
// some without a node; a group of which that is not so is forgotten.
func (p *Plugin) wake(ctx context.Context, name types.NamespacedName) bool {
	group, err := p.handle.PodGroupManager().PodGroups().Get(name.Namespace, name.Name)
	if err != nil {
		p.holds.forget(name)
		return false
	}
	state, err := p.handle.PodGroupManager().PodGroupStates().Get(name.Namespace, name.Name)
	if err != nil || group.Spec.SchedulingPolicy.Gang == nil || state.AllPodsCount() < int(group.Spec.SchedulingPolicy.Gang.MinCount) {
		p.holds.forget(name)
		return false
	}
	unscheduled := state.UnscheduledPods()
	if len(unscheduled) == 0 {
		p.holds.forget(name)
		return false
	}
	p.handle.Activate(klog.FromContext(ctx), unscheduled)
	return true
}

// placed notes that a member of the group is placed for good: its siblings are in
// the same cycle.
func (p *Plugin) placed(ctx context.Context, name types.NamespacedName) {
	p.holds.forget(name)
	for _, held := range p.holds.of(name) {
		p.letGo(ctx, held, outcomeStarted)
	}
}

// nameOf returns the name of pod's group.
func nameOf(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: podgroup.NameOf(pod)}
}
