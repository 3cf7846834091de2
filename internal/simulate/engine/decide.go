package engine

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/recording/state"
)

// Decider decides in the place of the seed, so that an engine can follow what
// another scheduler has done.
type Decider interface {
	// See is told the hash of what the scheduler sees (package state), once a cycle.
	See(hash string)
	// Place returns where the pod goes. The best are the nodes that the seed would
	// choose from, which are equal in everything; a node that is none of them is taken
	// as it is.
	Place(pod *corev1.Pod, best []string) string
	// Fail is told that there is no node for the pod.
	Fail(pod *corev1.Pod)
	// Room returns the node on which preemption makes room where it is equal to the
	// others in everything; empty lets the seed choose.
	Room() string
	// Evict reports whether the pod goes rather than others on its node that are equal
	// to it in everything.
	Evict(pod *corev1.Pod) bool
	// Came returns the place of the pod in the order in which upstream has the pods, node
	// by node; false where that is not known.
	Came(pod *corev1.Pod) (int, bool)
}

// watched has the engine's Decider see what SchedulePod does.
func (e *Engine) watched(d Decider) {
	hasher := &state.Hasher{}
	e.look = func() error {
		if e.looked == e.cycle {
			return nil
		}
		e.looked = e.cycle
		nodes, err := e.chooser.snapshot.NodeInfos().List()
		if err != nil {
			return err
		}
		hash, err := hasher.Of(nodes, e.sched.SchedulingQueue.NominatedPodsForNode)
		if err == nil {
			d.See(hash)
		}
		return err
	}
	choose := e.sched.SchedulePod
	e.sched.SchedulePod = func(ctx context.Context, f framework.Framework, s fwk.CycleState, pod *framework.QueuedPodInfo) (scheduler.ScheduleResult, error) {
		if err := e.look(); err != nil {
			return scheduler.ScheduleResult{}, err
		}
		result, err := choose(ctx, f, s, pod)
		if err != nil {
			d.Fail(pod.Pod)
		}
		return result, err
	}
}

// decided returns the node that the Decider wants for the pod, or chosen if there is
// no Decider. There are n feasible nodes, of each of which of gives the name and the
// total.
func (c *chooser) decided(pod *corev1.Pod, chosen string, n int, of func(int) (string, int64)) string {
	if c.decider == nil {
		return chosen
	}
	best, most := []string{chosen}, int64(0)
	for i := range n {
		if name, total := of(i); name == chosen {
			most = total
		}
	}
	for i := range n {
		if name, total := of(i); total == most && name != chosen {
			best = append(best, name)
		}
	}
	return c.decider.Place(pod, best)
}
