package apply

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/internal/workload/ownership"
	"github.com/kubectl-sched/kubectl-sched/policy"
)

// route is how fields get into an object.
type route string

const (
	// byApply is server-side apply: the API server knows whose each field is.
	byApply route = "apply"
	// byPatch is a JSON patch that fails if the object has changed meanwhile: for
	// fields inside lists that the API server treats as one whole, which
	// server-side apply would have to own entirely.
	byPatch route = "patch"
)

// routeFor chooses the route for what the record owns in the workload. Containers
// of the built-in kinds are told apart by their names by the API server, too.
func routeFor(w *workload.Workload, record *ownership.Record) route {
	for _, f := range record.Fields {
		if f.Wrote == nil || throughList(w.Object, f.Path) && (f.Container == "" || !builtin(w.Group)) {
			return byPatch
		}
	}
	return byApply
}

// claim returns the configuration that is applied: who the object is, what is
// ours, and nothing else. The UID makes the API server refuse to create the
// object should it be gone.
func claim(w *workload.Workload, set Set, record *ownership.Record) (*unstructured.Unstructured, error) {
	text, err := record.Encode()
	if err != nil {
		return nil, fmt.Errorf("%s: encode the placement record: %w", w.Ref(), err)
	}
	apiVersion := w.Version
	if w.Group != "" {
		apiVersion = w.Group + "/" + w.Version
	}
	metadata := map[string]any{
		"name":        w.Name,
		"uid":         w.UID,
		"labels":      map[string]any{ownership.SetLabel: set.Label()},
		"annotations": map[string]any{ownership.Annotation: text},
	}
	if w.Namespace != "" {
		metadata["namespace"] = w.Namespace
	}
	object := map[string]any{"apiVersion": apiVersion, "kind": w.Kind, "metadata": metadata}
	for _, f := range record.Fields {
		at := object
		path := f.Path
		if f.Container != "" {
			var err error
			if at, path, err = containerAt(object, f); err != nil {
				return nil, fmt.Errorf("%s: %w", w.Ref(), err)
			}
		}
		if err := setAt(at, path, ownPart(w, f)); err != nil {
			return nil, fmt.Errorf("%s: %w", w.Ref(), err)
		}
	}
	return &unstructured.Unstructured{Object: object}, nil
}

// containerAt returns the entry of a container in the configuration, which is
// made if it is not there, and the pointer of the field below it.
func containerAt(object map[string]any, f ownership.Field) (map[string]any, string, error) {
	steps := splitPointer(f.Path)
	i := slices.IndexFunc(steps, func(s string) bool { return s == "containers" || s == "initContainers" })
	if i < 0 || i+2 >= len(steps) {
		return nil, "", fmt.Errorf("%s: it is no field of a container", f.Path)
	}
	list := policy.Pointer(steps[:i+1]...)
	found, _ := valueAt(object, list)
	containers, _ := found.([]any)
	below := policy.Pointer(steps[i+2:]...)
	for _, c := range containers {
		if entry, ok := c.(map[string]any); ok && entry["name"] == f.Container {
			return entry, below, nil
		}
	}
	if err := setAt(object, list, append(containers, map[string]any{"name": f.Container})); err != nil {
		return nil, "", err
	}
	found, _ = valueAt(object, list)
	containers, _ = found.([]any)
	entry, _ := containers[len(containers)-1].(map[string]any)
	return entry, below, nil
}

// keyedLists are the lists of the built-in kinds whose elements the API server
// tells apart by their keys.
var keyedLists = []workload.Field{workload.SpreadConstraints, workload.SchedulingGates, workload.Env}

func isKeyedList(pointer string) bool {
	return slices.ContainsFunc(keyedLists, func(f workload.Field) bool { return strings.HasSuffix(pointer, "/"+string(f)) })
}

// ownPart is what of the field's value is ours to apply. Elements of lists that
// are told apart by their keys are applied where we added or changed them, and the
// others stay their owners' alone. All other lists are one whole to the API
// server.
func ownPart(w *workload.Workload, f ownership.Field) any {
	if !isKeyedList(f.Path) || !builtin(w.Group) {
		return f.Wrote
	}
	wrote, ok := plain(f.Wrote).([]any)
	if !ok {
		return f.Wrote
	}
	before, _ := plain(f.Before).([]any)
	var ours []any
	for _, element := range wrote {
		if !slices.ContainsFunc(before, func(b any) bool { return same(b, element) }) {
			ours = append(ours, element)
		}
	}
	if len(ours) == 0 {
		// Only their order or number changed: the list as a whole is ours then.
		return wrote
	}
	return ours
}

func builtin(group string) bool { return group == "" || group == "apps" || group == "batch" }
