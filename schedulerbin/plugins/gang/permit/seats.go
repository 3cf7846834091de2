package permit

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gangkey"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/podgroup"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/room"
)

// againstKey is where PreFilter leaves the seats for Filter.
const againstKey fwk.StateKey = Name + "/against"

// seat is where a member was that lost its node when siblings were bound or being
// bound: what is bound in part must be whole before others get the room.
type seat struct {
	gang     types.NamespacedName
	node     string
	member   fwk.PodInfo
	priority int32
	until    time.Time
	// kept are the pods that were kept off it; guarded by State.mu.
	kept map[string]*corev1.Pod
}

type against []*seat

// Clone returns the seats.
func (a against) Clone() fwk.StateData { return a }

// keepSeat keeps the node of a member for its next try, for one timeout of two. The
// caller holds s.mu.
func (p *Plugin) keepSeat(ctx context.Context, name types.NamespacedName, g *gang, pod *corev1.Pod, node string) {
	s := p.state
	all := s.members(name)
	placed, open := g.count(all)
	if placed == 0 || len(only(open, pod.UID)) != 1 || only(open, pod.UID)[0].UID != pod.UID {
		return // nothing is bound, or the member itself is gone
	}
	now, timeout := s.clock.Now(), p.timeout(name)
	if now.Sub(g.torn) >= 2*timeout {
		g.torn = now
	}
	until := g.torn.Add(timeout)
	if !now.Before(until) {
		return
	}
	info, err := room.NewSeat(pod)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Cannot keep the seat of a member that has lost it", "pod", klog.KObj(pod))
		return
	}
	s.seats[pod.UID] = &seat{gang: name, node: node, member: info, priority: gangkey.Priority(pod), until: until, kept: map[string]*corev1.Pod{}}
}

// seatsAgainst returns the seats that are kept from pod.
func (s *State) seatsAgainst(pod *corev1.Pod) against {
	name, isMember := gangOf(pod)
	now := s.clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	var all against
	for _, kept := range s.seats {
		own := isMember && kept.gang == name
		if !own && now.Before(kept.until) && kept.priority >= gangkey.Priority(pod) {
			all = append(all, kept)
		}
	}
	return all
}

// endSeats ends the seats that were kept for long enough. The caller holds s.mu.
func (s *State) endSeats(now time.Time, a *after) {
	for uid, kept := range s.seats {
		if !now.Before(kept.until) {
			s.endSeat(uid, a)
		}
	}
}

// endSeat ends the seat of a member that will not take it. The caller holds s.mu.
func (s *State) endSeat(uid types.UID, a *after) {
	if kept := s.seats[uid]; kept != nil {
		delete(s.seats, uid)
		a.wake(kept.kept)
	}
}

// Filter keeps pod off a node where it would not fit beside the members whose seats
// are kept there.
func (p *Plugin) Filter(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo) *fwk.Status {
	data, err := state.Read(againstKey)
	if err != nil {
		return nil // nothing is kept from it
	}
	seats, ok := data.(against)
	if !ok {
		return fwk.AsStatus(fmt.Errorf("state %q holds a %T", againstKey, data))
	}
	var here []*seat
	for _, kept := range seats {
		if kept.node == node.Node().Name {
			here = append(here, kept)
		}
	}
	if len(here) == 0 {
		return nil
	}
	members := make([]fwk.PodInfo, len(here))
	for i, kept := range here {
		members[i] = kept.member
	}
	fits, err := room.FitsBeside(ctx, p.handle, Name, state, pod, node, members)
	if err != nil {
		return fwk.AsStatus(err)
	}
	if fits {
		return nil
	}
	p.state.mu.Lock()
	defer p.state.mu.Unlock()
	for _, kept := range here {
		kept.kept[pod.Namespace+"/"+pod.Name] = pod
	}
	return fwk.NewStatus(fwk.Unschedulable, fmt.Sprintf("a seat is kept for gang %s/%s, which is bound in part", here[0].gang.Namespace, podgroup.GangName(here[0].gang.Name)))
}
