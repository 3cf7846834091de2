package simulate

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-sched/kubectl-sched/internal/simulate/engine"
)

// Verdict is what became of a pod.
type Verdict string

// The verdicts.
const (
	// Placed is on a node.
	Placed Verdict = "placed"
	// Waiting fits no node as things are: its phase is Pending.
	Waiting Verdict = "pending"
	// NeedsNodes fits on nodes that its pool can still get.
	NeedsNodes Verdict = "needs nodes"
	// Gated is not looked at by a scheduler: a gate, or a plugin's PreEnqueue, holds
	// it.
	Gated Verdict = "gated"
	// Unserved names a scheduler that is not known to run.
	Unserved Verdict = "no scheduler"
	// Untried would have been looked at, had the simulation not been cut off.
	Untried Verdict = "not tried"
	// Gone was removed, and nobody makes it anew.
	Gone Verdict = "gone"
)

// Outcome is what a scenario came to.
type Outcome struct {
	// Pods has each pod that is there at the end, or was at the start and is nobody's,
	// by name.
	Pods []Pod
	// Evicted are the pods that preemption removed.
	Evicted []engine.Eviction
	// Growth is what nodes the pods with the verdict NeedsNodes need.
	Growth []Growth
	// Nodes are the nodes at the end, by name, without those of Growth.
	Nodes []*corev1.Node
	// Stuck are rollouts and drains that came to a halt.
	Stuck []Stuck
	// WorkloadOf names the workload that a pod of the snapshot belongs to.
	WorkloadOf func(*corev1.Pod) Ref
	// Assumptions are what the outcome rests on, sorted.
	Assumptions []string
	// Cut says that somebody ended the simulation before its end.
	Cut bool
}

// Pod is what became of one pod.
type Pod struct {
	Pod      *corev1.Pod
	Workload Ref
	// New says that it was not there at the start.
	New bool
	// Before and After are its nodes, empty for none.
	Before, After string
	Verdict       Verdict
	// Attempt is the last try to place it in the simulation; nil if there was none.
	Attempt *engine.Attempt
	// Pool is where new nodes would help, for NeedsNodes.
	Pool string
}

// Stuck is something that would wait for ever.
type Stuck struct {
	Workload Ref
	// Placed of Wanted pods of the new revision are on nodes; Old are those of former
	// ones that are still there.
	Placed, Wanted, Old int32
	// MaxSurge and MaxUnavailable are the numbers of a Deployment's strategy.
	MaxSurge, MaxUnavailable int32
	// At is the pod that all wait for, where there is one.
	At string
	// Budget is the PodDisruptionBudget that does not let At leave Node.
	Budget, Node string
}

// Outcome returns what came of the steps that were taken.
func (w *World) Outcome() *Outcome {
	out := &Outcome{Evicted: w.evicted, Growth: w.growth(), WorkloadOf: w.WorkloadOf, Stuck: w.stuck, Cut: w.cut, Assumptions: slices.Sorted(maps.Keys(w.assumptions))}
	for _, node := range w.sortedNodes() {
		if _, grown := w.grown[node.Name]; !grown {
			out.Nodes = append(out.Nodes, node)
		}
	}
	names := slices.SortedFunc(maps.Keys(w.pods), func(a, b podName) int { return strings.Compare(a.String(), b.String()) })
	for _, name := range names {
		if pod, ok := w.engine.Pod(name); ok {
			out.Pods = append(out.Pods, w.pod(name, pod))
		}
	}
	for name, pod := range w.before {
		if _, there := w.pods[name]; !there && w.ownerOf(pod) == nil {
			out.Pods = append(out.Pods, Pod{Pod: pod, Workload: w.WorkloadOf(pod), Before: pod.Spec.NodeName, Verdict: Gone})
		}
	}
	slices.SortStableFunc(out.Pods, func(a, b Pod) int { return strings.Compare(keyOf(a.Pod).String(), keyOf(b.Pod).String()) })
	return out
}

// pod says what became of the pod.
func (w *World) pod(name podName, pod *corev1.Pod) Pod {
	p := Pod{Pod: pod, Workload: w.WorkloadOf(pod), After: pod.Spec.NodeName}
	if before := w.before[name]; before != nil && before.UID == pod.UID {
		p.Before = before.Spec.NodeName
	} else {
		p.New = true
		if before != nil {
			p.Before = before.Spec.NodeName // a StatefulSet's, by the same name
		}
	}
	if a, ok := w.last[name]; ok {
		p.Attempt = &a
	}
	switch {
	case w.grown[p.After] != "":
		p.Verdict, p.Pool = NeedsNodes, w.grown[p.After]
	case p.After != "":
		p.Verdict = Placed
	case !w.serves[pod.Spec.SchedulerName]:
		p.Verdict = Unserved
	case w.cut && p.Attempt == nil && len(pod.Spec.SchedulingGates) == 0:
		p.Verdict = Untried
	case len(pod.Spec.SchedulingGates) > 0 || p.Attempt == nil:
		p.Verdict = Gated
	default:
		p.Verdict = Waiting
	}
	return p
}
