package apply

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
	Step  Step
	// Cause says what the run is: "apply", "undo to revision 3", "delete".
	Cause string
	// Revision is the number that the run's revision will have.
	Revision int
	// Prune says that what the run does not mention is withdrawn.
	Prune bool
	// Objects are in the order in which they are written.
	Objects   []ObjectChange
	Nodes     []NodeChange
	Workloads []WorkloadChange
	Conflicts []Conflict
	// Disruptions are the PodDisruptionBudgets that select pods which restart.
	Disruptions []Disruption

	source Source
	// state is what the change set was computed against.
	state *State
	// pools are what the revision remembers of the pools whose nodes we write.
	pools []PoolItem
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

// ObjectChange is what happens to one object of our making.
type ObjectChange struct {
	Kind schema.GroupVersionKind
	// Namespace is empty for kinds that are in none.
	Namespace, Name string
	Action          Action
	// Before is the object in the cluster, After what the API server's dry run
	// made of it; nil where there is none.
	Before, After map[string]any
	Origins       []compiler.Origin

	mapping *meta.RESTMapping
	// desired is what is sent to the API server; nil for what is not wanted.
	desired *unstructured.Unstructured
	// overwrite says that others have added something that has to go.
	overwrite bool
	// inUse says that it would be deleted if nothing needed it any more.
	inUse bool
}

// Ref names the object as workload.Workload.Ref does, without the groups of the
// API server's own kinds: "PriorityClass batch".
func (c ObjectChange) Ref() string {
	gk := c.Kind.GroupKind()
	if servedSince(gk) != "" {
		gk.Group = ""
	}
	return ref(gk, c.Namespace, c.Name)
}

// NodeChange is what happens to one taint or label of one node.
type NodeChange struct {
	Name string
	UID  types.UID
	Pool string
	// Taint is the taint that changes. Where a label does, it has no key, and Label
	// is the label's key and Value what it is to be.
	Taint        corev1.Taint
	Label, Value string
	Action       Action
	Origins      []compiler.Origin

	// node is the node as it is.
	node *corev1.Node
	// takeOver says that what somebody else put there makes way.
	takeOver bool
	// inUse says that it would be taken away if nothing needed it any more.
	inUse bool
}

// Mark returns the taint or label that changes.
func (c NodeChange) Mark() Mark { return Mark{Taint: c.Taint, Label: c.Label, Value: c.Value} }

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
	for _, o := range c.Objects {
		if o.Action != Keep {
			return false
		}
	}
	return !c.stateChanges
}

// InUse returns how many objects and marks of nodes the set keeps only because
// pods may still need them.
func (c *ChangeSet) InUse() int {
	n := 0
	for _, o := range c.Objects {
		if o.inUse {
			n++
		}
	}
	for _, m := range c.Nodes {
		if m.inUse {
			n++
		}
	}
	return n
}

// groupKinds returns the kinds of the objects that the set has after the run, or
// also of those that the run deletes.
func (c *ChangeSet) groupKinds(deleted bool) []schema.GroupKind {
	var kinds []schema.GroupKind
	for _, o := range c.Objects {
		if deleted || o.Action != Delete {
			kinds = append(kinds, o.Kind.GroupKind())
		}
	}
	return kinds
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

// Waited returns the workloads whose rollouts are the run's to wait for: those
// that restart, and those that it leaves as they are, because an earlier run
// that was interrupted may have restarted them.
func (c *ChangeSet) Waited() []*WorkloadChange {
	return c.workloads(func(w *WorkloadChange) bool { return w.Restarts || w.Action == Keep })
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
