package podstatus

import (
	"container/list"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const (
	// nominationDelay is how long a member must have waited for its siblings before
	// its node's name is written. As a rule they are there in no time, and the
	// Binding says it all.
	nominationDelay = time.Second
	// workers is how many changes are written at once at most.
	workers = 16
	// retryDelay is how long after a write that failed the next is tried, and attempts
	// how many there are.
	retryDelay = time.Second
	attempts   = 5
	// patience is how many requests' time a change waits for the limit to have
	// something left, before it takes its turn among the others.
	patience = 10
)

// Options are what a Queue needs. All but Clock must be set.
type Options struct {
	// Client writes the changes. It must not limit its requests: Limiter does.
	Client kubernetes.Interface
	// Limiter is shared with the scheduler's other requests, which come first.
	Limiter flowcontrol.RateLimiter
	// Pods are those that the scheduler sees.
	Pods corelisters.PodLister
	// Clock is the time; nil means the real one.
	Clock clock.WithDelayedExecution
}

// Queue holds what is to be written on pods. It may be used from several goroutines
// at once.
type Queue struct {
	client  kubernetes.Interface
	limiter flowcontrol.RateLimiter
	pods    corelisters.PodLister
	clock   clock.WithDelayedExecution

	mu      sync.Mutex
	entries map[types.NamespacedName]*entry
	due     *list.List // of the entries that can be written, the oldest first
	changed chan struct{}

	pending  prometheus.GaugeFunc
	outcomes *prometheus.CounterVec
}

// entry is what is to be written on one pod.
type entry struct {
	key     types.NamespacedName
	uid     types.UID
	change  *change       // nil: nothing, while something is being written
	place   *list.Element // in due
	timer   clock.Timer
	sending chan struct{} // closed when what is being written is; nil: nothing is
	settled bool          // what is being written is not to be tried again
	failed  int
}

// The outcomes of a change.
const (
	outcomeWritten    = "written"
	outcomeSuperseded = "superseded" // by a later change or a Binding
	outcomeFailed     = "failed"
	outcomeGone       = "gone" // the pod is
)

// New returns a Queue that writes nothing before Run.
func New(options Options) *Queue {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	q := &Queue{
		client: options.Client, limiter: options.Limiter, pods: options.Pods, clock: options.Clock,
		entries: map[types.NamespacedName]*entry{}, due: list.New(), changed: make(chan struct{}, 1),
		outcomes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kubectl_sched_gang_pod_status_total",
			Help: "Changes of the status of gangs' members, by outcome: written, superseded by a later one or a Binding, failed, or the pod is gone.",
		}, []string{"outcome"}),
	}
	q.pending = prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "kubectl_sched_gang_pod_status_pending",
		Help: "Members of gangs on whose status something is to be written.",
	}, func() float64 {
		q.mu.Lock()
		defer q.mu.Unlock()
		return float64(len(q.entries))
	})
	for _, outcome := range []string{outcomeWritten, outcomeSuperseded, outcomeFailed, outcomeGone} {
		q.outcomes.WithLabelValues(outcome)
	}
	return q
}

var _ prometheus.Collector = (*Queue)(nil)

// Describe sends the descriptions of all metrics.
func (q *Queue) Describe(to chan<- *prometheus.Desc) {
	q.pending.Describe(to)
	q.outcomes.Describe(to)
}

// Collect sends the current values of all metrics.
func (q *Queue) Collect(to chan<- prometheus.Metric) {
	q.pending.Collect(to)
	q.outcomes.Collect(to)
}

// put has c written on pod, in the place of what is to be written on it.
//
// A member whose conditions are new waits no more, so the node that it was expected
// on is not written any more either.
func (q *Queue) put(pod *corev1.Pod, c change) {
	q.mu.Lock()
	defer q.mu.Unlock()
	key := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
	e := q.entries[key]
	if e == nil {
		e = &entry{key: key}
		q.entries[key] = e
	}
	if e.change != nil {
		if e.uid == pod.UID && c.nominated != "" && len(e.change.conditions) > 0 {
			return // why it waits is yet to be said, and counts for more
		}
		q.outcomes.WithLabelValues(outcomeSuperseded).Inc()
	}
	e.uid, e.change, e.failed, e.settled = pod.UID, &c, 0, false
	switch {
	case c.nominated != "":
		q.delay(e, nominationDelay)
	case e.place == nil && e.sending == nil:
		q.enqueue(e)
	}
}

// delay has e written after d, for callers that hold q.mu.
func (q *Queue) delay(e *entry, d time.Duration) {
	q.unqueue(e)
	wanted := e.change
	e.timer = q.clock.AfterFunc(d, func() {
		go func() { // a clock may call with its lock held
			q.mu.Lock()
			defer q.mu.Unlock()
			if q.entries[e.key] != e || e.change != wanted || e.place != nil {
				return // it was taken back, or something else is to be written
			}
			e.timer = nil
			if e.sending == nil {
				q.enqueue(e)
			}
		}()
	})
}

// enqueue puts e among what can be written, for callers that hold q.mu.
func (q *Queue) enqueue(e *entry) {
	q.unqueue(e)
	e.place = q.due.PushBack(e)
	select {
	case q.changed <- struct{}{}:
	default:
	}
}

// unqueue takes e out of what can be written or will be, for callers that hold q.mu.
func (q *Queue) unqueue(e *entry) {
	if e.timer != nil {
		e.timer.Stop()
		e.timer = nil
	}
	if e.place != nil {
		q.due.Remove(e.place)
		e.place = nil
	}
}

// settle drops what is to be written on the pod, and returns when nothing is being
// written on it. The error is that ctx is over before.
func (q *Queue) settle(ctx context.Context, key types.NamespacedName) error {
	q.mu.Lock()
	e := q.entries[key]
	if e == nil {
		q.mu.Unlock()
		return nil
	}
	if e.change != nil {
		q.outcomes.WithLabelValues(outcomeSuperseded).Inc()
	}
	e.change, e.settled = nil, true
	q.unqueue(e)
	sending := e.sending
	if sending == nil {
		delete(q.entries, key)
	}
	q.mu.Unlock()
	if sending == nil {
		return nil
	}
	select {
	case <-sending:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Run writes until ctx is over.
func (q *Queue) Run(ctx context.Context) {
	var group sync.WaitGroup
	defer group.Wait()
	slots := make(chan struct{}, workers)
	for ctx.Err() == nil {
		if !q.await(ctx) || !q.takeTurn(ctx) {
			return
		}
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		e, c := q.next()
		if e == nil { // it was taken back meanwhile
			<-slots
			continue
		}
		group.Go(func() {
			defer func() { <-slots }()
			q.done(ctx, e, c, q.write(ctx, e.key, e.uid, c))
		})
	}
}

// await returns when something can be written; false: ctx is over before.
func (q *Queue) await(ctx context.Context) bool {
	for {
		q.mu.Lock()
		waits := q.due.Len() > 0
		q.mu.Unlock()
		if waits {
			return true
		}
		select {
		case <-q.changed:
		case <-ctx.Done():
			return false
		}
	}
}

// takeTurn returns when one request may be made: when the limit has something left,
// or, where it never has, in turn with the others. False: ctx is over before.
func (q *Queue) takeTurn(ctx context.Context) bool {
	request := time.Duration(float64(time.Second) / max(float64(q.limiter.QPS()), 1))
	for range patience {
		if q.limiter.TryAccept() {
			return true
		}
		select {
		case <-q.clock.After(request):
		case <-ctx.Done():
			return false
		}
	}
	return q.limiter.Wait(ctx) == nil
}

// next returns the oldest entry that can be written and what is to be written on
// it, or nil.
func (q *Queue) next() (*entry, change) {
	q.mu.Lock()
	defer q.mu.Unlock()
	front := q.due.Front()
	if front == nil {
		return nil, change{}
	}
	e, ok := front.Value.(*entry)
	if !ok {
		panic("podstatus: the list holds something else than entries")
	}
	q.unqueue(e)
	c := *e.change
	e.change, e.sending = nil, make(chan struct{})
	return e, c
}

// write writes c on the pod.
func (q *Queue) write(ctx context.Context, key types.NamespacedName, uid types.UID, c change) error {
	patch, err := c.patch(uid)
	if err != nil {
		return err
	}
	_, err = q.client.CoreV1().Pods(key.Namespace).Patch(ctx, key.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// done notes what came of writing c on the pod of e.
func (q *Queue) done(ctx context.Context, e *entry, c change, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	close(e.sending)
	e.sending = nil
	switch {
	case err == nil:
		q.outcomes.WithLabelValues(outcomeWritten).Inc()
	case isGone(err):
		q.outcomes.WithLabelValues(outcomeGone).Inc()
	case e.change == nil && !e.settled && e.failed+1 < attempts && isTransient(err):
		e.failed++
		e.change = &c
		q.delay(e, retryDelay)
		return
	default:
		q.outcomes.WithLabelValues(outcomeFailed).Inc()
		if ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Cannot write the status of a pod", "pod", klog.KRef(e.key.Namespace, e.key.Name))
		}
	}
	switch {
	case e.change == nil:
		delete(q.entries, e.key)
	case e.timer == nil:
		q.enqueue(e)
	}
}

// isGone reports whether a write has failed because the pod is gone, or another has
// its name: the API server then calls the patch of the UID invalid.
func isGone(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	if details := status.Status().Details; apierrors.IsInvalid(err) && details != nil {
		return slices.ContainsFunc(details.Causes, func(c metav1.StatusCause) bool { return c.Field == "metadata.uid" })
	}
	return apierrors.IsNotFound(err) || apierrors.IsConflict(err)
}

// isTransient reports whether a request that has failed so may do when it is made
// again.
func isTransient(err error) bool {
	return apierrors.IsInternalError(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err) ||
		apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.ReasonForError(err) == metav1.StatusReasonUnknown
}
