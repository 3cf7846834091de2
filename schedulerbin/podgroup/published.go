package podgroup

import (
	"cmp"
	"fmt"
	"slices"
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
		hold:     mixture(g),
	}
	if s != nil {
		p.timeout = s.timeout
	}
	first := true
	for _, m := range g.members {
		if first || m.priority > p.priority {
			p.priority, first = m.priority, false
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
	for _, m := range g.members {
		size = max(size, m.minAvailable)
	}
	return size
}

// done returns the members that succeeded in the run that the others are of. Pods
// of one run have the same controller; pods without one are of the same run while
// another still runs. Failed members are not counted: their controller makes them
// anew, and then all of them are needed.
func (g *gang) done() []types.UID {
	controllers, runs := map[types.UID]bool{}, false
	for _, m := range g.members {
		if m.controller != "" {
			controllers[m.controller] = true
		} else if m.node != "" {
			runs = true
		}
	}
	var done []types.UID
	for uid, f := range g.finished {
		if _, still := g.members[uid]; still || f.failed {
			continue // still: the two informers are not in step
		}
		if controllers[f.controller] || f.controller == "" && runs {
			done = append(done, uid)
		}
	}
	return done
}

// mixture returns why the members of g can never be placed together, or "". The
// scheduler compares them all, bound ones too, and an error in that is retried
// for ever (schedule_one_podgroup.go, validatePodGroup).
func mixture(g *gang) string {
	members := make([]*member, 0, len(g.members))
	for _, m := range g.members {
		members = append(members, m)
	}
	slices.SortFunc(members, func(a, b *member) int { return cmp.Compare(a.name, b.name) })
	first := members[0]
	for _, m := range members[1:] {
		switch {
		case m.priority != first.priority:
			return fmt.Sprintf("members must have one priority, but %s has %d and %s has %d", first.name, first.priority, m.name, m.priority)
		case m.schedulerName != first.schedulerName:
			return fmt.Sprintf("members must have one schedulerName, but %s has %q and %s has %q", first.name, first.schedulerName, m.name, m.schedulerName)
		case m.preemption != first.preemption:
			return fmt.Sprintf("members must have one preemptionPolicy, but %s has %q and %s has %q", first.name, first.preemption, m.name, m.preemption)
		}
	}
	return ""
}

// object returns the virtual PodGroup of the gang called id.
func (p *published) object(id gangkey.Gang, uid types.UID) *schedulingv1beta1.PodGroup {
	annotations := map[string]string{}
	if p.hold != "" {
		annotations[HoldAnnotation] = p.hold
	}
	if p.timeout > 0 {
		annotations[TimeoutAnnotation] = p.timeout.String()
	}
	priority := p.priority
	return &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: id.Namespace, Name: id.Key(), UID: uid, Annotations: annotations},
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
