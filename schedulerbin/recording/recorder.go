package recording

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/recording/state"
)

// Recorder writes the recording of one scheduler. Make one with New, when the
// feature gates are set, and attach it before the scheduler runs. It may be used
// from several goroutines at once, as the scheduler does.
type Recorder struct {
	clock    clock.PassiveClock
	snapshot *cache.Snapshot
	hasher   state.Hasher

	mu     sync.Mutex
	out    io.Writer
	number int64
	open   *cycle // nil: nothing has been taken from the queue since the last line
	late   []Attempt
	before *view // what the lines so far say of the cluster
	seen   func() ([]Object, error)
	queue  fwk.PodNominator
	held   func() []string
	pods   corev1listers.PodLister
	failed error
}

// cycle is a cycle that is under way.
type cycle struct {
	line Cycle
	pods []*corev1.Pod
	view *view // nil: nothing has been looked at yet
	ends map[types.UID]Attempt
}

// New returns a Recorder that writes lines of JSON to out.
func New(out io.Writer, c clock.PassiveClock) *Recorder {
	return &Recorder{clock: c, out: out, snapshot: cache.NewEmptySnapshot(), before: newView(), held: func() []string { return nil }}
}

// Holding has the recorder ask which nodes seats are held on, before it is attached.
func (r *Recorder) Holding(held func() []string) { r.held = held }

// Snapshot is what the scheduler must be made with, as its snapshot.
func (r *Recorder) Snapshot() *cache.Snapshot { return r.snapshot }

// Attach has the recorder hear of what the scheduler does. The scheduler's
// informers must not have been started.
func (r *Recorder) Attach(sched *scheduler.Scheduler) {
	for _, profile := range sched.Profiles {
		factory := profile.SharedInformerFactory() // one for all profiles
		r.seen, r.pods = objects(factory), factory.Core().V1().Pods().Lister()
	}
	r.queue = sched.SchedulingQueue
	next, place, fail := sched.NextEntity, sched.SchedulePod, sched.FailureHandler
	sched.NextEntity = func(logger klog.Logger) (framework.QueuedEntityInfo, error) {
		r.end(logger)
		entity, err := next(logger)
		if err == nil && entity != nil {
			r.begin(entity)
		}
		return entity, err
	}
	sched.SchedulePod = func(ctx context.Context, f framework.Framework, s fwk.CycleState, pod *framework.QueuedPodInfo) (scheduler.ScheduleResult, error) {
		r.look()
		result, err := place(ctx, f, s, pod)
		r.tried(pod.Pod.UID, result.SuggestedHost)
		return result, err
	}
	sched.FailureHandler = func(ctx context.Context, f framework.Framework, pod *framework.QueuedPodInfo, status *fwk.Status, nominating *fwk.NominatingInfo, start time.Time) {
		r.gaveUp(pod.Pod, status.Message(), nominating)
		fail(ctx, f, pod, status, nominating, start)
	}
}

// begin notes that the entity was taken from the queue.
func (r *Recorder) begin(entity framework.QueuedEntityInfo) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.number++
	c := &cycle{line: Cycle{Number: r.number, Time: r.clock.Now()}, ends: map[types.UID]Attempt{}}
	if entity.Type() != fwk.PodKeyType {
		c.line.Group = entity.GetName()
	}
	entity.ForEachPodInfo(func(info *framework.QueuedPodInfo) bool {
		c.pods = append(c.pods, info.Pod)
		return true
	})
	r.open = c
}

// look notes what the scheduler sees, unless it has been noted in this cycle: what
// the members of a group see of one another is not part of it.
func (r *Recorder) look() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lookLocked()
}

func (r *Recorder) lookLocked() {
	c := r.open
	if c == nil || c.view != nil || r.failed != nil {
		return
	}
	c.line.Held = r.held()
	if c.view, c.line.Hash, r.failed = r.take(c); r.failed == nil {
		c.line.Lost = c.view.lost
	}
}

// tried notes the node that was found for the pod.
func (r *Recorder) tried(pod types.UID, node string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open == nil {
		return
	}
	r.open.line.Tries = append(r.open.line.Tries, Try{UID: pod, Node: node})
	if v := r.open.view; v != nil && !maps.Equal(v.nominated, r.nominated(v)) {
		r.open.line.Unsteady = true
	}
}

// gaveUp notes that the pod is not placed. Pods of earlier cycles come here too.
func (r *Recorder) gaveUp(pod *corev1.Pod, message string, nominating *fwk.NominatingInfo) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := Attempt{Pod: nameOf(pod), Message: message}
	if known, err := r.pods.Pods(pod.Namespace).Get(pod.Name); err != nil || known.UID != pod.UID {
		a.Deleted = true
	}
	if nominating != nil {
		a.Nominated = nominating.NominatedNodeName
	}
	if r.open != nil && r.open.has(pod.UID) {
		r.open.ends[pod.UID] = a
		return
	}
	a.Node = pod.Spec.NodeName
	r.late = append(r.late, a)
}

// evicted notes that the pod was deleted by the scheduler.
func (r *Recorder) evicted(pod Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open != nil {
		r.open.line.Victims = append(r.open.line.Victims, pod)
	}
}

// end writes the line of the cycle that is over.
func (r *Recorder) end(logger klog.Logger) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed == nil && r.open != nil {
		r.failed = r.write(r.open)
		if r.failed != nil {
			logger.Error(r.failed, "The recording of scheduling attempts ends here")
		}
	}
	r.open = nil
}

func (r *Recorder) write(c *cycle) error {
	if c.line.Attempts = c.attempts(); len(c.line.Attempts) == 0 {
		return nil // the pods are being deleted, or were placed already
	}
	r.lookLocked() // a group can be refused before any pod is looked at
	if r.failed != nil {
		return r.failed
	}
	if err := c.view.since(r.before, &c.line); err != nil {
		return err
	}
	r.before = c.view
	if slices.ContainsFunc(c.line.Attempts, func(a Attempt) bool { return a.Nominated != "" }) {
		c.line.Order = c.view.order
	}
	c.line.Late, r.late = r.late, nil
	line, err := json.Marshal(c.line)
	if err != nil {
		return fmt.Errorf("write a line of the recording: %w", err)
	}
	if _, err := r.out.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write a line of the recording: %w", err)
	}
	return nil
}

// has reports whether the pod is of the entity.
func (c *cycle) has(uid types.UID) bool {
	for _, pod := range c.pods {
		if pod.UID == uid {
			return true
		}
	}
	return false
}

// attempts returns what came of the cycle for each pod of it that was tried.
func (c *cycle) attempts() []Attempt {
	found := map[types.UID]string{}
	for _, try := range c.line.Tries {
		found[try.UID] = try.Node
	}
	var attempts []Attempt
	for _, pod := range c.pods {
		end, failed := c.ends[pod.UID]
		node := found[pod.UID]
		switch {
		case failed && c.line.Group == "":
			end.Node = node
			attempts = append(attempts, end)
		case failed:
			attempts = append(attempts, end)
		case node != "":
			attempts = append(attempts, Attempt{Pod: nameOf(pod), Node: node})
		}
	}
	return attempts
}

func nameOf(pod *corev1.Pod) Pod { return Pod{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID} }
