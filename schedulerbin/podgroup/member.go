package podgroup

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gangkey"
)

// member is a member that has not finished.
type member struct {
	kind
	name    string
	node    string
	running bool
	gated   bool   // it is not looked at: somebody holds it back by a scheduling gate
	owner   string // the name of the controller
}

// kind is what of a member counts for its gang. The members of a gang are of few kinds,
// which are counted: to look at each of them whenever one comes or changes would take
// time that grows with the square of the gang.
type kind struct {
	traits
	minAvailable int32
	controller   types.UID
	placed       bool // it has a node
}

// traits are what members of one gang must have in common.
type traits struct {
	priority      int32
	schedulerName string
	preemption    corev1.PreemptionPolicy
}

// finished is a member that has succeeded or failed.
type finished struct {
	failed     bool
	owner      string
	controller types.UID
}

// memberOf returns what is known of pod as a member.
func memberOf(pod *corev1.Pod) *member {
	owner, controller := controllerOf(pod)
	m := &member{
		kind: kind{
			traits: traits{
				priority:      gangkey.Priority(pod),
				schedulerName: pod.Spec.SchedulerName,
				preemption:    corev1.PreemptLowerPriority,
			},
			minAvailable: gangkey.MinAvailable(pod),
			controller:   controller,
			placed:       pod.Spec.NodeName != "",
		},
		name:    pod.Name,
		node:    pod.Spec.NodeName,
		running: pod.Status.Phase == corev1.PodRunning,
		gated:   gangkey.Gated(pod),
		owner:   owner,
	}
	if pod.Spec.PreemptionPolicy != nil {
		m.preemption = *pod.Spec.PreemptionPolicy
	}
	return m
}

// put takes in a member that is new or has changed.
func (g *gang) put(uid types.UID, m *member) {
	g.drop(uid)
	g.members[uid] = m
	g.kinds[m.kind]++
}

// drop takes a member away.
func (g *gang) drop(uid types.UID) {
	m := g.members[uid]
	if m == nil {
		return
	}
	delete(g.members, uid)
	if g.kinds[m.kind]--; g.kinds[m.kind] == 0 {
		delete(g.kinds, m.kind)
	}
}

// done returns the members that succeeded in the run that the others are of. Pods
// of one run have the same controller; pods without one are of the same run while
// another still runs. Failed members are not counted: their controller makes them
// anew, and then all of them are needed.
func (g *gang) done() []types.UID {
	controllers, runs := map[types.UID]bool{}, false
	for k := range g.kinds {
		if k.controller != "" {
			controllers[k.controller] = true
		} else if k.placed {
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
func (g *gang) mixture() string {
	different := map[traits]bool{}
	for k := range g.kinds {
		different[k.traits] = true
	}
	if len(different) < 2 {
		return ""
	}
	first := g.firstMember(func(*member) bool { return true })
	m := g.firstMember(func(m *member) bool { return m.traits != first.traits })
	switch {
	case m.priority != first.priority:
		return fmt.Sprintf("members must have one priority, but %s has %d and %s has %d", first.name, first.priority, m.name, m.priority)
	case m.schedulerName != first.schedulerName:
		return fmt.Sprintf("members must have one schedulerName, but %s has %q and %s has %q", first.name, first.schedulerName, m.name, m.schedulerName)
	}
	return fmt.Sprintf("members must have one preemptionPolicy, but %s has %q and %s has %q", first.name, first.preemption, m.name, m.preemption)
}

// firstMember returns the first member by name of those that are wanted, or nil.
func (g *gang) firstMember(wanted func(*member) bool) *member {
	var first *member
	var firstUID types.UID
	for uid, m := range g.members {
		if wanted(m) && (first == nil || cmp.Or(cmp.Compare(m.name, first.name), cmp.Compare(uid, firstUID)) < 0) {
			first, firstUID = m, uid
		}
	}
	return first
}
