package podgroup

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gangkey"
)

const (
	// HoldAnnotation on a virtual PodGroup says why its members must not be tried:
	// the scheduler would fail on them again and again.
	HoldAnnotation = "kubectl-sched.github.io/gang-hold"
	// TimeoutAnnotation on a virtual PodGroup is the time that its PodGroup object
	// gives the gang, as a Go duration.
	TimeoutAnnotation = "kubectl-sched.github.io/gang-timeout"
)

// ReasonPriority is why members are held back whose group's priority is not known to the
// scheduler yet.
const ReasonPriority = "waiting for the priority of the gang to be known to the scheduler"

// HeldBack returns why the member pod of a virtual group must not be tried yet; empty
// where it may be.
func HeldBack(group *schedulingv1beta1.PodGroup, pod *corev1.Pod) string {
	switch hold := group.Annotations[HoldAnnotation]; {
	case hold != "":
		return hold
	case group.Spec.Priority == nil || *group.Spec.Priority != gangkey.Priority(pod):
		return ReasonPriority
	}
	return ""
}

// OwnTimeout returns the time that the PodGroup object of a virtual group gives the
// gang; false where it gives none.
func OwnTimeout(group *schedulingv1beta1.PodGroup) (time.Duration, bool) {
	own, err := time.ParseDuration(group.Annotations[TimeoutAnnotation])
	return own, err == nil && own > 0
}

// NameOf returns the name of the PodGroup that the pod is a member of; empty for none.
func NameOf(pod *corev1.Pod) string {
	if group := pod.Spec.SchedulingGroup; group != nil && group.PodGroupName != nil {
		return *group.PodGroupName
	}
	return ""
}

// IsVirtual reports whether a PodGroup of that name exists in this process alone.
func IsVirtual(name string) bool { return strings.Contains(name, ":") }

// GangName returns what users call the gang of a PodGroup of that name.
func GangName(name string) string {
	if parts := strings.SplitN(name, ":", 3); len(parts) > 1 {
		return parts[1]
	}
	return name
}

// published is what the scheduler is told of a gang. It is comparable.
type published struct {
	minCount int32
	priority int32
	hold     string
	timeout  time.Duration
}

// wantedGroup returns what the scheduler should be told of g, whose PodGroup
// object says s, or nil: a gang without members, or whose size nobody says, is
// none to the scheduler, which then leaves its members alone.
func wantedGroup(g *gang, s *spec) *published {
	minMember := sizeOf(g, s)
	if len(g.members) == 0 || minMember < 1 {
		return nil
	}
	p := &published{
		// A member that succeeded is needed no more, and the scheduler's informer
		// has dropped it: a lone retry must not wait for it.
		minCount: max(1, minMember-int32(len(g.done()))),
		hold:     g.mixture(),
	}
	if s != nil {
		p.timeout = s.timeout
	}
	first := true
	for k := range g.kinds {
		if first || k.priority > p.priority {
			p.priority, first = k.priority, false
		}
	}
	return p
}

// sizeOf returns how many members g needs at the start, or 0 where nobody says.
func sizeOf(g *gang, s *spec) int32 {
	if s != nil {
		return s.minMember
	}
	var size int32
	for k := range g.kinds {
		size = max(size, k.minAvailable)
	}
	return size
}

// object returns the virtual PodGroup of the gang that the scheduler knows by that name.
func (p *published) object(name types.NamespacedName, uid types.UID) *schedulingv1beta1.PodGroup {
	annotations := map[string]string{}
	if p.hold != "" {
		annotations[HoldAnnotation] = p.hold
	}
	if p.timeout > 0 {
		annotations[TimeoutAnnotation] = p.timeout.String()
	}
	priority := p.priority
	return &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name, UID: uid, Annotations: annotations},
		Spec: schedulingv1beta1.PodGroupSpec{
			SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{
				Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: p.minCount},
			},
			// Without this, preemption may take a gang's members one at a time.
			DisruptionMode: &schedulingv1beta1.DisruptionMode{All: &schedulingv1beta1.AllDisruptionMode{}},
			Priority:       &priority,
		},
	}
}
