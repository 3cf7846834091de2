package gang

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gangkey"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/podgroup"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/room"
)

// againstKey is where PreFilter leaves the holds for Filter.
const againstKey fwk.StateKey = Name + "/against"

type against []*hold

// Clone returns the holds, which do not change.
func (a against) Clone() fwk.StateData { return a }

// SignPod says what about the pod makes a difference to the plugin: nothing. What
// is held changes, but the framework filters the node that it takes from another
// pod's cycle.
func (p *Plugin) SignPod(context.Context, *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	return nil, nil
}

// PreFilter finds the holds that keep seats from pod. Without any, which is the
// rule, Filter is skipped.
func (p *Plugin) PreFilter(_ context.Context, state fwk.CycleState, pod *corev1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	holds := p.holds.against(nameOf(pod), gangkey.Priority(pod))
	if len(holds) == 0 {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	state.Write(againstKey, against(holds))
	return nil, nil
}

// PreFilterExtensions returns nil: other pods make no difference.
func (p *Plugin) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// Filter keeps pod off a node where it would not fit beside the members whose seats
// are held there.
func (p *Plugin) Filter(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo) *fwk.Status {
	data, err := state.Read(againstKey)
	if err != nil {
		return nil // nothing is held against it
	}
	holds, ok := data.(against)
	if !ok {
		return fwk.AsStatus(fmt.Errorf("state %q holds a %T", againstKey, data))
	}
	for _, held := range holds {
		seats := held.seats[node.Node().Name]
		if len(seats) == 0 {
			continue
		}
		fits, err := room.FitsBeside(ctx, p.handle, Name, state, pod, node, seats)
		if err != nil {
			return fwk.AsStatus(err)
		}
		if !fits {
			held.reject(pod)
			return fwk.NewStatus(fwk.Unschedulable, fmt.Sprintf("seats are held for gang %s/%s until %s", held.group.Namespace, podgroup.GangName(held.group.Name), held.until.UTC().Format(clockTime)))
		}
	}
	return nil
}
