package apply

import (
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/internal/workload/ownership"
)

// Action is what a run does with one object.
type Action string

// The actions.
const (
	// Keep means that the object already is as it shall be.
	Keep Action = "keep"
	// Update means that fields are written.
	Update Action = "update"
	// Withdraw means that all of ours is taken away, and what was there before is
	// put back.
	Withdraw Action = "withdraw"
	// NextRun means that the object cannot be changed any more (a Job's pods, a
	// bare pod), and that the policy holds for the next of its kind.
	NextRun Action = "next-run"
	// Refuse means that somebody else would undo the change; a finding says who.
	Refuse Action = "refuse"
	// Create and Delete are for objects of our own making alone.
	Create Action = "create"
	Delete Action = "delete"
	// Replace deletes an object of ours and makes it anew, because a field of it
	// cannot be changed.
	Replace Action = "replace"
)

// ChangeSet is everything that a run would do, as the API server's own dry run
// answered. Lists are in the order of their phases and sorted within.
type ChangeSet struct {
	Set   Set
	Scope Scope
	// Cause says what the run is: "apply", "undo to revision 3", "delete".
	Cause string
	// Revision is the number that the run's revision will have.
	Revision int
	// Prune says that what the run does not mention is withdrawn.
	Prune     bool
	Classes   []ClassChange
	Nodes     []NodeChange
	Workloads []WorkloadChange
	Conflicts []Conflict
	// Disruptions are the PodDisruptionBudgets that select pods which restart.
	Disruptions []Disruption

	// state is what the change set was computed against.
	state *State
	// stateChanges says that the recorded scope or the last revision has to be
	// written although no object changes.
	stateChanges bool
}

// WorkloadChange is what happens to one workload.
type WorkloadChange struct {
	Workload *workload.Workload
	Action   Action
	// Before is the live object, and After what the API server's dry run made of
	// it; the same where nothing changes.
	Before, After map[string]any
	// Policies are the policies in force for it, sorted.
	Policies []string
	// Origins are the policies' lines for each field, by its JSON pointer.
	Origins map[string][]compiler.Origin
	// Changes are the compiled changes of its templates; none for an undo or a
	// withdrawal.
	Changes []compiler.Change
	// Restarts says that the change makes a controller replace Pods pods.
	Restarts bool
	Pods     int

	target *target
	// record is what the object's annotation is to hold; nil to withdraw.
	record *ownership.Record
	route  route
	force  bool
	// restored are fields that go back to what was there before us in the same
	// write, and are let go of right after it.
	restored []string
}

// ClassChange is what happens to one PriorityClass of our making.
type ClassChange struct {
	Name   string
	Action Action
	// Before is the class in the cluster, After the one that shall be; nil where
	// there is none.
	Before, After *schedulingv1.PriorityClass
	Origins       []compiler.Origin
}

// NodeChange is what happens to one taint of one node.
type NodeChange struct {
	Name   string
	UID    types.UID
	Pool   string
	Taint  corev1.Taint
	Action Action
	// Before and After are all taints of the node.
	Before, After []corev1.Taint
	Origins       []compiler.Origin
}

// Conflict is a field that a policy asks for and somebody else owns.
type Conflict struct {
	// Subject is the workload, Field the field as the API server names it
	// (".spec.template.spec.tolerations").
	Subject, Field string
	// Owner is the field manager; empty where the server cannot tell.
	Owner   string
	Origins []compiler.Origin
}

// Disruption is a PodDisruptionBudget that covers pods which restart.
type Disruption struct {
	Namespace, Name string
	// Workloads are the workloads whose pods it covers, sorted.
	Workloads []string
	// Allowed is how many disruptions it allows right now.
	Allowed int32
}

// Empty reports whether the run would write nothing at all.
func (c *ChangeSet) Empty() bool {
	for _, w := range c.Workloads {
		if w.Action == Update || w.Action == Withdraw {
			return false
		}
	}
	for _, n := range c.Nodes {
		if n.Action != Keep {
			return false
		}
	}
	for _, p := range c.Classes {
		if p.Action != Keep {
			return false
		}
	}
	return !c.stateChanges
}

// Restarts returns how many workloads would restart, and how many pods in all.
func (c *ChangeSet) Restarts() (workloads, pods int) {
	for _, w := range c.Workloads {
		if w.Restarts {
			workloads++
			pods += w.Pods
		}
	}
	return workloads, pods
}

// Restarting returns the workloads that restart.
func (c *ChangeSet) Restarting() []*WorkloadChange {
	return c.workloads(func(w *WorkloadChange) bool { return w.Restarts })
}

// Placed returns the workloads that hold fields of the set after the run.
func (c *ChangeSet) Placed() []*WorkloadChange {
	return c.workloads(func(w *WorkloadChange) bool { return w.Action == Keep || w.Action == Update })
}

func (c *ChangeSet) workloads(which func(*WorkloadChange) bool) []*WorkloadChange {
	var found []*WorkloadChange
	for i := range c.Workloads {
		if which(&c.Workloads[i]) {
			found = append(found, &c.Workloads[i])
		}
	}
	return found
}
