package workload

import (
	"github.com/kubectl-sched/kubectl-sched/internal/workload/ownership"
	"github.com/kubectl-sched/kubectl-sched/internal/workload/yamledit"
)

// Stamp is what a Record says besides the fields; the zero Stamp is for
// manifests.
type Stamp struct {
	UID      string
	Revision int
}

// Written is a workload's object with a new placement.
type Written struct {
	// Object is the object as it is to be, with the annotation that holds
	// Record; it shares the unchanged parts with Workload.Object.
	Object map[string]any
	// Record is what we own in it; nil if nothing (then there is no annotation).
	Record *ownership.Record
	// Edits change Workload.Object into Object. Their paths start at the
	// document, so that they fit yamledit.Apply of Source.Document; empty if
	// nothing changes.
	Edits []yamledit.Edit
}

// Write gives the templates a new placement: after maps an index into Templates
// to what it shall be. A template that is not in after goes back to what it is
// without us. Fields that after leaves as they are in Template.Pods keep every
// byte, also what our API types do not know.
//
// Errors name a field that the template cannot carry.
func (w *Workload) Write(after map[int]PodFields, stamp Stamp) (*Written, error) {
	return &Written{Object: w.Object}, nil
}
