package permit

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	schedulinglisters "k8s.io/client-go/listers/scheduling/v1beta1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/contain"
)

const (
	// sweepPeriod is how often the state is looked over: what an event was too early
	// or too late for is mended then.
	sweepPeriod = 100 * time.Millisecond
	// retryPeriod is how long after a trial that failed the next comes at the latest:
	// not everything that may keep a pod from fitting is an event here.
	retryPeriod = 30 * time.Second
	// A gang that has lost its turn is tried again after this, twice as long after
	// each time that follows at once, up to the longest, which is also the longest of
	// the queue's own by default: after a whole timeout others get a try before it.
	firstBackoff   = time.Second
	longestBackoff = 10 * time.Second
)

// State is what the profiles of one process know of gangs together. Scheduling
// cycles come one at a time, but members are lost on other goroutines.
//
// Nothing of the queue may be called while mu is held: the queue calls hints and
// PreEnqueue under its own lock.
type State struct {
	groups Groups
	clock  clock.WithTicker

	once   sync.Once
	failed error
	handle fwk.Handle // of one of the profiles; they share queue and waiting pods
	pods   cache.Indexer
	lister schedulinglisters.PodGroupLister

	mu    sync.Mutex
	gangs map[types.NamespacedName]*gang
	seats map[types.UID]*seat

	births births
}

// gang is what is known of one gang beside its members and its group.
type gang struct {
	// reserved are the members that have a node and whose Binding was not seen yet.
	reserved map[types.UID]reservation
	turn     *turn    // nil: it has none
	refused  *refusal // what came of the last trial; nil: none failed, or something is new
	// blocked is the member that is to be tried when the gang may have its turn; nil:
	// none waits for that. told are all that say so in their condition.
	blocked *corev1.Pod
	told    map[string]*corev1.Pod
	retry   time.Time // when it is tried again, at the latest; zero: not set
	torn    time.Time // since when seats of its members were last kept
	backoff time.Duration
}

// reservation is how far a member with a node is.
type reservation string

const (
	waits   reservation = "waits"   // for the others
	allowed reservation = "allowed" // it is being bound
	// leaves is of one that is let go and has its node until its Unreserve: it counts
	// for nothing any more.
	leaves reservation = "leaves"
)

// turn is a gang's time to be placed.
type turn struct {
	plan    map[types.UID]string // the node of each member
	nodes   sets.Set[string]     // on which a member could be, as far as its needs say
	until   time.Time
	timeout time.Duration
}

// refusal is what came of a trial that failed.
type refusal struct {
	by      types.UID // the member whose cycle it was in: the one to be tried again
	message string
}

// NewState returns a State that knows no gangs, and tells groups what it sees.
func NewState(groups Groups, c clock.WithTicker) *State {
	return &State{
		groups: groups, clock: c,
		gangs: map[types.NamespacedName]*gang{}, seats: map[types.UID]*seat{},
		births: births{of: map[types.NamespacedName]time.Time{}},
	}
}

// attach takes the informers from the first profile's handle. It must come before
// they are started.
func (s *State) attach(ctx context.Context, handle fwk.Handle, guard *contain.Guard) error {
	s.once.Do(func() { s.failed = s.watch(ctx, handle, guard) })
	return s.failed
}

func (s *State) watch(ctx context.Context, handle fwk.Handle, guard *contain.Guard) error {
	s.handle = handle
	factory := handle.SharedInformerFactory()
	pods := factory.Core().V1().Pods().Informer()
	if err := pods.AddIndexers(cache.Indexers{byGang: indexByGang}); err != nil {
		return fmt.Errorf("index pods by gang: %w", err)
	}
	s.pods = pods.GetIndexer()
	groups := factory.Scheduling().V1beta1().PodGroups()
	s.lister = groups.Lister()
	if _, err := pods.AddEventHandler(guard.Handler(ctx, s.podHandler())); err != nil {
		return fmt.Errorf("watch pods: %w", err)
	}
	if _, err := groups.Informer().AddEventHandler(guard.Handler(ctx, s.groupHandler())); err != nil {
		return fmt.Errorf("watch pod groups: %w", err)
	}
	return nil
}

// Run looks the state over until ctx is over.
func (s *State) Run(ctx context.Context) {
	ticker := s.clock.NewTicker(sweepPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
		s.sweep()
	}
}

// group returns the group of the gang.
func (s *State) group(gang types.NamespacedName) (*schedulingv1beta1.PodGroup, error) {
	return s.lister.PodGroups(gang.Namespace).Get(gang.Name)
}

// need returns how many members of the gang must have a node, and whether its group
// is there.
func (s *State) need(gang types.NamespacedName) (int, bool) {
	group, err := s.group(gang)
	if err != nil {
		return 0, false
	}
	return minCount(group), true
}

// of returns what is known of the gang. The caller holds s.mu.
func (s *State) of(name types.NamespacedName) *gang {
	g := s.gangs[name]
	if g == nil {
		g = &gang{reserved: map[types.UID]reservation{}}
		s.gangs[name] = g
	}
	return g
}

// after is what is to be done once s.mu is not held.
type after struct {
	activate map[string]*corev1.Pod
	allow    []types.NamespacedName
	reject   map[types.NamespacedName]string // with the reason
	// gone is a member that is deleted; "" for none. The scheduler rejects it itself,
	// and two who reject one pod at a time write to the same field of upstream's
	// (framework/runtime, waitingPod.stopWithStatus).
	gone types.UID
}

// wake has the pods tried.
func (a *after) wake(pods map[string]*corev1.Pod) {
	if a.activate == nil {
		a.activate = map[string]*corev1.Pod{}
	}
	maps.Copy(a.activate, pods)
}

// letGo has the members of the gang that wait at Permit rejected.
func (a *after) letGo(gang types.NamespacedName, why string) {
	if a.reject == nil {
		a.reject = map[types.NamespacedName]string{}
	}
	a.reject[gang] = why
}

// do does it.
func (s *State) do(a after) {
	if len(a.allow)+len(a.reject) > 0 {
		complete := sets.New(a.allow...)
		// Allow and Reject only send; nothing in here asks for another waiting pod,
		// which would lock the map twice.
		s.handle.IterateOverWaitingPods(func(waiting fwk.WaitingPod) {
			gang, ok := gangOf(waiting.GetPod())
			if !ok || waiting.GetPod().UID == a.gone || !waitsForGang(waiting) {
				return
			}
			if complete.Has(gang) {
				waiting.Allow(Name)
			} else if why, ok := a.reject[gang]; ok {
				waiting.Reject(Name, why)
			}
		})
	}
	if len(a.activate) > 0 {
		s.handle.Activate(klog.Background(), a.activate)
	}
}

// complete ends the turn of a gang of which enough members have nodes: they are
// bound, and the others need no turn. The caller holds s.mu.
func (s *State) complete(name types.NamespacedName, g *gang, a *after) {
	a.allow = append(a.allow, name)
	for uid, r := range g.reserved {
		if r == waits {
			g.reserved[uid] = allowed
		}
	}
	g.refused, g.backoff, g.retry = nil, 0, time.Time{}
	if g.turn != nil {
		g.turn = nil
		s.next(a)
	}
}

// isLate reports whether the gang's turn has lasted its time: members that wait may
// be let go by now, which nobody can see. The caller holds s.mu.
func (g *gang) isLate(now time.Time) bool { return g.turn != nil && !now.Before(g.turn.until) }

// isResting reports whether the gang has lost its turn and is not to have another
// yet, whatever wakes its members. The caller holds s.mu.
func (g *gang) isResting(now time.Time) bool {
	return g.turn == nil && g.refused == nil && now.Before(g.retry)
}

// isLeaving reports whether members are being let go. The caller holds s.mu.
func (g *gang) isLeaving() bool {
	for _, r := range g.reserved {
		if r == leaves {
			return true
		}
	}
	return false
}

// lose ends the turn of a gang that is not complete: members that wait are let go,
// and it is tried again after a while. The caller holds s.mu.
func (s *State) lose(name types.NamespacedName, g *gang, why string, a *after) {
	g.turn = nil
	for uid, r := range g.reserved {
		if r == waits {
			g.reserved[uid] = leaves
		}
	}
	g.backoff = min(max(2*g.backoff, firstBackoff), longestBackoff)
	g.retry = s.clock.Now().Add(g.backoff)
	a.letGo(name, why)
	s.next(a)
}

// next has the gangs tried that wait for their turn, one member of each: the order
// of the queue decides. The caller holds s.mu.
func (s *State) next(a *after) {
	for _, g := range s.gangs {
		if g.blocked != nil {
			a.wake(byKey(members{g.blocked}))
			g.blocked = nil
		}
	}
}

// sweep mends what no event did: turns that are over, members that came among the
// waiting pods too late to be let go, and gangs that are due to be tried again.
func (s *State) sweep() {
	var a after
	now := s.clock.Now()
	s.mu.Lock()
	for name, g := range s.gangs {
		all := s.members(name)
		if len(all) == 0 && len(g.reserved) == 0 {
			if g.turn != nil {
				s.lose(name, g, "the gang is gone", &a)
			}
			delete(s.gangs, name)
			s.births.forget(name)
			continue
		}
		s.mend(name, g, all, now, &a)
	}
	s.endSeats(now, &a)
	s.mu.Unlock()
	s.do(a)
}

// mend is sweep for one gang. The caller holds s.mu.
func (s *State) mend(name types.NamespacedName, g *gang, all members, now time.Time, a *after) {
	need, known := s.need(name)
	placed, open := g.count(all)
	if t := g.turn; t != nil {
		left := placed
		for _, pod := range open {
			if t.plan[pod.UID] != "" {
				left++
			}
		}
		switch {
		case !known:
			s.lose(name, g, "the gang's PodGroup is gone", a)
		case !now.Before(t.until):
			g.backoff = longestBackoff
			s.lose(name, g, fmt.Sprintf("the gang was not complete after %s", t.timeout), a)
		case placed >= need:
			s.complete(name, g, a)
		case left < need:
			s.lose(name, g, "a member of the gang is lost", a)
		}
		return
	}
	switch {
	case len(g.reserved) == 0:
	case known && placed >= need:
		a.allow = append(a.allow, name)
	default: // those that were allowed before do not wait any more
		a.letGo(name, reasonLost)
	}
	if !g.retry.IsZero() && !now.Before(g.retry) {
		g.retry = time.Time{}
		if g.refused != nil {
			open = only(open, g.refused.by)
		}
		a.wake(byKey(open))
	}
}

// only returns the member of that UID, or all where it is not among them.
func only(pods members, uid types.UID) members {
	for _, pod := range pods {
		if pod.UID == uid {
			return members{pod}
		}
	}
	return pods
}

// waitsForGang reports whether it is its gang that a pod waits for at Permit.
func waitsForGang(pod fwk.WaitingPod) bool {
	for _, plugin := range pod.GetPendingPlugins() {
		if plugin == Name {
			return true
		}
	}
	return false
}
