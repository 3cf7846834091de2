package apply

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/internal/workload/ownership"
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

// routeFor chooses the route for what the record owns in the object.
func routeFor(object map[string]any, record *ownership.Record) route {
	for _, f := range record.Fields {
		if f.Wrote == nil || throughList(object, f.Path) {
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
		if err := setAt(object, f.Path, ownPart(w, f)); err != nil {
			return nil, fmt.Errorf("%s: %w", w.Ref(), err)
		}
	}
	return &unstructured.Unstructured{Object: object}, nil
}

// ownPart is what of the field's value is ours to apply. Spread constraints of
// the built-in kinds are told apart by their keys, so that only those that we
// added or changed are applied and the others stay their owners' alone. All
// other lists are one whole to the API server.
func ownPart(w *workload.Workload, f ownership.Field) any {
	if !strings.HasSuffix(f.Path, "/"+string(workload.SpreadConstraints)) || !builtin(w.Group) {
		return f.Wrote
	}
	wrote, ok := plain(f.Wrote).([]any)
	if !ok {
		return f.Wrote
	}
	before, _ := plain(f.Before).([]any)
	var ours []any
	for _, constraint := range wrote {
		if !slices.ContainsFunc(before, func(b any) bool { return same(b, constraint) }) {
			ours = append(ours, constraint)
		}
	}
	if len(ours) == 0 {
		// Only their order or number changed: the list as a whole is ours then.
		return wrote
	}
	return ours
}

func builtin(group string) bool { return group == "" || group == "apps" || group == "batch" }
