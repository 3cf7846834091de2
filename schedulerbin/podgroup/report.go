package podgroup

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/args"
)

const (
	// reportPeriod is how often gangs are looked over.
	reportPeriod = time.Second
	// reportGrace is how long a gang may wait before anything is said: members and
	// their PodGroup are made one after the other.
	reportGrace = 3 * time.Second
	// everyoneGrace is how long it may wait before every member is told, not one of
	// them: where gangs queue for room, most start before that.
	everyoneGrace = 10 * time.Second
	// repeatPeriod is how long a message about a gang stands at least before the
	// next, if only its numbers have changed.
	repeatPeriod = 10 * time.Second
)

// policy is what a profile does with its gangs.
type policy struct {
	timeout   time.Duration
	onPartial args.OnPartial
}

// Configure says what the profile called schedulerName does with its gangs.
func (e *Engine) Configure(schedulerName string, a *args.GangArgs) {
	e.directory.mu.Lock()
	defer e.directory.mu.Unlock()
	e.directory.policies[schedulerName] = policy{timeout: a.Timeout.Duration, onPartial: a.OnPartial}
}

// Tried says that a trial of the group has placed so many members by now.
func (e *Engine) Tried(namespace, group string, cycle any, placed int) {
	e.directory.tried(types.NamespacedName{Namespace: namespace, Name: group}, cycle, placed)
}

// Failed says that a try of the whole group, in a scheduler without the pod-group
// cycle, has found nodes for so many members, which are too few.
func (e *Engine) Failed(namespace, group string, fits int) {
	e.directory.failed(types.NamespacedName{Namespace: namespace, Name: group}, fits)
}

// Fits says that such a try has found nodes for enough members.
func (e *Engine) Fits(namespace, group string) {
	e.directory.fits(types.NamespacedName{Namespace: namespace, Name: group})
}

// Held says that seats on so many nodes are held for the group until then; 0 that
// they are not any more.
func (e *Engine) Held(namespace, group string, nodes int, until time.Time) {
	e.directory.hold(types.NamespacedName{Namespace: namespace, Name: group}, held{nodes: nodes, until: until})
}

// Run reports on gangs until ctx is over: events on pods and PodGroup objects say
// why a gang waits, PodGroup objects get a status, and what a profile says is done
// about gangs that stay bound in part. Only the scheduler that leads may run it.
func (e *Engine) Run(ctx context.Context) {
	if e.options.Virtual {
		go newStatusWriter(e).run(ctx)
	}
	ticker := e.options.Clock.NewTicker(reportPeriod)
	defer ticker.Stop()
	said := map[types.NamespacedName]*statement{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
		e.report(ctx, said)
	}
}

// statement is what was last said of a gang.
type statement struct {
	reason, note string
	at           time.Time
	onAll        bool // on every member that waited
	held         bool
	evicted      bool
}

// report looks over all gangs once.
func (e *Engine) report(ctx context.Context, said map[types.NamespacedName]*statement) {
	now := e.options.Clock.Now()
	current := map[types.NamespacedName]bool{}
	for _, f := range e.directory.findings(now) {
		current[f.group] = true
		last := said[f.group]
		isNew := last == nil || last.reason != f.reason
		onAll := !f.growing && f.long && (isNew || !last.onAll)
		if isNew || onAll || f.held && !last.held || last.note != f.note && now.Sub(last.at) >= repeatPeriod {
			said[f.group] = &statement{
				reason: f.reason, note: f.note, at: now,
				onAll: onAll || !isNew && last.onAll, held: f.held, evicted: last != nil && last.evicted,
			}
			e.tell(ctx, f, onAll)
		}
		if f.evict && !said[f.group].evicted {
			said[f.group].evicted = true
			e.evict(ctx, f)
		}
	}
	for group := range said {
		if !current[group] {
			delete(said, group)
		}
	}
}

// tell writes the events of f: on its PodGroup object, and on the members that
// wait, or on one of them if only numbers are new, members are missing, or it has not
// waited for long.
func (e *Engine) tell(ctx context.Context, f finding, onAll bool) {
	regarding := f.waiting
	if !onAll && len(regarding) > 1 {
		regarding = regarding[:1]
	}
	note := f.note + f.left()
	for _, pod := range regarding {
		e.event(ctx, pod, f.reason, note)
	}
	if f.object != nil {
		e.event(ctx, *f.object, f.reason, note)
	}
}

// evict evicts the bound members of f, so that the gang can start whole. A member
// that a PodDisruptionBudget protects stays.
func (e *Engine) evict(ctx context.Context, f finding) {
	for _, pod := range f.bound {
		eviction := &policyv1.Eviction{
			ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
			DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}},
		}
		err := e.options.Client.PolicyV1().Evictions(pod.Namespace).Evict(ctx, eviction)
		switch {
		case err == nil:
			e.event(ctx, pod, "GangPartial", "evicted, so that its gang can start whole")
		case !apierrors.IsNotFound(err):
			e.event(ctx, pod, "GangPartial", fmt.Sprintf("could not be evicted, so its gang stays bound in part: %v", err))
			klog.FromContext(ctx).Error(err, "Cannot evict a member of a gang that is bound in part", "pod", klog.KRef(pod.Namespace, pod.Name))
		}
	}
}

// event writes one warning. Each is an event of its own, not one of a series, for
// which the API server would keep the first note alone and so the first numbers.
func (e *Engine) event(ctx context.Context, regarding corev1.ObjectReference, reason, note string) {
	if err := e.writeEvent(ctx, regarding, reason, note); err != nil && ctx.Err() == nil {
		klog.FromContext(ctx).Error(err, "Cannot write an event", "regarding", klog.KRef(regarding.Namespace, regarding.Name), "reason", reason, "note", note)
	}
}
