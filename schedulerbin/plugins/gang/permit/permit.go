// Package permit is the plugin Gang for a scheduler without the in-tree pod-group
// cycle, where the feature gate GenericWorkload must stay off: members are placed
// one by one, and wait at Permit until enough of them have a node. It concerns the
// members of virtual groups (package podgroup) alone; pods that name a group of the
// API's own are to it pods in no gang. It uses
//
//   - PreEnqueue, to hold back members of which there are too few, whose group is not
//     known, or that contradict each other;
//   - PreFilter, to give one gang at a time its turn among the nodes that it could be
//     on, once a trial of the whole gang has found a node for enough members: two
//     gangs never hold each other's seats. A member's own cycle then has the node of
//     that plan alone to look at;
//   - PostFilter, to end the turn of a gang whose member did not fit after all, and to
//     keep DefaultPreemption from making room for a part of a gang;
//   - Reserve, to note who has a node: a member is among the framework's waiting pods
//     only after its Permit;
//   - Permit, to wait for the others, for the gang's timeout at most;
//   - Filter, to keep other pods off the seat of a member that lost it when siblings
//     were bound already; where there is none, which is the rule, PreFilter skips and
//     no method of the plugin runs for a node;
//   - EnqueueExtensions, to have one member of a gang that did not fit tried when nodes
//     or the pods on them change; SignPlugin, since members follow their gang's plan.
//
// A second plugin, GangSort, is the QueueSort of all profiles: it keeps the members
// of a gang together.
//
// What fits is decided by the profile's own plugins, never here. The package must
// not know where groups come from.
package permit

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/args"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/contain"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/podgroup"
)

// Name is the plugin's name in a KubeSchedulerConfiguration: that of the plugin of
// the other modes, in whose place it is registered.
const Name = args.Gang

// The reasons why members are held back.
const (
	reasonNoGroup = "waiting for the gang's PodGroup, or a label that says its size"
	reasonTurn    = "waiting for its turn: another gang that could be on the same nodes is being placed"
	reasonLost    = "its gang has lost its turn"
	reasonSurplus = "it does not fit; its gang starts without it"
)

// Groups is told what the plugin sees of gangs.
type Groups interface {
	// Configure says what the profile called schedulerName does with its gangs.
	Configure(schedulerName string, a *args.GangArgs)
	// Failed says that a trial of the whole group has found a node for so many
	// members, which are too few.
	Failed(namespace, group string, fits int)
	// Fits says that one has found a node for enough of them.
	Fits(namespace, group string)
}

// runner is what the plugin uses of the framework beside its handle.
type runner interface {
	RunPreFilterPlugins(ctx context.Context, state fwk.CycleState, pod *corev1.Pod) (*fwk.PreFilterResult, *fwk.Status, sets.Set[string])
}

// Plugin is the plugin Gang.
type Plugin struct {
	args   *args.GangArgs
	handle fwk.Handle
	runner runner
	state  *State
}

var (
	_ fwk.PreEnqueuePlugin  = &Plugin{}
	_ fwk.EnqueueExtensions = &Plugin{}
	_ fwk.SignPlugin        = &Plugin{}
	_ fwk.PreFilterPlugin   = &Plugin{}
	_ fwk.FilterPlugin      = &Plugin{}
	_ fwk.PostFilterPlugin  = &Plugin{}
	_ fwk.ReservePlugin     = &Plugin{}
	_ fwk.PermitPlugin      = &Plugin{}
)

// New returns the plugin's factory. All profiles of a process share the state. The
// factory's error is one of the arguments, with the path of the field, or that the
// informers cannot be used any more.
func New(state *State) func(context.Context, runtime.Object, fwk.Handle, *contain.Guard) (fwk.Plugin, error) {
	return func(ctx context.Context, object runtime.Object, handle fwk.Handle, guard *contain.Guard) (fwk.Plugin, error) {
		a, err := args.FromObject[*args.GangArgs](Name, object)
		if err != nil {
			return nil, err
		}
		r, ok := handle.(runner)
		if !ok {
			return nil, fmt.Errorf("the framework is a %T, which cannot try a gang", handle)
		}
		if err := state.attach(ctx, handle, guard); err != nil {
			return nil, err
		}
		state.groups.Configure(handle.ProfileName(), a)
		return contain.Wrap[contained](guard, &Plugin{args: a, handle: handle, runner: r, state: state})
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
	contain.PostFilterPlugin
	contain.ReservePlugin
	contain.PermitPlugin
}

// Name returns Gang.
func (p *Plugin) Name() string { return Name }

// PreEnqueue holds back a member that cannot be placed yet. Such a wait is no reason
// for an autoscaler to act, and is not marked as one.
func (p *Plugin) PreEnqueue(_ context.Context, pod *corev1.Pod) *fwk.Status {
	if why := p.state.holds(pod); why != "" {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, why)
	}
	return nil
}

// SignPod says that members are like no other pod: they follow their gang's plan.
// Nothing about other pods makes a difference.
func (p *Plugin) SignPod(_ context.Context, pod *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	if _, ok := gangOf(pod); ok {
		return nil, fwk.NewStatus(fwk.Unschedulable, "members of a gang follow its plan")
	}
	return nil, nil
}

// timeout returns how long members of the gang may wait for each other: what its
// PodGroup object says, else what the profile does; never longer than the framework
// lets any pod wait.
func (p *Plugin) timeout(gang types.NamespacedName) time.Duration {
	timeout := p.args.Timeout.Duration
	if group, err := p.state.group(gang); err == nil {
		if own, ok := podgroup.OwnTimeout(group); ok {
			timeout = own
		}
	}
	return min(timeout, args.MaxGangTimeout)
}

// gangOf returns the virtual group that pod is a member of.
func gangOf(pod *corev1.Pod) (types.NamespacedName, bool) {
	name := podgroup.NameOf(pod)
	if !podgroup.IsVirtual(name) {
		return types.NamespacedName{}, false
	}
	return types.NamespacedName{Namespace: pod.Namespace, Name: name}, true
}

// holds returns why pod, if it is a member, must not be tried yet, or "".
func (s *State) holds(pod *corev1.Pod) string {
	gang, ok := gangOf(pod)
	if !ok {
		return ""
	}
	group, err := s.group(gang)
	if err != nil {
		return reasonNoGroup
	}
	if why := podgroup.HeldBack(group, pod); why != "" {
		return why
	}
	if there, need := len(s.members(gang).there()), minCount(group); there < need {
		return fmt.Sprintf("waiting for more members of the gang: %d of %d exist", there, need)
	}
	return ""
}
