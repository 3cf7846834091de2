package podgroup

import (
	"cmp"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"
)

// Offline makes the virtual PodGroups of pods that are in no API server, for a
// simulation: the same groups, by the same rules, as an Engine makes. It may be
// used from one goroutine beside the scheduler's.
type Offline struct {
	engine *Engine
	since  uint64
	// gated are the groups of the pods behind scheduling gates, which the scheduler does
	// not see in them.
	gated map[types.UID]string
}

// NewOffline returns an Offline that knows no pods. The clock is the simulation's.
func NewOffline(c clock.WithTicker) *Offline {
	groups := 0
	o := &Offline{gated: map[types.UID]string{}, engine: New(Options{Virtual: true, Clock: c, NewUID: func() types.UID {
		groups++
		return types.UID("simulated-pod-group-" + strconv.Itoa(groups))
	}})}
	o.since = o.engine.feed.version
	return o
}

// Groups returns what the Gang plugin tells of what it sees.
func (o *Offline) Groups() *Engine { return o.engine }

// Pod takes in a pod that is new or has changed, and returns it as the scheduler
// must see it: in its group, unless it is behind a scheduling gate. The pod itself stays
// as it is.
func (o *Offline) Pod(pod *corev1.Pod) *corev1.Pod {
	if phase := pod.Status.Phase; phase == corev1.PodSucceeded || phase == corev1.PodFailed {
		o.engine.directory.removePod(pod)
		o.engine.directory.setFinished(pod, pod.Status.Phase == corev1.PodFailed)
		return pod
	}
	seen := *pod
	seen.Spec.SchedulingGroup = o.engine.groupOf(pod)
	delete(o.gated, pod.UID)
	if name := NameOf(&seen); name != "" && !o.engine.isSeen(pod) {
		seen.Spec.SchedulingGroup, o.gated[pod.UID] = nil, name
	}
	o.engine.directory.setPod(&seen)
	return &seen
}

// GroupOf returns the name of the group of a pod that was taken in, also of one that the
// scheduler does not see in it yet; empty for none.
func (o *Offline) GroupOf(pod *corev1.Pod) string {
	return cmp.Or(NameOf(pod), o.gated[pod.UID])
}

// Remove takes a pod away.
func (o *Offline) Remove(pod *corev1.Pod) {
	delete(o.gated, pod.UID)
	o.engine.directory.removePod(pod)
	o.engine.directory.removeFinished(pod)
}

// Object takes in a PodGroup object of scheduling.x-k8s.io or of its predecessor.
// The error says that it is none, or what of it cannot be read.
func (o *Offline) Object(u *unstructured.Unstructured) error {
	for _, r := range resources {
		if u.GroupVersionKind().Group != r.resource.Group || u.GetKind() != "PodGroup" {
			continue
		}
		s, err := parseSpec(u)
		if err != nil {
			return fmt.Errorf("PodGroup %s/%s: %w", u.GetNamespace(), u.GetName(), err)
		}
		o.engine.directory.setSpec(object{r.family, u.GetNamespace(), u.GetName()}, s)
		return nil
	}
	return fmt.Errorf("%s %s/%s is not a PodGroup of gangs", u.GroupVersionKind(), u.GetNamespace(), u.GetName())
}

// Changes returns the virtual groups that came, changed (put) or went (removed)
// since it was last called, in order. It must be called before the scheduler sees
// the pods that changed them.
func (o *Offline) Changes() (put, removed []*schedulingv1beta1.PodGroup, err error) {
	changes, _, err := o.engine.feed.after(o.since)
	if err != nil {
		return nil, nil, err
	}
	for _, change := range changes {
		group, ok := change.Object.(*schedulingv1beta1.PodGroup)
		if !ok {
			return nil, nil, fmt.Errorf("the feed of pod groups holds a %T", change.Object)
		}
		if change.Type == watch.Deleted {
			removed = append(removed, group)
		} else {
			put = append(put, group.DeepCopy())
		}
	}
	o.since = o.engine.feed.version
	return put, removed, nil
}
