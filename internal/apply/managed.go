package apply

import (
	"bytes"
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-sched/kubectl-sched/internal/workload/ownership"
	"github.com/kubectl-sched/kubectl-sched/policy"
)

// releaseOps take everything of ours out of the metadata of the object: our
// label, our annotation, and the entries of our field manager, so that nothing
// is left that says it was ever ours. They change no generation.
//
// The last entry of managedFields must not go: an empty list means to the API
// server that tracking starts anew, with a strange manager owning everything.
func releaseOps(object map[string]any, manager string) []operation {
	u := &unstructured.Unstructured{Object: object}
	var ops []operation
	ops = append(ops, dropKey(u.GetLabels(), "labels", ownership.SetLabel)...)
	ops = append(ops, dropKey(u.GetAnnotations(), "annotations", ownership.Annotation)...)
	return append(ops, disownOps(object, manager)...)
}

// letGoOps take the fields at the pointers out of what our field manager owns in
// the object; their values stay.
func letGoOps(object map[string]any, pointers []string, manager string) ([]operation, error) {
	gone := fieldpath.NewSet()
	for _, p := range pointers {
		var path fieldpath.Path
		for _, step := range splitPointer(p) {
			path = append(path, fieldpath.PathElement{FieldName: &step})
		}
		gone.Insert(path)
	}
	u := &unstructured.Unstructured{Object: object}
	entries := u.GetManagedFields()
	for i, entry := range entries {
		if entry.Manager != manager || entry.Subresource != "" || entry.FieldsV1 == nil {
			continue
		}
		set := &fieldpath.Set{}
		if err := set.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes())); err != nil {
			return nil, fmt.Errorf("read managedFields: %w", err)
		}
		rest, err := set.RecursiveDifference(gone).ToJSON()
		if err != nil {
			return nil, fmt.Errorf("write managedFields: %w", err)
		}
		entries[i].FieldsV1 = metav1.NewFieldsV1(string(rest))
	}
	return []operation{{Op: "replace", Path: "/metadata/managedFields", Value: entries}}, nil
}

// dropKey removes one key of a map in the metadata, and the map with its last.
func dropKey(m map[string]string, field, key string) []operation {
	switch _, ok := m[key]; {
	case !ok:
		return nil
	case len(m) == 1:
		return []operation{{Op: "remove", Path: policy.Pointer("metadata", field)}}
	default:
		return []operation{{Op: "remove", Path: policy.Pointer("metadata", field, key)}}
	}
}

// disownOps remove our own entries in managedFields.
func disownOps(object map[string]any, manager string) []operation {
	u := &unstructured.Unstructured{Object: object}
	entries := u.GetManagedFields()
	kept := []any{}
	for _, entry := range entries {
		if entry.Manager == manager && entry.Subresource == "" {
			continue
		}
		value, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&entry)
		if err != nil {
			// An entry that came from the API server converts back.
			return nil
		}
		kept = append(kept, value)
	}
	if len(kept) == len(entries) {
		return nil
	}
	if len(kept) == 0 {
		kept = append(kept, map[string]any{})
	}
	return []operation{{Op: "replace", Path: "/metadata/managedFields", Value: kept}}
}

// withMetadata returns a copy of the object with one label and one annotation
// set, sharing the rest.
func withMetadata(object map[string]any, label, annotation string) map[string]any {
	object = maps.Clone(object)
	metadata, _ := object["metadata"].(map[string]any)
	object["metadata"] = maps.Clone(metadata)
	u := &unstructured.Unstructured{Object: object}
	labels := u.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[ownership.SetLabel] = label
	u.SetLabels(labels)
	annotations := u.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[ownership.Annotation] = annotation
	u.SetAnnotations(annotations)
	return object
}

// withoutAnnotation returns a copy of the object without our annotation, sharing
// the rest.
func withoutAnnotation(object map[string]any) map[string]any {
	object = maps.Clone(object)
	metadata, _ := object["metadata"].(map[string]any)
	object["metadata"] = maps.Clone(metadata)
	u := &unstructured.Unstructured{Object: object}
	annotations := u.GetAnnotations()
	delete(annotations, ownership.Annotation)
	u.SetAnnotations(annotations)
	return object
}
