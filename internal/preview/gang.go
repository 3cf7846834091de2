package preview

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-sched/kubectl-sched/internal/simulate"
	"github.com/kubectl-sched/kubectl-sched/internal/simulate/engine"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/args"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gangkey"
)

// Gang is the gang that a pod waits with.
type Gang struct {
	Name string
	// Min is how many members must be placed at once; 0 where nobody says.
	Min int
	// Members are those that there are, by name.
	Members []Member
	// Missing says why there are fewer members than the gang needs, a line each;
	// none where there are enough.
	Missing []string
	// Timeout is how long it may wait before seats are held for it; 0 where nothing of
	// the kind is configured. Left is what is left of it, negative once it is over;
	// LeftKnown says whether that can be told.
	Timeout, Left time.Duration
	LeftKnown     bool
}

// Member is one pod of a gang.
type Member struct {
	Name string
	// Node is where it is, empty for nowhere.
	Node string
	// Why is what holds it, where it has no node.
	Why string
}

// Placed counts the members that have a node.
func (g *Gang) Placed() int {
	n := 0
	for _, m := range g.Members {
		if m.Node != "" {
			n++
		}
	}
	return n
}

// gang explains the gang of the pod, nil where it is in none. The pods that wait have
// been tried.
func (x *explainer) gang(pod *corev1.Pod) *Gang {
	known, ok := x.world.GangOf(pod)
	if !ok {
		return nil
	}
	g := &Gang{Name: known.Name, Min: int(known.Min), Timeout: known.Timeout}
	if g.Timeout == 0 {
		g.Timeout = x.gangTimeout(pod.Spec.SchedulerName)
	}
	since := time.Time{}
	for _, member := range known.Members {
		m := Member{Name: member.Name, Node: member.Spec.NodeName}
		if was, ok := x.world.Became(member.Namespace, member.Name); ok && m.Node == "" {
			m.Why = whyMember(was)
			if began := member.CreationTimestamp.Time; !began.IsZero() && (since.IsZero() || began.Before(since)) {
				since = began
			}
		}
		g.Members = append(g.Members, m)
	}
	if taken := x.request.Snapshot.Taken; !taken.IsZero() && !since.IsZero() && g.Timeout > 0 {
		g.Left, g.LeftKnown = g.Timeout-taken.Sub(since), true
	}
	if len(g.Members) < g.Min {
		g.Missing = x.missing(pod, g)
	}
	return g
}

// causesOfGang are why nodes do not take the first member for which there was none.
func (x *explainer) causesOfGang(pod *corev1.Pod, of simulate.Ref) []Cause {
	gang, _ := x.world.GangOf(pod)
	for _, member := range gang.Members {
		if p, ok := x.world.Became(member.Namespace, member.Name); ok && p.Attempt != nil && len(p.Attempt.Rejections) > 0 {
			return x.causes(of, p.Attempt.Rejections)
		}
	}
	return nil
}

// whyMember says in a line what holds a member.
func whyMember(p simulate.Pod) string {
	switch {
	case len(p.Pod.Spec.SchedulingGates) > 0:
		var names []string
		for _, g := range p.Pod.Spec.SchedulingGates {
			names = append(names, g.Name)
		}
		return "held by " + strings.Join(names, ", ")
	case p.Verdict == simulate.Unserved:
		return fmt.Sprintf("nobody serves scheduler %q", p.Pod.Spec.SchedulerName)
	case p.Attempt == nil:
		return "not looked at: the gang is not complete"
	}
	return p.Attempt.Message
}

// gangTimeout is the timeout that the profile has for gangs.
func (x *explainer) gangTimeout(scheduler string) time.Duration {
	for _, p := range x.profiles {
		if gang := gangArgs(p); p.SchedulerName == scheduler && gang != nil {
			return gang.Timeout.Duration
		}
	}
	return 0
}

// gangArgs returns what the profile says of gangs; nil if it says nothing that can be
// read.
func gangArgs(p engine.Profile) *args.GangArgs {
	for _, c := range p.PluginConfig {
		if raw, ok := c.Args.(*runtime.Unknown); ok && c.Name == args.Gang {
			if gang, err := args.FromObject[*args.GangArgs](args.Gang, raw); err == nil {
				return gang
			}
		}
	}
	return nil
}

// missing says why a gang has fewer members than it needs.
func (x *explainer) missing(pod *corev1.Pod, g *Gang) []string {
	var lines []string
	if wanted, ok := x.world.Wanted(pod); ok && int(wanted) < g.Min {
		lines = append(lines, fmt.Sprintf("%s makes only %d pods", x.world.WorkloadOf(pod), wanted))
	} else if ok {
		lines = append(lines, fmt.Sprintf("%s has not made all of its %d pods", x.world.WorkloadOf(pod), wanted))
	} else {
		lines = append(lines, "whoever makes the members has not made them")
	}
	return append(lines, x.quotas(pod, g.Min)...)
}

// noteUnknownGang says of a pod that is meant to be in a gang of which its scheduler
// knows nothing.
func (x *explainer) noteUnknownGang(e *Explanation) {
	named, ok := gangkey.Of(e.Pod)
	if _, known := x.world.GangOf(e.Pod); !ok || known {
		return
	}
	e.Notes = append(e.Notes, fmt.Sprintf("its label names the gang %s, but profile %q does not place gangs: each member is placed by itself", named.Name, e.Pod.Spec.SchedulerName))
}
