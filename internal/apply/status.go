package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-sched/kubectl-sched/internal/cluster/trim"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/internal/workload/ownership"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// Status is what a set is like in the cluster now.
type Status struct {
	Set   Set
	Scope Scope
	// Revision is the newest revision.
	Revision *Revision
	// Writer is the run that was writing the set when its state was read, nil for
	// none; see State.Writer.
	Writer *Writer
	// Workloads has one entry for each workload with fields of the set.
	Workloads []WorkloadStatus
	// Drifts are what is not as the revision left it, besides workloads.
	Drifts []Drift
	// Admission is how far the admission policies have come; nil for a set that
	// has none.
	Admission *AdmissionStatus
	// Findings are what could not be looked at.
	Findings diag.Findings
}

// WorkloadStatus is what one workload of a set is like.
type WorkloadStatus struct {
	Ref      string
	Policies []string
	// Revision is the revision that wrote it last.
	Revision int
	Drifts   []Drift
	// Violations are its running pods that its placement rules out now.
	Violations []Violation
	// Places is where its pods are.
	Places []Landing
}

// Drift is one thing that is not as we left it.
type Drift struct {
	Subject string
	// Field is the field that differs; empty where the drift is of the whole.
	Field string
	// Message says what happened, in words.
	Message string
	// By are the field managers that own the field now.
	By []string
}

// Violation is a running pod on a node where it must not be.
type Violation struct {
	Pod, Node string
	// Reason says which rule is broken; Policies are those of its workload.
	Reason   string
	Policies []string
}

// Drifted reports whether anything differs from what the set's revision left.
func (s *Status) Drifted() bool {
	return len(s.Drifts) > 0 || slices.ContainsFunc(s.Workloads, func(w WorkloadStatus) bool { return len(w.Drifts) > 0 })
}

// Status compares the cluster with what the revisions in force left there. It
// needs nothing but the cluster; of pools it knows those whose nodes the set writes.
func (a *Applier) Status(ctx context.Context, state *State) (*Status, error) {
	poolOf := writtenPools(state.Latest())
	status := &Status{Set: state.Set, Scope: state.Scope, Revision: state.Latest(), Writer: state.Writer()}
	items := state.items()
	var changes []*WorkloadChange
	live := map[types.UID]*workload.Workload{}
	for _, item := range items {
		entry := WorkloadStatus{Ref: item.Ref(), Policies: item.Policies, Revision: item.Record.Revision}
		// Without the remembered records: what is missing shall show.
		w, findings, err := a.fetch(ctx, item, nil)
		if err != nil {
			return nil, err
		}
		if findings.HasErrors() {
			entry.Drifts = append(entry.Drifts, Drift{Subject: item.Ref(), Message: findings.Error()})
		} else {
			entry.Drifts = drifts(state, item, w)
		}
		if w != nil {
			live[item.UID] = w
			changes = append(changes, &WorkloadChange{Workload: w})
		}
		status.Workloads = append(status.Workloads, entry)
	}
	if err := a.otherDrifts(ctx, state, status); err != nil {
		return nil, err
	}
	if latest := state.Latest(); latest != nil && latest.Step.Admission() {
		var err error
		if status.Admission, status.Findings, err = a.admissionStatus(ctx, state); err != nil {
			return nil, err
		}
	}
	in, err := a.surroundings(ctx, changes)
	if err != nil {
		return nil, err
	}
	landings := in.landings(changes, poolOf)
	for i, item := range items {
		entry := &status.Workloads[i]
		for _, l := range landings {
			if l.Workload == entry.Ref {
				entry.Places = append(entry.Places, l)
			}
		}
		if w := live[item.UID]; w != nil {
			entry.Violations = violations(w, in.pods[types.UID(w.UID)], in.nodes, item.Policies)
		}
	}
	return status, nil
}

// writtenPools names the pools of the nodes that the revision wrote.
func writtenPools(r *Revision) func(node string) string {
	pools := map[string]string{}
	if r != nil {
		for _, n := range r.Nodes {
			pools[n.Name] = n.Pool
		}
	}
	return func(node string) string { return pools[node] }
}

// drifts compares one workload with what we wrote into it.
func drifts(state *State, item Item, w *workload.Workload) []Drift {
	set := state.Set
	ref := item.Ref()
	switch {
	case w == nil:
		return []Drift{{Subject: ref, Message: "it does not exist any more"}}
	case types.UID(w.UID) != item.UID:
		return []Drift{{Subject: ref, Message: "it was deleted and made anew, without the set's fields; apply again"}}
	}
	var found []Drift
	if w.Record == nil {
		found = append(found, Drift{Subject: ref, Field: ".metadata.annotations[" + ownership.Annotation + "]", Message: "our annotation was stripped; apply again to restore it"})
	}
	if label := w.Labels[ownership.SetLabel]; label != set.Label() {
		message := "our label was stripped; apply again to restore it"
		if label != "" {
			message = fmt.Sprintf("it is labelled as belonging to set %q", label)
		}
		found = append(found, Drift{Subject: ref, Field: ".metadata.labels[" + ownership.SetLabel + "]", Message: message})
	}
	for _, f := range item.Record.Fields {
		now, _ := valueAt(w.Object, f.Path)
		if covers(plain(now), plain(f.Wrote), f.Path) && covers(plain(f.Wrote), plain(now), f.Path) {
			continue
		}
		d := Drift{Subject: ref, Field: fieldOfPointer(f.Path), Message: "it was changed since revision " + fmt.Sprint(item.Record.Revision), By: fieldOwners(w.Object, f.Path, state.Manager())}
		if isEmpty(now) {
			d.Message = "it was removed since revision " + fmt.Sprint(item.Record.Revision)
		}
		found = append(found, d)
	}
	return found
}

// otherDrifts compares our objects and our nodes with the cluster.
func (a *Applier) otherDrifts(ctx context.Context, state *State, status *Status) error {
	latest := state.Latest()
	if latest == nil {
		return nil
	}
	drifts, err := a.objectDrifts(ctx, state.Set, latest)
	if err != nil {
		return err
	}
	status.Drifts = append(status.Drifts, drifts...)
	if len(latest.Nodes) == 0 && len(latest.Pools) == 0 {
		return nil
	}
	nodes, err := a.nodesByName(ctx)
	if err != nil {
		return err
	}
	status.Drifts = append(status.Drifts, nodeDrifts(latest, nodes)...)
	return nil
}

// violations judges the running pods by what their workload's template requires
// of nodes now, as the scheduler would if they came today.
func violations(w *workload.Workload, pods []*corev1.Pod, nodes map[string]*corev1.Node, policies []string) []Violation {
	var found []Violation
	for _, pod := range pods {
		node := nodes[pod.Spec.NodeName]
		if node == nil || trim.Ended(pod) || pod.DeletionTimestamp != nil {
			continue
		}
		// With several templates a pod is fine if it fits any of them: which one it
		// was made from is the controller's secret.
		reason := ""
		for i := range w.Templates {
			if reason = misplaced(w.Templates[i].Current, node); reason == "" {
				break
			}
		}
		if reason != "" {
			found = append(found, Violation{Pod: pod.Namespace + "/" + pod.Name, Node: node.Name, Reason: reason, Policies: policies})
		}
	}
	slices.SortFunc(found, func(a, b Violation) int { return strings.Compare(a.Pod, b.Pod) })
	return found
}
