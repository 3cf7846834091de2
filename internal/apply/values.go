package apply

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	wholenumbers "k8s.io/apimachinery/pkg/util/json"

	"github.com/kubectl-sched/kubectl-sched/policy"
)

// same reports whether two JSON values are equal, whatever Go types their
// numbers have. Nil equals nil alone.
func same(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// splitPointer returns the steps of a JSON pointer.
func splitPointer(pointer string) []string {
	if pointer == "" {
		return nil
	}
	steps := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i, step := range steps {
		steps[i] = strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
	}
	return steps
}

// valueAt returns the value at the JSON pointer; false if there is none.
func valueAt(object any, pointer string) (any, bool) {
	for _, step := range splitPointer(pointer) {
		switch node := object.(type) {
		case map[string]any:
			next, ok := node[step]
			if !ok {
				return nil, false
			}
			object = next
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(node) {
				return nil, false
			}
			object = node[i]
		default:
			return nil, false
		}
	}
	return object, true
}

// throughList reports whether the pointer leads through a list of the object.
func throughList(object any, pointer string) bool {
	for _, step := range splitPointer(pointer) {
		switch node := object.(type) {
		case map[string]any:
			object = node[step]
		case []any:
			return true
		default:
			return false
		}
	}
	return false
}

// setAt sets the value at the pointer, all of whose parents are maps, and makes
// the parents that are missing.
func setAt(object map[string]any, pointer string, value any) error {
	steps := splitPointer(pointer)
	for _, step := range steps[:len(steps)-1] {
		next, ok := object[step]
		if !ok {
			next = map[string]any{}
			object[step] = next
		}
		if object, ok = next.(map[string]any); !ok {
			return fmt.Errorf("%s: %q is not a map", pointer, step)
		}
	}
	object[steps[len(steps)-1]] = runtime.DeepCopyJSONValue(plain(value))
	return nil
}

// plain returns the value with the number types that runtime.DeepCopyJSONValue
// knows, and typed values as maps and lists.
func plain(value any) any {
	switch value.(type) {
	case nil, bool, string, int64, float64:
		return value
	}
	data, err := json.Marshal(value)
	if err != nil {
		return value
	}
	var out any
	if err := wholenumbers.Unmarshal(data, &out); err != nil {
		return value
	}
	return out
}

// pointer returns the JSON pointer of a path whose steps are strings and ints.
func pointer(path []any) string {
	steps := make([]string, len(path))
	for i, step := range path {
		steps[i] = fmt.Sprint(step)
	}
	return policy.Pointer(steps...)
}

// withValue returns a copy of the object in which the value at the pointer is
// another, or gone for nil. It shares all that stays the same. Maps on the way
// that are missing are made; a list element that is missing is an error.
func withValue(object map[string]any, at string, value any) (map[string]any, error) {
	changed, err := replaced(object, splitPointer(at), plain(value))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	m, ok := changed.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s: not a field", at)
	}
	return m, nil
}

func replaced(node any, steps []string, value any) (any, error) {
	if len(steps) == 0 {
		return value, nil
	}
	switch n := node.(type) {
	case nil:
		if value == nil {
			return nil, nil
		}
		child, err := replaced(nil, steps[1:], value)
		return map[string]any{steps[0]: child}, err
	case map[string]any:
		child, err := replaced(n[steps[0]], steps[1:], value)
		if err != nil {
			return nil, err
		}
		changed := maps.Clone(n)
		if changed[steps[0]] = child; child == nil {
			delete(changed, steps[0])
		}
		return changed, nil
	case []any:
		i, err := strconv.Atoi(steps[0])
		if err != nil || i < 0 || i >= len(n) {
			return nil, fmt.Errorf("the list has no element %s any more", steps[0])
		}
		child, err := replaced(n[i], steps[1:], value)
		if err != nil {
			return nil, err
		}
		changed := slices.Clone(n)
		changed[i] = child
		return changed, nil
	}
	return nil, fmt.Errorf("%q is not in a map or a list", steps[0])
}
