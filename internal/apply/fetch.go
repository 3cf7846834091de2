package apply

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/internal/workload/ownership"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// items returns the workloads that may hold fields of the set: those of the
// revisions in force, the newest word on each, in the order of the revisions.
func (s *State) items() []Item {
	index := map[types.UID]int{}
	var items []Item
	for _, r := range s.inForce() {
		for _, item := range r.Items {
			if i, ok := index[item.UID]; ok {
				items[i] = item
				continue
			}
			index[item.UID] = len(items)
			items = append(items, item)
		}
	}
	return items
}

// fetch reads the object of an item as it is now; nil if there is none, or if
// its kind is no longer served.
func (a *Applier) fetch(ctx context.Context, item Item, records map[types.UID]*ownership.Record) (*workload.Workload, diag.Findings, error) {
	mapping, err := a.Client.Resource(item.groupKind(), item.Version)
	if meta.IsNoMatchError(err) {
		mapping, err = a.Client.Resource(item.groupKind(), "")
	}
	if meta.IsNoMatchError(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", item.Ref(), err)
	}
	u, err := a.Client.Interface(mapping, item.Namespace).Get(ctx, item.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", item.Ref(), err)
	}
	w, findings := a.Client.Workload(u, a.Kinds, records)
	return w, findings, nil
}

// again reads a workload anew. It is an error if the object is gone or is
// another one of the same name.
func (a *Applier) again(ctx context.Context, w *workload.Workload) (*workload.Workload, error) {
	item := Item{Group: w.Group, Version: w.Version, Kind: w.Kind, Namespace: w.Namespace, Name: w.Name}
	var records map[types.UID]*ownership.Record
	if w.Remembered {
		records = map[types.UID]*ownership.Record{types.UID(w.UID): w.Record}
	}
	now, findings, err := a.fetch(ctx, item, records)
	switch {
	case err != nil:
		return nil, err
	case findings.HasErrors():
		return nil, findings
	case now == nil:
		return nil, &overtakenError{subject: w.Ref(), message: "it was deleted meanwhile"}
	case now.UID != w.UID:
		return nil, &overtakenError{subject: w.Ref(), message: "it was deleted and made anew meanwhile; run the command again"}
	}
	return now, nil
}

// resource returns the client for the workload's own object.
func (a *Applier) resource(w *workload.Workload) (dynamic.ResourceInterface, error) {
	item := Item{Group: w.Group, Kind: w.Kind}
	mapping, err := a.Client.Resource(item.groupKind(), w.Version)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", w.Ref(), err)
	}
	return a.Client.Interface(mapping, w.Namespace), nil
}
