package gang

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/args"
)

// retriedLately is how long ago a gang may have been tried at most to come before
// others that wait: longer than the queue's longest backoff by default.
const retriedLately = 30 * time.Second

// clockTime is how times are written in messages.
const clockTime = "15:04:05 UTC"

// Holds are the seats that are held for gangs, in all profiles of a process. While
// single pods keep a cluster nearly full, the room for a gang is never free at one
// time: each seat goes to the next single pod. So the seats of a gang that has
// failed for its timeout are held, until it starts, and for one more timeout at
// most. Nodes whose hold is over are not held again for as long as they were, so
// that no pod waits for longer than one timeout because of gangs.
type Holds struct {
	clock clock.WithDelayedExecution
	// active are the holds that Filter goes by; never nil. A hold is not changed
	// once it is in there.
	active atomic.Pointer[[]*hold]

	mu      sync.Mutex
	waiting map[types.NamespacedName]*waiter
	partial map[types.NamespacedName]time.Time // since when seats of its rest are held
	resting []rest
	// restUntil is when gangs may be tried early again, and resumes that something
	// waits for that.
	restUntil time.Time
	resumes   bool
	// count is the length of waiting, for those who only look whether there is any.
	count atomic.Int32

	nodes    prometheus.Gauge
	outcomes *prometheus.CounterVec
}

// The outcomes of a hold.
const (
	outcomeStarted = "started" // the gang was placed
	outcomeExpired = "expired" // its time was over
	outcomeDropped = "dropped" // the gang is gone, or lost members
)

// waiter is a gang that does not fit.
type waiter struct {
	pod     *corev1.Pod // a member
	timeout time.Duration
	since   time.Time // when it did not fit first, or its last hold ended
	tried   time.Time // when it did not fit last
	wake    func() bool
	timer   clock.Timer
	want    *want // nil: it is not known
}

func (w *waiter) overdue(now time.Time) bool { return now.Sub(w.since) >= w.timeout }

// hold is seats that are held for one gang.
type hold struct {
	group       types.NamespacedName
	priority    int32
	seats       map[string][]fwk.PodInfo // the members that would be there, by node
	since       time.Time
	until       time.Time
	activate    func(map[string]*corev1.Pod)
	rejectedMu  sync.Mutex
	rejected    map[types.UID]*corev1.Pod // pods that found no node because of it
	releaseOnce sync.Once
}

// rest is nodes that are not held again until then.
type rest struct {
	nodes []string
	until time.Time
}

// NewHolds returns no holds.
func NewHolds(c clock.WithDelayedExecution) *Holds {
	h := &Holds{
		clock: c, waiting: map[types.NamespacedName]*waiter{}, partial: map[types.NamespacedName]time.Time{},
		nodes: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "kubectl_sched_gang_held_nodes",
			Help: "Nodes on which seats are held for gangs that single pods would keep from starting.",
		}),
		outcomes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kubectl_sched_gang_holds_total",
			Help: "Holds of seats for a gang that have ended, by outcome: the gang started, its time expired, or it was dropped because the gang is gone or lost members.",
		}, []string{"outcome"}),
	}
	h.active.Store(&[]*hold{})
	for _, outcome := range []string{outcomeStarted, outcomeExpired, outcomeDropped} {
		h.outcomes.WithLabelValues(outcome)
	}
	return h
}

var _ prometheus.Collector = (*Holds)(nil)

// Describe sends the descriptions of all metrics.
func (h *Holds) Describe(to chan<- *prometheus.Desc) {
	h.nodes.Describe(to)
	h.outcomes.Describe(to)
}

// Collect sends the current values of all metrics.
func (h *Holds) Collect(to chan<- prometheus.Metric) {
	h.nodes.Collect(to)
	h.outcomes.Collect(to)
}

// Nodes returns the names of the nodes on which seats are held, sorted.
func (h *Holds) Nodes() []string {
	nodes := map[string]bool{}
	for _, held := range *h.active.Load() {
		for node := range held.seats {
			nodes[node] = true
		}
	}
	return slices.Sorted(maps.Keys(nodes))
}

// of returns the holds of the group.
func (h *Holds) of(group types.NamespacedName) []*hold {
	var holds []*hold
	for _, held := range *h.active.Load() {
		if held.group == group {
			holds = append(holds, held)
		}
	}
	return holds
}

// against returns the holds that keep seats from pod: those of gangs of its
// priority or a higher one, but its own.
func (h *Holds) against(group types.NamespacedName, priority int32) []*hold {
	var against []*hold
	for _, held := range *h.active.Load() {
		if held.group != group && priority <= held.priority {
			against = append(against, held)
		}
	}
	return against
}

// failed notes that the gang of pod did not fit, and reports whether it has not for
// its timeout. It calls wake each time that another is over; wake has the gang
// tried, and reports whether it still waits.
func (h *Holds) failed(group types.NamespacedName, pod *corev1.Pod, timeout time.Duration, wake func() bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.clock.Now()
	w := h.waiting[group]
	if w == nil {
		w = &waiter{since: now, timeout: timeout, wake: wake}
		h.waiting[group] = w
		h.count.Store(int32(len(h.waiting)))
		h.arm(group, w)
	}
	w.pod, w.timeout, w.tried = pod, timeout, now
	return w.overdue(now)
}

// again has the gang wait for another timeout before seats are held for it.
func (h *Holds) again(group types.NamespacedName) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if w := h.waiting[group]; w != nil {
		w.timer.Stop()
		w.since = h.clock.Now()
		h.arm(group, w)
	}
}

// arm starts the timer of w, for callers that hold h.mu.
func (h *Holds) arm(group types.NamespacedName, w *waiter) {
	w.timer = h.clock.AfterFunc(w.timeout, func() {
		go func() { // a clock may call with its lock held
			if !w.wake() {
				return
			}
			h.mu.Lock()
			defer h.mu.Unlock()
			if h.waiting[group] == w {
				if w.want != nil {
					w.want.woken = false // if it was tried early, something else came of it
				}
				h.arm(group, w)
			}
		}()
	})
}

// wakeOverdue has the gangs tried that have not fit for their timeouts, those that
// have waited for longest first: the queue would have them wait for their backoff.
func (h *Holds) wakeOverdue() {
	h.mu.Lock()
	now := h.clock.Now()
	var overdue []*waiter
	for _, w := range h.waiting {
		if w.overdue(now) {
			overdue = append(overdue, w)
		}
	}
	slices.SortFunc(overdue, func(a, b *waiter) int { return a.since.Compare(b.since) })
	h.mu.Unlock()
	for _, w := range overdue {
		w.wake()
	}
}

// forget notes that the gang does not wait for room any more.
func (h *Holds) forget(group types.NamespacedName) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if w := h.waiting[group]; w != nil {
		w.timer.Stop()
		delete(h.waiting, group)
		h.count.Store(int32(len(h.waiting)))
	}
}

// turn reports whether it is the group's turn: seats are held for one gang a pool
// at a time, so no node that its members could be on may be held or at rest, and
// no gang of the same needs may have waited for longer.
func (h *Holds) turn(group types.NamespacedName, couldBeOn func(node string) bool, sameNeeds func(*corev1.Pod) bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.clock.Now()
	h.resting = slices.DeleteFunc(h.resting, func(r rest) bool { return !r.until.After(now) })
	for _, held := range *h.active.Load() {
		for node := range held.seats {
			if couldBeOn(node) {
				return false
			}
		}
	}
	for _, r := range h.resting {
		if slices.ContainsFunc(r.nodes, couldBeOn) {
			return false
		}
	}
	mine := h.waiting[group]
	for other, w := range h.waiting {
		if mine != nil && other != group && w.overdue(now) && w.since.Before(mine.since) && now.Sub(w.tried) < retriedLately && sameNeeds(w.pod) {
			return false
		}
	}
	return true
}

// untilForPart returns until when seats may be held for a gang that is bound in part,
// and whether they may: it need not wait for its turn, but a member whose bind fails
// again and again gets no more than one timeout of two.
func (h *Holds) untilForPart(group types.NamespacedName, timeout time.Duration) (time.Time, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.clock.Now()
	maps.DeleteFunc(h.partial, func(_ types.NamespacedName, since time.Time) bool { return now.Sub(since) >= 2*args.MaxGangTimeout })
	since, known := h.partial[group]
	if !known || now.Sub(since) >= 2*timeout {
		since = now
		h.partial[group] = now
	}
	until := since.Add(timeout)
	return until, now.Before(until)
}

// take holds the seats.
func (h *Holds) take(held *hold) {
	h.mu.Lock()
	defer h.mu.Unlock()
	active := append(slices.Clone(*h.active.Load()), held)
	h.active.Store(&active)
	h.nodes.Add(float64(len(held.seats)))
}

// release ends the hold, if it has not ended yet, and wakes the pods that it kept
// from a node.
func (h *Holds) release(held *hold, outcome string) {
	held.releaseOnce.Do(func() {
		h.mu.Lock()
		active := slices.DeleteFunc(slices.Clone(*h.active.Load()), func(other *hold) bool { return other == held })
		h.active.Store(&active)
		h.nodes.Sub(float64(len(held.seats)))
		h.outcomes.WithLabelValues(outcome).Inc()
		now := h.clock.Now()
		r := rest{until: now.Add(now.Sub(held.since))}
		for node := range held.seats {
			r.nodes = append(r.nodes, node)
		}
		h.resting = append(h.resting, r)
		h.mu.Unlock()
		h.clock.AfterFunc(r.until.Sub(now), func() { go h.wakeOverdue() }) // it may be another's turn
		if rejected := held.takeRejected(); len(rejected) > 0 {
			held.activate(rejected)
		}
	})
}

// reject notes that the hold kept pod from a node.
func (held *hold) reject(pod *corev1.Pod) {
	held.rejectedMu.Lock()
	defer held.rejectedMu.Unlock()
	held.rejected[pod.UID] = pod
}

// takeRejected returns the pods that the hold kept from a node.
func (held *hold) takeRejected() map[string]*corev1.Pod {
	held.rejectedMu.Lock()
	defer held.rejectedMu.Unlock()
	pods := make(map[string]*corev1.Pod, len(held.rejected))
	for uid, pod := range held.rejected {
		pods[string(uid)] = pod
	}
	held.rejected = map[types.UID]*corev1.Pod{}
	return pods
}

// message says on members for how long seats are held.
func (held *hold) message() string {
	return fmt.Sprintf("seats on %d nodes are held for the gang until %s", len(held.seats), held.until.UTC().Format(clockTime))
}
