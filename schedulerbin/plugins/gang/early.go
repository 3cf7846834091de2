package gang

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gangkey"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/room"
)

// The scheduler's queue has a group that did not fit wait for its backoff, which for a
// gang of 16 grows to 40 seconds, whatever becomes free meanwhile. So the room that
// other pods leave is counted, in seats: each goes to the first gang in order that could
// use it, and a gang that has got as many as it lacked is tried at once. What is
// counted is an estimate, and a wrong one costs a trial that fails or the wait that
// there would have been.

const (
	// restAfterTrial is how many times as long as an early trial took that failed
	// there is none: they take a tenth of the scheduler's time at most.
	restAfterTrial = 9
	// nearlySeat is what may be missing because of rounding.
	nearlySeat = 1e-6
)

// want is the room that a gang waits for.
type want struct {
	priority int32
	size     float64 // seats that it needs in all
	lacks    float64 // seats that it lacked when it was tried last, or lost since
	got      float64 // seats that have become free for it since then
	woken    bool    // it has got all, and was not tried since
	// seats says how many seats for its members a pod takes or leaves, 0 on a node
	// where they could not be.
	seats func(*corev1.Pod) float64
}

func (w *want) satisfied() bool { return w.got >= w.lacks-nearlySeat }

// comesBefore reports whether what becomes free is rather w's than other's.
func (w *waiter) comesBefore(other *waiter) bool {
	if w.want.priority != other.want.priority {
		return w.want.priority > other.want.priority
	}
	return w.since.Before(other.since)
}

// lacks notes how much room the gang that did not fit lacks, and that its trial took so
// long.
func (h *Holds) lacks(group types.NamespacedName, wanted want, took time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := h.waiting[group]
	if w == nil {
		return
	}
	if w.want != nil && w.want.woken {
		h.restUntil = h.clock.Now().Add(restAfterTrial * took)
	}
	w.want = &wanted
}

// Left counts the room that a pod has left on its node. It must be called when the
// scheduler's cache is without the pod, else the gang that is tried would not see it.
func (h *Holds) Left(pod *corev1.Pod) {
	if h.count.Load() == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	var first *waiter
	var seats float64
	for _, w := range h.waiting {
		if w.want == nil || w.want.woken || w.want.satisfied() || first != nil && !w.comesBefore(first) {
			continue
		}
		if n := w.want.seats(pod); n > 0 {
			first, seats = w, n
		}
	}
	if first != nil {
		first.want.got += seats
		h.wakeSatisfied()
	}
}

// took counts the room that a pod takes on a node: those who wait lack it.
func (h *Holds) took(group types.NamespacedName, pod *corev1.Pod, node string) {
	if h.count.Load() == 0 {
		return
	}
	if pod.Spec.NodeName != node {
		bound := *pod
		bound.Spec.NodeName = node
		pod = &bound
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, w := range h.waiting {
		if name != group && w.want != nil {
			w.want.lacks = min(w.want.size, w.want.lacks+w.want.seats(pod))
		}
	}
}

// wakeSatisfied has the gangs tried that have got as much room as they lacked, for
// callers that hold h.mu.
func (h *Holds) wakeSatisfied() {
	if rest := h.restUntil.Sub(h.clock.Now()); rest > 0 {
		if !h.resumes {
			h.resumes = true
			h.clock.AfterFunc(rest, func() { go h.resume() })
		}
		return
	}
	for _, w := range h.waiting {
		if w.want != nil && !w.want.woken && w.want.satisfied() {
			w.want.woken = true
			go w.wake()
		}
	}
}

// resume has the gangs tried that were to be tried while there was a rest.
func (h *Holds) resume() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.resumes = false
	h.wakeSatisfied()
}

// noteLack notes how much room a gang lacks that needs so many seats, of which its last
// trial has found some.
func (p *Plugin) noteLack(ctx context.Context, group types.NamespacedName, member *corev1.Pod, needs int, found placed) {
	reaches, seats := room.CouldBeOn(klog.FromContext(ctx), member), room.Seats(member)
	nodes := p.handle.SharedInformerFactory().Core().V1().Nodes().Lister()
	var took time.Duration
	if found.members > 0 {
		took = p.clock.Since(found.since)
	}
	p.holds.lacks(group, want{
		priority: gangkey.Priority(member), size: float64(needs), lacks: float64(max(needs-found.members, 1)),
		seats: func(pod *corev1.Pod) float64 {
			node, err := nodes.Get(pod.Spec.NodeName)
			if err != nil {
				return 0 // it has no node, or that is gone too
			}
			if could, err := reaches(node); err != nil || !could {
				return 0
			}
			return seats(pod)
		},
	}, took)
}
