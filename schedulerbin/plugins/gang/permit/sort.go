package permit

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/contain"
)

// SortName is the name of the plugin that sorts the queue of all profiles.
const SortName = "GangSort"

// Sort is the plugin GangSort. It uses QueueSort alone.
type Sort struct{ state *State }

var _ fwk.QueueSortPlugin = &Sort{}

// NewSort returns the factory of GangSort. It takes no arguments.
func NewSort(state *State) func(context.Context, runtime.Object, fwk.Handle, *contain.Guard) (fwk.Plugin, error) {
	return func(_ context.Context, _ runtime.Object, _ fwk.Handle, guard *contain.Guard) (fwk.Plugin, error) {
		return contain.Wrap[containedSort](guard, &Sort{state: state})
	}
}

type containedSort struct {
	contain.Plugin
	contain.QueueSortPlugin
}

// Name returns GangSort.
func (p *Sort) Name() string { return SortName }

// Less puts the higher priority first, and of one priority who was there first, as
// PrioritySort does; a member counts from when the first of its gang was there, so
// that nothing comes between members.
func (p *Sort) Less(one, other fwk.QueuedEntityInfo) bool {
	if a, b := one.GetPriority(), other.GetPriority(); a != b {
		return a > b
	}
	a, b := p.rank(one), p.rank(other)
	if c := cmp.Or(a.since.Compare(b.since), cmp.Compare(a.gang, b.gang)); c != 0 {
		return c < 0
	}
	return one.GetTimestamp().Before(other.GetTimestamp())
}

// rank is an entry's place among those of its priority.
type rank struct {
	since time.Time
	gang  string
}

func (p *Sort) rank(entity fwk.QueuedEntityInfo) rank {
	if queued, ok := entity.(*framework.QueuedPodInfo); ok {
		if name, ok := gangOf(queued.Pod); ok {
			return rank{p.state.births.at(name, p.state.clock.Now()), name.String()}
		}
	}
	return rank{since: entity.GetTimestamp()}
}

// births are when gangs were first in the queue. A gang's does not change while one
// of its members is there: the queue is a heap, and its order must stand.
type births struct {
	mu sync.Mutex
	of map[types.NamespacedName]time.Time
}

func (b *births) at(gang types.NamespacedName, now time.Time) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	at, ok := b.of[gang]
	if !ok {
		at = now
		b.of[gang] = now
	}
	return at
}

func (b *births) forget(gang types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.of, gang)
}

// HasPlacedSiblings reports whether members of pod's gang have nodes.
func (s *State) HasPlacedSiblings(pod *corev1.Pod) bool {
	name, ok := gangOf(pod)
	return ok && slices.ContainsFunc(s.members(name), func(sibling *corev1.Pod) bool { return sibling.Spec.NodeName != "" })
}

// ComeFirst lets the gangs of the pods come before all others of their priority for as
// long as they have members. None of the pods may be in the queue.
func (s *State) ComeFirst(pods []*corev1.Pod) {
	s.births.mu.Lock()
	defer s.births.mu.Unlock()
	for _, pod := range pods {
		if name, ok := gangOf(pod); ok {
			s.births.of[name] = time.Time{}
		}
	}
}
