package apply

import (
	"maps"
	"slices"
	"strconv"

	"github.com/kubectl-sched/kubectl-sched/policy"
)

// operation is one operation of a JSON patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// atVersion is the test that makes the patch fail if the object is no longer
// the one that it was computed from.
func atVersion(resourceVersion string) operation {
	return operation{Op: "test", Path: "/metadata/resourceVersion", Value: resourceVersion}
}

// difference returns the operations that turn one value into the other. Lists
// of equal length are compared element by element, others are replaced whole.
func difference(from, to any, at ...string) []operation {
	switch f := from.(type) {
	case map[string]any:
		t, ok := to.(map[string]any)
		if !ok {
			break
		}
		var ops []operation
		for _, key := range slices.Sorted(maps.Keys(f)) {
			path := append(slices.Clone(at), key)
			if next, ok := t[key]; ok {
				ops = append(ops, difference(f[key], next, path...)...)
			} else {
				ops = append(ops, operation{Op: "remove", Path: policy.Pointer(path...)})
			}
		}
		for _, key := range slices.Sorted(maps.Keys(t)) {
			if _, ok := f[key]; !ok {
				ops = append(ops, operation{Op: "add", Path: policy.Pointer(append(slices.Clone(at), key)...), Value: t[key]})
			}
		}
		return ops
	case []any:
		t, ok := to.([]any)
		if !ok || len(f) != len(t) || !slices.ContainsFunc(f, isMap) {
			break
		}
		var ops []operation
		for i := range f {
			ops = append(ops, difference(f[i], t[i], append(slices.Clone(at), strconv.Itoa(i))...)...)
		}
		return ops
	}
	if same(from, to) {
		return nil
	}
	return []operation{{Op: "replace", Path: policy.Pointer(at...), Value: to}}
}

func isMap(v any) bool { _, ok := v.(map[string]any); return ok }

// bodyDifference is difference for two objects without their metadata and
// status, which are never changed along with the body.
func bodyDifference(from, to map[string]any) []operation {
	return difference(body(from), body(to))
}

func body(object map[string]any) map[string]any {
	rest := maps.Clone(object)
	delete(rest, "metadata")
	delete(rest, "status")
	return rest
}
