// Package gang is the plugin Gang: what a gang needs beside the in-tree
// GangScheduling, which decides whether a gang fits and is not repeated here. It
// concerns pods in a group (spec.schedulingGroup) alone, and uses
//
//   - PreEnqueue and EnqueueExtensions, to hold back the members of a virtual group
//     that the scheduler could only fail on: while the group's priority is not
//     visible in the scheduler's cache, and while members contradict each other;
//   - Reserve, to count how many members a trial of the whole group places, to give
//     up what was held for a gang that is placed, and to let go the waiting siblings
//     of a member that is lost;
//   - Permit, to end a wait after the gang's own timeout: upstream's is a constant
//     of 5 minutes, and the API has no field for it;
//   - PostBind, to forget the wait;
//   - PodGroupPostFilter, to note how much room a gang lacks, so that it is tried as
//     soon as that has become free and not after its backoff; and to hold seats for a gang that has not fit for its timeout
//     because single pods take each seat as it falls free;
//   - PreFilter and Filter, to keep other pods off the seats, and nothing else:
//     where none are held, which is the rule, PreFilter skips, and no method of the
//     plugin runs for a node; SignPlugin, so that equal pods stay equal.
//
// The package must not know where groups come from (podgroup does), and must not
// decide whether a gang fits.
package gang

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/args"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/contain"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gangkey"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/podgroup"
)

// Name is the plugin's name in a KubeSchedulerConfiguration.
const Name = args.Gang

// Groups is told what the plugin sees of gangs.
type Groups interface {
	// Configure says what the profile called schedulerName does with its gangs.
	Configure(schedulerName string, a *args.GangArgs)
	// Tried says that a trial of the group has placed so many members by now. Each
	// trial has a cycle of its own.
	Tried(namespace, group string, cycle any, placed int)
	// Held says that seats on so many nodes are held for the group until then; 0
	// that they are not any more.
	Held(namespace, group string, nodes int, until time.Time)
}

// Plugin is the plugin Gang.
type Plugin struct {
	args   *args.GangArgs
	handle fwk.Handle
	groups Groups
	holds  *Holds
	clock  clock.WithDelayedExecution

	mu     sync.Mutex
	timers map[types.UID]clock.Timer // of members that may wait at Permit
}

var (
	_ fwk.PreEnqueuePlugin         = &Plugin{}
	_ fwk.EnqueueExtensions        = &Plugin{}
	_ fwk.SignPlugin               = &Plugin{}
	_ fwk.PreFilterPlugin          = &Plugin{}
	_ fwk.FilterPlugin             = &Plugin{}
	_ fwk.PodGroupPostFilterPlugin = &Plugin{}
	_ fwk.ReservePlugin            = &Plugin{}
	_ fwk.PermitPlugin             = &Plugin{}
	_ fwk.PostBindPlugin           = &Plugin{}
)

// New returns the plugin's factory. The plugin tells groups what it sees, shares
// holds with the other profiles, and runs under the guard. The factory's error is
// one of the arguments, with the path of the field.
func New(groups Groups, holds *Holds) func(context.Context, runtime.Object, fwk.Handle, *contain.Guard) (fwk.Plugin, error) {
	return func(_ context.Context, object runtime.Object, handle fwk.Handle, guard *contain.Guard) (fwk.Plugin, error) {
		a, err := args.FromObject[*args.GangArgs](Name, object)
		if err != nil {
			return nil, err
		}
		groups.Configure(handle.ProfileName(), a)
		return contain.Wrap[contained](guard, newPlugin(a, handle, groups, holds))
	}
}

// contained is the plugin as it runs.
type contained struct {
	contain.Plugin
	contain.PreEnqueuePlugin
	contain.EnqueueExtensions
	contain.SignPlugin
	contain.PreFilterPlugin
	contain.FilterPlugin
	contain.PodGroupPostFilterPlugin
	contain.ReservePlugin
	contain.PermitPlugin
	contain.PostBindPlugin
}

func newPlugin(a *args.GangArgs, handle fwk.Handle, groups Groups, holds *Holds) *Plugin {
	return &Plugin{args: a, handle: handle, groups: groups, holds: holds, clock: holds.clock, timers: map[types.UID]clock.Timer{}}
}

// Name returns Gang.
func (p *Plugin) Name() string { return Name }

// PreEnqueue holds back a member of a virtual group that cannot be tried yet. Such
// a wait is no reason for an autoscaler to act, and is not marked as one.
func (p *Plugin) PreEnqueue(_ context.Context, pod *corev1.Pod) *fwk.Status {
	name := podgroup.NameOf(pod)
	if !podgroup.IsVirtual(name) {
		return nil
	}
	group, err := p.handle.PodGroupManager().PodGroups().Get(pod.Namespace, name)
	if err != nil {
		return nil // GangScheduling holds it until there is one
	}
	if why := podgroup.HeldBack(group, pod); why != "" {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, why)
	}
	return nil
}

// EventsToRegister returns what lets a pod go on: a change of the member's own
// group, and a pod that leaves a node where seats are held. The end of a hold is no
// event of the cluster's, and wakes the pods by itself.
func (p *Plugin) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{
		{Event: fwk.ClusterEvent{Resource: fwk.PodGroup, ActionType: fwk.Add | fwk.Update}, QueueingHintFn: wakesMember},
		{Event: fwk.ClusterEvent{Resource: fwk.AssignedPod, ActionType: fwk.Delete}, QueueingHintFn: p.leavesHeldNode},
	}, nil
}

// leavesHeldNode queues pod when another has left a node where seats are held from
// it.
func (p *Plugin) leavesHeldNode(_ klog.Logger, pod *corev1.Pod, left, _ any) (fwk.QueueingHint, error) {
	gone, ok := left.(*corev1.Pod)
	if !ok {
		return fwk.Queue, fmt.Errorf("event of a pod holds a %T", left)
	}
	for _, held := range p.holds.against(nameOf(pod), gangkey.Priority(pod)) {
		if len(held.seats[gone.Spec.NodeName]) > 0 {
			return fwk.Queue, nil
		}
	}
	return fwk.QueueSkip, nil
}

// wakesMember queues pod when the group that is new or changed is its own.
func wakesMember(_ klog.Logger, pod *corev1.Pod, _, changed any) (fwk.QueueingHint, error) {
	group, ok := changed.(*schedulingv1beta1.PodGroup)
	if !ok {
		return fwk.Queue, fmt.Errorf("event of a pod group holds a %T", changed)
	}
	if group.Namespace == pod.Namespace && group.Name == podgroup.NameOf(pod) {
		return fwk.Queue, nil
	}
	return fwk.QueueSkip, nil
}

// placedKey is where a trial of a group keeps how many members it has placed.
const placedKey fwk.StateKey = Name + "/placed"

// placed is how many members a trial has placed, and since when it places them.
type placed struct {
	members int
	since   time.Time
}

// Clone returns the count.
func (p placed) Clone() fwk.StateData { return p }

// placedBy returns what the trial of a group has placed so far.
func placedBy(cycle fwk.PodGroupCycleState) placed {
	if data, err := cycle.Read(placedKey); err == nil {
		if p, ok := data.(placed); ok {
			return p
		}
	}
	return placed{}
}

// Reserve counts a member that a trial of its group has placed, and gives up what
// was held for a gang that is placed for good. Of every pod that is, those who wait are
// told that it takes room.
func (p *Plugin) Reserve(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	name := nameOf(pod)
	if !state.IsPodGroupSchedulingCycle() {
		if name.Name != "" {
			p.placed(ctx, name)
		}
		p.holds.took(name, pod, node)
		return nil
	}
	cycle := state.GetPodGroupSchedulingCycle()
	count := placedBy(cycle)
	if count.members++; count.members == 1 {
		count.since = p.clock.Now()
	}
	cycle.Write(placedKey, count)
	p.groups.Tried(pod.Namespace, name.Name, cycle, count.members)
	return nil
}

// Unreserve lets go the members that wait for one that is lost: rejected, deleted,
// preempted or failed at its bind. Where siblings are bound already, it keeps the
// member's seat for the retry. It may run for a pod whose Reserve did not.
func (p *Plugin) Unreserve(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node string) {
	if podgroup.NameOf(pod) == "" || state.IsPodGroupSchedulingCycle() {
		return // a trial has nobody waiting
	}
	p.stopTimer(pod.UID)
	p.release(pod, fmt.Sprintf("member %s of the gang is lost", pod.Name))
	p.keepSeat(ctx, pod, node)
}

// Permit starts the gang's timeout for a member. It never makes a member wait:
// GangScheduling does.
func (p *Plugin) Permit(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) (*fwk.Status, time.Duration) {
	if podgroup.NameOf(pod) == "" {
		return nil, 0
	}
	timeout := p.timeout(pod)
	p.mu.Lock()
	defer p.mu.Unlock()
	if old := p.timers[pod.UID]; old != nil {
		old.Stop()
	}
	p.timers[pod.UID] = p.clock.AfterFunc(timeout, func() { p.expire(pod, timeout) })
	return nil, 0
}

// PostBind forgets the wait of a member that is bound.
func (p *Plugin) PostBind(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) {
	if podgroup.NameOf(pod) != "" {
		p.stopTimer(pod.UID)
	}
}

// timeout returns how long pod may wait for its siblings: what its PodGroup object
// says, else what the profile does.
func (p *Plugin) timeout(pod *corev1.Pod) time.Duration {
	if group, err := p.handle.PodGroupManager().PodGroups().Get(pod.Namespace, podgroup.NameOf(pod)); err == nil {
		if own, ok := podgroup.OwnTimeout(group); ok {
			return own
		}
	}
	return p.args.Timeout.Duration
}

// expire lets go pod and its siblings, if it still waits.
func (p *Plugin) expire(pod *corev1.Pod, after time.Duration) {
	p.mu.Lock()
	delete(p.timers, pod.UID) // it is over; the clock need not be told
	p.mu.Unlock()
	waiting := p.handle.GetWaitingPod(pod.UID)
	if waiting == nil || !waitsForGang(waiting) {
		return
	}
	message := fmt.Sprintf("the gang was not complete after %s", after)
	waiting.Reject(Name, message)
	p.release(pod, message)
}

// release rejects the members of pod's gang that wait for the gang.
func (p *Plugin) release(pod *corev1.Pod, message string) {
	// Reject only sends; nothing in here asks for another waiting pod, which would
	// lock the map twice.
	p.handle.IterateOverWaitingPods(func(waiting fwk.WaitingPod) {
		other := waiting.GetPod()
		if other.UID != pod.UID && other.Namespace == pod.Namespace && podgroup.NameOf(other) == podgroup.NameOf(pod) && waitsForGang(waiting) {
			waiting.Reject(Name, message)
		}
	})
}

func (p *Plugin) stopTimer(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if timer := p.timers[uid]; timer != nil {
		timer.Stop()
		delete(p.timers, uid)
	}
}
