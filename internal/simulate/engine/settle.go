package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/kubectl-sched/kubectl-sched/internal/simulate/store"
)

// maxIdleRounds is how often pods may be woken without that any is placed or
// evicted, before it is taken for a loop.
const maxIdleRounds = 100

// Settle has the scheduler work until no pod that waits could be helped by what
// happened. The error is ctx's, or that of a plugin that asks for what a simulated
// cluster cannot do; what was placed by then stays.
func (e *Engine) Settle(ctx context.Context) error {
	for idle := 0; ; {
		progress, err := e.drain(ctx)
		if err != nil {
			return err
		}
		if progress {
			idle = 0
		} else if idle++; idle > maxIdleRounds {
			return e.errStuck(idle)
		}
		waiting := slices.DeleteFunc(e.sched.SchedulingQueue.PodsInBackoffQ(), e.tried)
		if len(waiting) == 0 {
			return nil
		}
		e.activate(waiting)
	}
}

// tried reports whether nothing has happened since the pod was last tried. Upstream
// tries a group that does not fit again and again, with time; here it could only
// fail again.
func (e *Engine) tried(pod *corev1.Pod) bool {
	at, failed := e.failedAt[pod.UID]
	return failed && at == e.happened
}

// activate makes pods that something could help be tried now instead of after
// their back-off.
func (e *Engine) activate(pods []*corev1.Pod) {
	wake := make(map[string]*corev1.Pod, len(pods))
	for _, pod := range pods {
		wake[key(pod).String()] = pod
	}
	e.sched.SchedulingQueue.Activate(logr.Discard(), wake)
}

// drain tries what is in the active queue until nothing is left in it, and reports
// whether any pod was placed or evicted.
func (e *Engine) drain(ctx context.Context) (bool, error) {
	progress := false
	for {
		if err := ctx.Err(); err != nil {
			return progress, context.Cause(ctx)
		}
		if e.known == 0 {
			if e.known = entities(e.sched.SchedulingQueue.PodsInActiveQ()); e.known == 0 {
				return progress, nil
			}
		}
		moved, err := e.step(ctx)
		if err != nil {
			return progress, err
		}
		progress = progress || moved
		e.heard(max(0, e.known))
	}
}

// entities counts what the queue would give for the pods: a group is one.
func entities(pods []*corev1.Pod) int {
	groups := map[types.NamespacedName]bool{}
	n := 0
	for _, pod := range pods {
		g := pod.Spec.SchedulingGroup
		if g == nil || g.PodGroupName == nil {
			n++
			continue
		}
		groups[types.NamespacedName{Namespace: pod.Namespace, Name: *g.PodGroupName}] = true
	}
	return n + len(groups)
}

// step runs one scheduling cycle to its end, and lets take effect what it wrote.
func (e *Engine) step(ctx context.Context) (moved bool, err error) {
	e.cycle++
	e.known--
	e.clock.Step(time.Microsecond)
	e.chooser.begin()
	e.sched.ScheduleOne(klog.NewContext(ctx, logr.Discard()))
	bound := e.recorder.settle(e.waits, func() {
		e.api.serve(func(claim *resourcev1.ResourceClaim) error { return e.Put(claim) })
	})
	slices.SortFunc(bound, func(a, b binding) int { return strings.Compare(key(a.pod).String(), key(b.pod).String()) })
	if err := e.bindVolumes(klog.NewContext(ctx, logr.Discard()), bound); err != nil {
		return true, err
	}
	for _, b := range bound {
		if err := e.bind(b); err != nil {
			return true, err
		}
	}
	writes, err := e.api.take()
	if err != nil {
		return true, err
	}
	for _, w := range writes {
		if err := e.apply(w); err != nil {
			return true, err
		}
		moved = moved || w.evict
	}
	return moved || len(bound) > 0, nil
}

// waits reports whether the pod waits for others of its group: it will not go on
// by itself.
func (e *Engine) waits(uid types.UID) bool {
	for _, profile := range e.sched.Profiles {
		if pod := profile.GetWaitingPod(uid); pod != nil {
			return len(pod.GetPendingPlugins()) > 0
		}
	}
	return false
}

// bind lets a pod be on its node and run.
func (e *Engine) bind(b binding) error {
	attempt := e.chooser.attempt(b.pod)
	attempt.Cycle, attempt.Node = e.cycle, b.node
	e.chooser.nominate(b.pod.UID, "")
	delete(e.failedAt, b.pod.UID)
	e.attempts = append(e.attempts, attempt)
	e.clock.Step(time.Microsecond)
	before, ok := e.Pod(key(b.pod))
	if !ok {
		return nil // removed while it was on its way
	}
	pod := *before
	start := metav1.NewTime(e.clock.Now().Truncate(time.Second))
	pod.Spec.NodeName = b.node
	pod.Status.Phase, pod.Status.StartTime, pod.Status.NominatedNodeName = corev1.PodRunning, &start, ""
	return e.putPod(&pod)
}

// apply lets a write take effect.
func (e *Engine) apply(w write) error {
	if w.updated != nil {
		object, ok := w.updated.(store.Object)
		if !ok {
			return fmt.Errorf("a plugin wrote a %T, which a simulated cluster cannot hold", w.updated)
		}
		if done, err := e.control(object); done || err != nil {
			return err
		}
		return e.Put(object)
	}
	if w.removed != nil {
		return e.Remove(w.removed)
	}
	before, ok := e.Pod(w.pod)
	if !ok {
		return nil
	}
	if w.evict {
		e.evictions = append(e.evictions, Eviction{Cycle: e.cycle, Victim: before})
		return e.removePod(before)
	}
	pod := *before
	if w.devices != nil {
		pod.Status.ExtendedResourceClaimStatus = w.devices
	}
	if w.node != nil {
		pod.Status.NominatedNodeName = *w.node
		e.chooser.nominate(pod.UID, *w.node)
	}
	return e.Put(&pod)
}
