package permit

import (
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/podgroup"
)

// PreFilter says on which node a member may be: with its gang's turn, on the one of
// the plan. A refusal is UnschedulableAndUnresolvable, since preemption for one
// member would not help its gang.
func (p *Plugin) PreFilter(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	seats := p.state.seatsAgainst(pod)
	if len(seats) > 0 {
		state.Write(againstKey, seats)
	}
	var node string
	name, isMember := gangOf(pod)
	if isMember && !isTrial(state) {
		var status *fwk.Status
		if node, status = p.admit(ctx, name, pod); !status.IsSuccess() {
			return nil, status
		}
	}
	switch {
	case node != "":
		return &fwk.PreFilterResult{NodeNames: sets.New(node)}, nil
	case len(seats) > 0:
		return nil, nil
	default:
		return nil, fwk.NewStatus(fwk.Skip)
	}
}

// PreFilterExtensions returns nil: other pods make no difference.
func (p *Plugin) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// admit returns the node that a member is to have, "" for any: with it the gang is
// complete. The status says why it may have none now.
func (p *Plugin) admit(ctx context.Context, name types.NamespacedName, pod *corev1.Pod) (string, *fwk.Status) {
	s := p.state
	if why := s.holds(pod); why != "" { // something has changed since PreEnqueue
		return "", refuse(why)
	}
	need, _ := s.need(name)
	s.mu.Lock()
	g := s.of(name)
	placed, open := g.count(s.members(name))
	current, refused, leaving, resting := g.turn, g.refused, g.isLeaving(), g.isResting(s.clock.Now())
	s.mu.Unlock()
	switch {
	case leaving: // the last of those has the gang tried again
		return "", refuse(reasonLost)
	case current != nil:
		if node := current.plan[pod.UID]; node != "" {
			fits, err := p.fits(ctx, pod, node)
			if err != nil {
				return "", fwk.AsStatus(err)
			}
			if fits {
				return node, nil
			}
		}
	case placed+1 >= need:
		return "", nil
	case resting:
		return "", refuse(reasonLost)
	case refused != nil && refused.by != pod.UID:
		return "", refuse(refused.message)
	}
	return p.plan(ctx, name, pod, first(pod, open), need-placed)
}

// first returns the members with pod before the others.
func first(pod *corev1.Pod, open members) members {
	ordered := members{pod}
	for _, other := range open {
		if other.UID != pod.UID {
			ordered = append(ordered, other)
		}
	}
	return ordered
}

// plan tries the members that have no node, of which so many need one, and gives the
// gang its turn, or keeps it, if that does.
func (p *Plugin) plan(ctx context.Context, name types.NamespacedName, pod *corev1.Pod, open members, need int) (string, *fwk.Status) {
	s := p.state
	nodes, err := p.couldBeOn(ctx, open)
	if err != nil {
		return "", fwk.AsStatus(err)
	}
	nodes, waiting := s.waitsForTurn(name, pod, nodes)
	if waiting {
		return "", refuse(reasonTurn)
	}
	found, err := p.try(ctx, open)
	if err != nil {
		return "", fwk.AsStatus(fmt.Errorf("try the gang: %w", err))
	}
	if len(found.plan) < need {
		message := fmt.Sprintf("gang %s: a node was found for %d of %d members, needs %d: %s", podgroup.GangName(name.Name), len(found.plan), len(open), need, found.why)
		p.refused(name, pod, message, len(found.plan))
		return "", refuse(message)
	}
	var a after
	s.mu.Lock()
	g := s.of(name)
	timeout := p.timeout(name)
	until := s.clock.Now().Add(timeout)
	if g.turn != nil {
		until = g.turn.until // what is held is not held for longer
	}
	g.turn, g.refused, g.retry, g.told = &turn{plan: found.plan, nodes: nodes, until: until, timeout: timeout}, nil, time.Time{}, nil
	// Some may wait for their backoff, or for an event.
	for _, other := range open {
		if other.UID != pod.UID && found.plan[other.UID] != "" {
			a.wake(byKey(members{other}))
		}
	}
	s.mu.Unlock()
	s.groups.Fits(name.Namespace, name.Name)
	s.do(a)
	if node := found.plan[pod.UID]; node != "" {
		return node, nil
	}
	return "", refuse(reasonSurplus)
}

// refused notes a trial that failed in pod's cycle. A turn that the gang had is over.
func (p *Plugin) refused(name types.NamespacedName, pod *corev1.Pod, message string, fits int) {
	s := p.state
	var a after
	s.mu.Lock()
	g := s.of(name)
	if g.turn != nil {
		s.lose(name, g, "the rest of the gang does not fit any more", &a)
	} else {
		g.retry = s.clock.Now().Add(retryPeriod)
	}
	g.refused = &refusal{by: pod.UID, message: message}
	delete(g.told, pod.Namespace+"/"+pod.Name)
	a.wake(g.told) // it is not its turn that they wait for any more
	g.told = nil
	s.mu.Unlock()
	s.groups.Failed(name.Namespace, name.Name, fits)
	s.do(a)
}

// waitsForTurn reports whether another gang has its turn on one of the nodes. If so,
// pod is tried again when that is over. A gang that has its turn keeps it, on its
// nodes and these.
func (s *State) waitsForTurn(name types.NamespacedName, pod *corev1.Pod, nodes sets.Set[string]) (sets.Set[string], bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.of(name)
	own.blocked = nil
	if own.turn != nil {
		return own.turn.nodes.Union(nodes), false
	}
	for other, g := range s.gangs {
		if other != name && g.turn != nil && g.turn.nodes.HasAny(nodes.UnsortedList()...) {
			own.blocked = pod
			if own.told == nil {
				own.told = map[string]*corev1.Pod{}
			}
			maps.Copy(own.told, byKey(members{pod}))
			return nil, true
		}
	}
	return nodes, false
}

// refuse returns the status of a member that may have no node now.
func refuse(why string) *fwk.Status { return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, why) }

// PostFilter ends the turn of a gang whose member did not fit where the plan has it,
// as an extender may decide, and ends the search for room for a member that would
// not make its gang complete.
func (p *Plugin) PostFilter(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	name, ok := gangOf(pod)
	if !ok {
		return nil, fwk.NewStatus(fwk.Unschedulable)
	}
	s := p.state
	need, _ := s.need(name)
	var a after
	s.mu.Lock()
	g := s.of(name)
	placed, _ := g.count(s.members(name))
	alone := g.turn == nil && placed+1 >= need
	if g.turn != nil && g.turn.plan[pod.UID] != "" {
		s.lose(name, g, fmt.Sprintf("member %s did not fit after all", pod.Name), &a)
	}
	s.mu.Unlock()
	s.do(a)
	if alone {
		return nil, fwk.NewStatus(fwk.Unschedulable)
	}
	return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable)
}

// Reserve notes that the member has a node.
func (p *Plugin) Reserve(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) *fwk.Status {
	name, ok := gangOf(pod)
	if !ok {
		return nil
	}
	p.state.mu.Lock()
	defer p.state.mu.Unlock()
	p.state.of(name).reserved[pod.UID] = waits
	delete(p.state.seats, pod.UID)
	return nil
}

// Permit has a member wait until its gang is complete, and lets all go on that wait
// with the one that makes it so.
func (p *Plugin) Permit(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) (*fwk.Status, time.Duration) {
	name, ok := gangOf(pod)
	if !ok {
		return nil, 0
	}
	s := p.state
	need, known := s.need(name)
	var a after
	s.mu.Lock()
	g := s.of(name)
	placed, _ := g.count(s.members(name))
	left := time.Duration(0)
	if g.turn != nil {
		left = g.turn.until.Sub(s.clock.Now())
	}
	complete := known && placed >= need && g.reserved[pod.UID] == waits && !g.isLate(s.clock.Now())
	if complete {
		s.complete(name, g, &a)
	}
	s.mu.Unlock()
	s.do(a)
	switch {
	case complete:
		return nil, 0
	case left > 0:
		// The sweep ends a turn, and knows then who counts. This is for a sweep that
		// does not come.
		return fwk.NewStatus(fwk.Wait, fmt.Sprintf("%d of %d members of the gang have a node", placed, need)), left + time.Second
	default:
		return fwk.NewStatus(fwk.Unschedulable, reasonLost), 0
	}
}

// Unreserve lets go the members that wait for one that is lost: rejected, deleted,
// preempted or failed at its bind. Where siblings are bound already, it keeps the
// member's seat for the retry. It may run for a pod whose Reserve did not, and on
// any goroutine.
func (p *Plugin) Unreserve(ctx context.Context, _ fwk.CycleState, pod *corev1.Pod, node string) {
	name, ok := gangOf(pod)
	if !ok {
		return
	}
	s := p.state
	var a after
	s.mu.Lock()
	g := s.of(name)
	had := g.reserved[pod.UID]
	delete(g.reserved, pod.UID)
	switch {
	case g.turn != nil && had != leaves && (had != "" || g.turn.plan[pod.UID] != ""):
		s.lose(name, g, fmt.Sprintf("member %s of the gang is lost", pod.Name), &a)
	case had == leaves && !g.isLeaving():
		g.refused, g.retry = nil, s.clock.Now().Add(g.backoff) // all of them are to be placed anew
	case had == allowed:
		p.keepSeat(ctx, name, g, pod, node)
	}
	s.mu.Unlock()
	s.do(a)
}
