package apply

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-sched/kubectl-sched/internal/workload"
)

// objectDrifts compares the objects of our making with what the revision left.
func (a *Applier) objectDrifts(ctx context.Context, set Set, revision *Revision) ([]Drift, error) {
	var drifts []Drift
	for _, item := range revision.Objects {
		wanted := item.unstructured()
		mapping, err := a.Client.Resource(wanted.GroupVersionKind().GroupKind(), "")
		if meta.IsNoMatchError(err) {
			drifts = append(drifts, Drift{Subject: item.Ref(), Message: "the API server does not serve its kind any more"})
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look up %s: %w", item.Ref(), err)
		}
		live, err := a.Client.Interface(mapping, wanted.GetNamespace()).Get(ctx, wanted.GetName(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			drifts = append(drifts, Drift{Subject: item.Ref(), Message: "it does not exist any more; apply again"})
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", item.Ref(), err)
		}
		drifts = append(drifts, objectDrift(set, item, live, a.manager())...)
	}
	return drifts, nil
}

// objectDrift compares one object with what was written.
func objectDrift(set Set, item ObjectItem, live *unstructured.Unstructured, manager string) []Drift {
	subject, wanted := item.Ref(), item.unstructured()
	if live.GetLabels()[applySetPartOf] != set.ApplySetID() {
		return []Drift{{Subject: subject, Field: ".metadata.labels[" + applySetPartOf + "]", Message: "the label by which it is the set's was stripped or changed"}}
	}
	var drifts []Drift
	for _, path := range objectFields(item.Object) {
		want, _ := valueAt(item.Object, pointer(path))
		got, _ := valueAt(live.Object, pointer(path))
		if covers(got, want, "") {
			continue
		}
		drifts = append(drifts, Drift{
			Subject: subject, Field: fieldOfPointer(pointer(path)), Message: "it was changed since the set was applied; apply again",
			By: fieldOwners(live.Object, pointer(path), manager),
		})
	}
	for _, marks := range []struct {
		field      string
		want, live map[string]string
	}{{"labels", wanted.GetLabels(), live.GetLabels()}, {"annotations", wanted.GetAnnotations(), live.GetAnnotations()}} {
		for _, key := range slices.Sorted(maps.Keys(marks.want)) {
			if marks.live[key] != marks.want[key] {
				drifts = append(drifts, Drift{Subject: subject, Field: fmt.Sprintf(".metadata.%s[%s]", marks.field, key), Message: "it was changed since the set was applied; apply again"})
			}
		}
	}
	if managers := addedByOthers(live, manager); len(managers) > 0 && len(drifts) == 0 {
		drifts = append(drifts, Drift{Subject: subject, Message: "something was added to it; apply again to take that out", By: managers})
	}
	return drifts
}

// objectFields returns the paths of the fields that are compared one by one:
// those of the spec, or, for kinds without one, of the object.
func objectFields(object map[string]any) []workload.Path {
	fields, in := body(object), workload.Path{}
	delete(fields, "apiVersion")
	delete(fields, "kind")
	if spec, ok := fields["spec"].(map[string]any); ok {
		fields, in = spec, workload.Path{"spec"}
	}
	var paths []workload.Path
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		paths = append(paths, append(slices.Clone(in), name))
	}
	return paths
}
