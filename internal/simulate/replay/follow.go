package replay

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-sched/kubectl-sched/internal/simulate/engine"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/recording"
)

// Result is what came of following a cycle.
type Result struct {
	// Pods are those of the attempts of the cycle, in their order, as they were tried.
	Pods []*corev1.Pod
	// Invalid says why the cycle says nothing of the simulator; empty if it does.
	Invalid string
	// Differences are where the simulator did something else; none if it agrees.
	Differences []Difference
}

// Difference is where the simulator did something else.
type Difference struct {
	// Pod is the pod of it: "namespace/name".
	Pod string
	// What is what differs: "node", "message", "nominated node", "victims", "tries".
	What string
	// Recorded and Simulated are what the scheduler and the simulator did.
	Recorded, Simulated string
}

// follower is the engine's Decider: it chooses what was recorded.
type follower struct {
	hash  string
	tries []recording.Try
	names map[types.UID]string
	// assumed are the pods that had a node in the scheduler's memory alone.
	assumed map[types.UID]bool
	room    string
	came    map[types.UID]int
	victims map[types.NamespacedName]bool
	found   []Difference
	at      int
}

var _ engine.Decider = &follower{}

// follow begins a cycle, at whose start the pods were placed: those whose object has no
// node, in the scheduler's memory alone.
func (f *follower) follow(c recording.Cycle, placed []*corev1.Pod) {
	*f = follower{tries: c.Tries, names: map[types.UID]string{}, assumed: map[types.UID]bool{}, came: map[types.UID]int{}}
	for i, uid := range c.Order {
		f.came[uid] = i
	}
	for _, pod := range placed {
		f.assumed[pod.UID] = pod.Spec.NodeName == ""
	}
	f.victims = map[types.NamespacedName]bool{}
	for _, v := range c.Victims {
		f.victims[types.NamespacedName{Namespace: v.Namespace, Name: v.Name}] = true
	}
	for _, a := range c.Attempts {
		f.names[a.UID] = a.Namespace + "/" + a.Name
		if f.room == "" {
			f.room = a.Nominated
		}
	}
}

// See keeps the hash.
func (f *follower) See(hash string) { f.hash = hash }

// Room returns the node that was recorded.
func (f *follower) Room() string { return f.room }

// Evict reports whether the pod was evicted.
func (f *follower) Evict(pod *corev1.Pod) bool { return f.victims[nameOf(pod)] }

// Came returns the place of the pod in the order that was recorded.
func (f *follower) Came(pod *corev1.Pod) (int, bool) {
	i, ok := f.came[pod.UID]
	return i, ok
}

// Place returns the node that was recorded.
func (f *follower) Place(pod *corev1.Pod, best []string) string {
	recorded, ok := f.next(pod)
	switch {
	case !ok:
		return best[0]
	case recorded.Node == "":
		f.differ(pod, "node", "none", strings.Join(best, " or "))
		return best[0]
	case !slices.Contains(best, recorded.Node):
		f.differ(pod, "node", recorded.Node, strings.Join(best, " or "))
	}
	return recorded.Node
}

// Fail notes that there is no node for the pod.
func (f *follower) Fail(pod *corev1.Pod) {
	if recorded, ok := f.next(pod); ok && recorded.Node != "" {
		f.differ(pod, "node", recorded.Node, "none")
	}
}

// next returns what was recorded of the try that is under way, and false if another
// one was.
func (f *follower) next(pod *corev1.Pod) (recording.Try, bool) {
	if f.at >= len(f.tries) || f.tries[f.at].UID != pod.UID {
		what := "none"
		if f.at < len(f.tries) {
			what = "a try of " + f.nameOf(f.tries[f.at].UID)
		}
		f.differ(pod, "tries", what, "a try of "+pod.Namespace+"/"+pod.Name)
		f.at++
		return recording.Try{}, false
	}
	f.at++
	return f.tries[f.at-1], true
}

func (f *follower) nameOf(uid types.UID) string {
	if name, ok := f.names[uid]; ok {
		return name
	}
	return string(uid)
}

func (f *follower) differ(pod *corev1.Pod, what, recorded, simulated string) {
	f.found = append(f.found, Difference{Pod: pod.Namespace + "/" + pod.Name, What: what, Recorded: recorded, Simulated: simulated})
}

// compare returns what came of the cycle, in which the engine made the attempts and
// evicted pods, unless it was held back.
func (f *follower) compare(c recording.Cycle, attempts []engine.Attempt, evictions []engine.Eviction, held error) Result {
	if held != nil {
		return Result{Differences: []Difference{{Pod: f.nameOf(c.Attempts[0].UID), What: "tries", Recorded: "tried", Simulated: held.Error()}}}
	}
	if f.hash != c.Hash {
		return Result{Invalid: "the simulator saw another state"}
	}
	if f.at < len(f.tries) {
		f.found = append(f.found, Difference{Pod: f.nameOf(f.tries[f.at].UID), What: "tries", Recorded: "more tries", Simulated: "no more"})
	}
	simulated := map[types.UID]engine.Attempt{}
	for _, a := range attempts {
		simulated[a.Pod.UID] = a
	}
	for _, a := range c.Attempts {
		f.compareAttempt(a, simulated[a.UID])
	}
	recorded := []string{}
	for _, v := range c.Victims {
		recorded = append(recorded, v.Namespace+"/"+v.Name)
	}
	evicted := []string{}
	for _, e := range evictions {
		name := e.Victim.Namespace + "/" + e.Victim.Name
		if f.assumed[e.Victim.UID] && !slices.Contains(recorded, name) {
			continue // preempted in the scheduler's memory, before it was bound
		}
		evicted = append(evicted, name)
	}
	slices.Sort(recorded)
	slices.Sort(evicted)
	if len(recorded) == 0 && len(evicted) > 0 && slices.ContainsFunc(c.Attempts, func(a recording.Attempt) bool { return a.Nominated != "" }) {
		return Result{Invalid: "the victims were gone before they were evicted"}
	}
	if !slices.Equal(recorded, evicted) {
		f.found = append(f.found, Difference{Pod: f.nameOf(c.Attempts[0].UID), What: "victims", Recorded: strings.Join(recorded, ", "), Simulated: strings.Join(evicted, ", ")})
	}
	switch {
	case len(f.found) > 0 && len(c.Held) > 0:
		return Result{Invalid: seatsHeld}
	case len(f.found) > 0 && c.Lost:
		return Result{Invalid: membersLost}
	}
	return Result{Differences: f.found}
}

// compareAttempt compares what came of the cycle for one pod. Nodes are compared
// when they are chosen.
func (f *follower) compareAttempt(recorded recording.Attempt, simulated engine.Attempt) {
	if recorded.Node != "" && recorded.Message != "" {
		return // given up after the node was found, maybe by what binds
	}
	name := f.nameOf(recorded.UID)
	if recorded.Message != simulated.Message {
		f.found = append(f.found, Difference{Pod: name, What: "message", Recorded: recorded.Message, Simulated: simulated.Message})
	}
	if recorded.Nominated != simulated.Nominated {
		f.found = append(f.found, Difference{Pod: name, What: "nominated node", Recorded: recorded.Nominated, Simulated: simulated.Nominated})
	}
}
