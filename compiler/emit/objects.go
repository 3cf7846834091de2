package emit

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/internal/objectyaml"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// ObjectsFile is the default name of the file for the objects of our own making
// (PriorityClasses), beside the manifests or in the output folder.
const ObjectsFile = "placement-objects.yaml"

// The objects that we make stand between these two comments, by which they are
// found again: in a file of their own, or at the end of a stream.
const (
	objectsHeader = "# Written by kubectl sched compile from the placement policies. Do not edit:\n" +
		"# objects come and go with the policies that ask for them.\n"
	objectsFooter = "# End of what kubectl sched compile wrote.\n"
)

// ManagedByLabel and ManagedBy mark the objects that we write into manifests.
const (
	ManagedByLabel = "app.kubernetes.io/managed-by"
	ManagedBy      = "kubectl-sched"
)

// Objects returns the objects that the plan makes as YAML, in the plan's order,
// between the comments that mark them as ours; nil if there are none. Those that
// the set has already, from an earlier run, are left out (a kustomization that
// lists ObjectsFile builds them), unless they stand between our comments: such
// are taken out of the manifests. The set may be nil.
func Objects(plan *compiler.Plan, set *workload.Set) ([]byte, error) {
	objects, err := Labelled(plan)
	if err != nil {
		return nil, err
	}
	objects = slices.DeleteFunc(objects, func(o map[string]any) bool { return set != nil && has(set, o) })
	if len(objects) == 0 {
		return nil, nil
	}
	out := []byte(objectsHeader)
	for i, object := range objects {
		text, err := objectyaml.Marshal(object)
		if err != nil {
			return nil, fmt.Errorf("encode an object: %w", err)
		}
		if i > 0 {
			out = append(out, "---\n"...)
		}
		out = append(out, text...)
	}
	return append(out, objectsFooter...), nil
}

// has reports whether the manifests have an object of ours by that name.
func has(set *workload.Set, object map[string]any) bool {
	o := unstructured.Unstructured{Object: object}
	return slices.ContainsFunc(set.Others, func(other *workload.Object) bool {
		there := unstructured.Unstructured{Object: other.Object}
		return there.GroupVersionKind().GroupKind() == o.GroupVersionKind().GroupKind() && there.GetName() == o.GetName() && there.GetNamespace() == o.GetNamespace() &&
			there.GetLabels()[ManagedByLabel] == ManagedBy && !slices.ContainsFunc(set.Files, func(f *workload.File) bool {
			return f.Name == other.Source.File && bytes.Contains(f.Data, []byte(objectsHeader))
		})
	})
}

// Labelled returns the objects that the plan makes as manifests have them: as
// Unstructured, and with ManagedByLabel.
func Labelled(plan *compiler.Plan) ([]map[string]any, error) {
	objects := make([]map[string]any, len(plan.Objects))
	for i, o := range plan.Objects {
		object, err := Unstructured(o)
		if err != nil {
			return nil, err
		}
		if err := unstructured.SetNestedField(object, ManagedBy, "metadata", "labels", ManagedByLabel); err != nil {
			return nil, fmt.Errorf("label an object: %w", err)
		}
		objects[i] = object
	}
	return objects, nil
}

// IsObjectsFile reports whether the text is a file of objects that we wrote,
// and so ours to replace.
func IsObjectsFile(text []byte) bool { return bytes.HasPrefix(text, []byte(objectsHeader)) }

// cutObjects takes the objects that we put at the end of a stream out again.
func cutObjects(text []byte) []byte {
	start := bytes.Index(text, []byte("---\n"+objectsHeader))
	if start < 0 || start > 0 && text[start-1] != '\n' {
		return text
	}
	length := bytes.Index(text[start:], []byte(objectsFooter))
	if length < 0 {
		return text
	}
	return slices.Concat(text[:start], text[start+length+len(objectsFooter):])
}

// Unstructured returns an object of our own making as plain JSON values, with its
// apiVersion and kind and without what only a server writes.
func Unstructured(o compiler.Object) (map[string]any, error) {
	if o.Object == nil || o.Kind() == "" {
		return nil, errors.New("encode an object: it is of no kind that can be written")
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o.Object)
	if err != nil {
		return nil, fmt.Errorf("encode %s %q: %w", o.Kind(), o.Object.GetName(), err)
	}
	return asManifest(object), nil
}

// ObjectsAt returns the file at path, brought to the objects that the plan
// makes: it is made, changed, or taken away if no object is left. Name is the
// file's place below an output folder, and root the folder that path may not
// lead out of. A file at path that we have not written is an Error finding.
func ObjectsAt(plan *compiler.Plan, disk FileSystem, name, path, root string) (File, diag.Findings) {
	f := File{Name: filepath.ToSlash(name), Path: path, Root: root}
	var err error
	if f.After, err = Objects(plan, nil); err != nil {
		return f, diag.Findings{finding("input/encode", path, err.Error())}
	}
	f.Before, err = disk.ReadFile(path)
	f.Before = nonNil(f.Before)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.Before = nil
	case err != nil:
		return f, diag.Findings{finding("input/read", path, err.Error())}
	case !IsObjectsFile(f.Before) && f.After != nil:
		return f, diag.Findings{finding("input/not-ours", path, "this file was not written by kubectl sched and will not be replaced; name another with --objects-file")}
	case !IsObjectsFile(f.Before):
		f.After = f.Before
	}
	return f, nil
}
