package cluster

import (
	"bytes"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-sched/kubectl-sched/internal/workload"
)

// FieldOwners returns the names of the field managers that own the field at the
// path of the live object, anything in it, or the whole of what it is in;
// sorted, each once. A path that leads into a list counts as the list.
func FieldOwners(object map[string]any, path workload.Path) []string {
	return owners(object, path, func(metav1.ManagedFieldsEntry) bool { return true })
}

// FieldAppliers is FieldOwners without those who wrote the whole object and so own
// also what the API server filled in: those alone who said the field by server-side
// apply.
func FieldAppliers(object map[string]any, path workload.Path) []string {
	return owners(object, path, func(e metav1.ManagedFieldsEntry) bool { return e.Operation == metav1.ManagedFieldsOperationApply })
}

func owners(object map[string]any, path workload.Path, counts func(metav1.ManagedFieldsEntry) bool) []string {
	var at fieldpath.Path
	for _, step := range path {
		key, ok := step.(string)
		if !ok {
			break
		}
		at = append(at, fieldpath.PathElement{FieldName: &key})
	}
	var owners []string
	for _, entry := range (&unstructured.Unstructured{Object: object}).GetManagedFields() {
		if counts(entry) && owns(entry, at) {
			owners = append(owners, entry.Manager)
		}
	}
	slices.Sort(owners)
	return slices.Compact(owners)
}

func owns(entry metav1.ManagedFieldsEntry, at fieldpath.Path) bool {
	if entry.FieldsV1 == nil {
		return false
	}
	set := &fieldpath.Set{}
	if err := set.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes())); err != nil {
		return false
	}
	if set.Has(at) {
		return true
	}
	within := set
	for i, element := range at {
		// An ancestor that is owned and has nothing below it is an atomic whole.
		next := within.WithPrefix(element)
		if i < len(at)-1 && within.Members.Has(element) && next.Empty() {
			return true
		}
		within = next
	}
	return !within.Empty()
}

// templateManagers returns the managers of the pod specs of the workload.
func templateManagers(w *workload.Workload) []string {
	var managers []string
	for i := range w.Templates {
		if path := w.Templates[i].PodSpec; path != nil {
			managers = append(managers, FieldOwners(w.Object, path)...)
		}
		for _, path := range w.Templates[i].Paths {
			managers = append(managers, FieldOwners(w.Object, path)...)
		}
	}
	slices.Sort(managers)
	return slices.Compact(managers)
}
