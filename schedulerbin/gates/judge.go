package gates

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gates/condition"
)

// verdict is whether a gate opens, and what there is to say.
type verdict struct {
	open bool
	// kind is what the gate waits for; unreadable if that cannot be told.
	kind condition.Kind
	// reason and note go into an event. The note reads on from "waits since …: ".
	reason, note string
	// wake is when to judge again although nothing has happened; zero for never.
	wake time.Time
}

// unreadable is the kind of a condition that cannot be read.
const unreadable condition.Kind = "unreadable"

// The reasons of events.
const (
	ReasonOpened      = "GateOpened"
	ReasonUnreadable  = "GateUnreadable"
	ReasonPeers       = "GateWaitsForPeers"
	ReasonObject      = "GateWaitsForObject"
	ReasonCannotRead  = "GateCannotReadObject"
	ReasonQuota       = "GateWaitsForQuota"
	ReasonOtherGates  = "GateWaitsForOtherGates"
	ReasonApproval    = "GateWaitsForApproval"
	ReasonDenied      = "GateDenied"
	ReasonTime        = "GateWaitsForTime"
	ReasonWindow      = "GateWaitsForWindow"
	reasonPatchFailed = "GateCannotBeOpened"
)

// pass judges the pods of one namespace at one moment.
type pass struct {
	*Controller
	namespace string
	now       time.Time
	records   map[types.UID]*record
	peers     map[peerKey]map[types.UID]bool
	room      map[string]*room
	// objects are those that somebody here waits for.
	objects map[objectKey]bool
}

// judge opens the gates of the namespace that can be opened, and says of the
// others why they cannot. It returns when to judge the namespace again although
// nothing has happened in it; zero for never.
func (c *Controller) judge(ctx context.Context, namespace string) (time.Time, error) {
	waiting, err := c.waiting(namespace)
	if err != nil {
		return time.Time{}, err
	}
	p := &pass{
		Controller: c, namespace: namespace, now: c.clock.Now(), records: c.recordsOf(namespace, waiting),
		peers: map[peerKey]map[types.UID]bool{}, room: map[string]*room{}, objects: map[objectKey]bool{},
	}
	var wake time.Time
	var failed []error
	count := map[condition.Kind]int{}
	for _, pod := range waiting {
		next, err := p.pod(ctx, pod, count)
		wake = earlier(wake, next)
		failed = append(failed, err)
	}
	c.watches.retain(namespace, p.objects)
	c.metrics.set(namespace, count)
	return wake, errors.Join(failed...)
}

// waiting returns the pods of the namespace with gates of ours, the oldest first.
func (c *Controller) waiting(namespace string) ([]*corev1.Pod, error) {
	found, err := c.pods.GetIndexer().ByIndex(waitingIndex, namespace)
	if err != nil {
		return nil, fmt.Errorf("list the pods that wait: %w", err)
	}
	var out []*corev1.Pod
	for _, o := range found {
		if pod, ok := o.(*corev1.Pod); ok {
			out = append(out, pod)
		}
	}
	slices.SortFunc(out, func(a, b *corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return out, nil
}

// pod judges the gates of one pod, and adds what it still waits for to count.
func (p *pass) pod(ctx context.Context, pod *corev1.Pod, count map[condition.Kind]int) (time.Time, error) {
	known := p.records[pod.UID]
	verdicts := map[string]verdict{}
	var gates, open, quotas []string
	for _, gate := range ourGates(pod) {
		if known.opened[gate] {
			continue // the informer is behind
		}
		gates = append(gates, gate)
		c, err := condition.Of(pod.Annotations, gate)
		switch {
		case err != nil:
			verdicts[gate] = verdict{kind: unreadable, reason: ReasonUnreadable, note: err.Error()}
		case c.Kind() == condition.KindQuota:
			quotas = append(quotas, gate)
		default:
			verdicts[gate] = p.gate(ctx, pod, gate, c)
		}
		if verdicts[gate].open {
			open = append(open, gate)
		}
	}
	// Room in a quota is not kept for a pod that cannot use it yet.
	others := len(open) < len(gates)-len(quotas)
	for _, gate := range quotas {
		c, _ := condition.Of(pod.Annotations, gate)
		verdicts[gate] = p.quota(pod, c.Quota, others)
	}
	if len(quotas) > 0 && !slices.ContainsFunc(quotas, func(gate string) bool { return !verdicts[gate].open }) {
		open = append(open, quotas...)
		p.take(pod, quotas)
	}
	var failed error
	var wake time.Time
	if len(open) > 0 {
		var done bool
		switch done, failed = p.open(ctx, pod, open, verdicts); {
		case done:
			gates = slices.DeleteFunc(gates, func(gate string) bool { return slices.Contains(open, gate) })
		case failed == nil:
			wake = p.now.Add(conflictPeriod)
		}
	}
	kinds := map[condition.Kind]bool{}
	for _, gate := range gates {
		v := verdicts[gate]
		kinds[v.kind] = true
		if !v.open {
			wake = earlier(wake, earlier(v.wake, p.say(ctx, pod, gate, v)))
		}
	}
	for kind := range kinds {
		count[kind]++
	}
	return wake, failed
}

// gate judges a gate whose condition is not about quota.
func (p *pass) gate(ctx context.Context, pod *corev1.Pod, gate string, c *condition.Condition) verdict {
	var v verdict
	switch c.Kind() {
	case condition.KindPeers:
		v = p.peersOf(pod, c.Peers)
	case condition.KindObject:
		v = p.object(ctx, c.Object)
	case condition.KindApproval:
		v = approval(pod, gate)
	case condition.KindNotBefore:
		v = p.notBefore(c)
	case condition.KindWindow:
		v = p.window(c.Window)
	case condition.KindQuota:
		fallthrough
	default:
		v = verdict{reason: ReasonUnreadable, note: fmt.Sprintf("its condition is of a kind that this version does not know: %q", c.Kind())}
	}
	v.kind = c.Kind()
	return v
}

// earlier returns the earlier moment that is not zero.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
