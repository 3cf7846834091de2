package engine

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Attempt is what came of one try to place a pod.
type Attempt struct {
	// Cycle counts the scheduling cycles of the engine, from 1. The members of a
	// group that is tried whole have the same.
	Cycle int
	// Pod is the pod as it was tried. Nobody may change it.
	Pod *corev1.Pod
	// Node is where the pod was placed; empty if it was not.
	Node string
	// Message is the scheduler's message where the pod was not placed, as it stands
	// in the pod's condition PodScheduled.
	Message string
	// Nominated is the node that preemption makes room on; empty if it does not.
	Nominated string
	// Rejections are why nodes were not fit, ordered by plugin and reason.
	Rejections []Rejection
	// Choice is how the node was chosen; nil where none was, or where no plugin had
	// a say because one node alone was fit.
	Choice *Choice
	// Evaluated and Feasible count the nodes that were looked at and that were fit.
	Evaluated, Feasible int
}

// Rejection is one reason why nodes were not fit.
type Rejection struct {
	Plugin  string
	Reasons []string
	// Unresolvable says that the eviction of pods would not help.
	Unresolvable bool
	// Nodes are the names of the nodes, in the scheduler's order.
	Nodes []string
}

// Choice is how one of several fit nodes was chosen.
type Choice struct {
	// Scores are those of the chosen node, in the order of the profile's plugins.
	Scores []Score
	// Total is their sum.
	Total int64
	// Tied is how many other nodes had the same total. Where it is not 0 the seed
	// chose.
	Tied int
	// TiedWith are these nodes, where Options.Ties asks for them.
	TiedWith []string
	// RunnerUp is the best node that was not chosen, with its scores. Its total is
	// the same where nodes are tied.
	RunnerUp       string
	RunnerUpScores []Score
	RunnerUpTotal  int64
}

// Score is what one plugin gave a node.
type Score struct {
	Plugin string
	// Weight is that of the plugin in the profile.
	Weight int64
	// Points are from 0 to 100 times the weight: what counts in the total.
	Points int64
}

// Eviction is a pod that was removed to make room for another.
type Eviction struct {
	Cycle  int
	Victim *corev1.Pod
}

// key names the pod in its namespace.
func key(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}
