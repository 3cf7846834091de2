// Package plain holds what is true of plain JSON values: nil, bool, string,
// int64, float64, []any and map[string]any, nested. It must not know where they
// come from or what they mean.
package plain

import (
	"fmt"
	"slices"
)

// Describe names a value for people: "a map", "the string "x"".
func Describe(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case map[string]any:
		return "a map"
	case []any:
		return "a list"
	case string:
		return fmt.Sprintf("the string %q", v)
	}
	return fmt.Sprint(v)
}

// Equal reports whether two plain JSON values are the same. Numbers are equal
// by value, whether they are int64 or float64.
func Equal(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		m, ok := b.(map[string]any)
		if !ok || len(a) != len(m) {
			return false
		}
		for k, v := range a {
			w, ok := m[k]
			if !ok || !Equal(v, w) {
				return false
			}
		}
		return true
	case []any:
		list, ok := b.([]any)
		return ok && slices.EqualFunc(a, list, Equal)
	case int64:
		if f, ok := b.(float64); ok {
			return float64(a) == f
		}
	case float64:
		if i, ok := b.(int64); ok {
			return a == float64(i)
		}
	}
	return a == b
}
