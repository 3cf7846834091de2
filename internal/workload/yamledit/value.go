package yamledit

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/internal/workload/plain"
)

// set returns v with the edit made at the path. It copies what it changes and
// shares the rest with v.
func set(v any, path []any, e Edit) (any, error) {
	if len(path) == 0 {
		if e.Delete {
			return nil, fmt.Errorf("the whole document cannot be deleted")
		}
		return normal(e.Value)
	}
	switch step := path[0].(type) {
	case string:
		m, ok := v.(map[string]any)
		if !ok && v != nil {
			return nil, fmt.Errorf("%q leads into a %s, not a map", step, typeName(v))
		}
		child, there := m[step]
		if e.Delete && !there {
			return v, nil
		}
		m = maps.Clone(m)
		if e.Delete && len(path) == 1 {
			delete(m, step)
			return m, nil
		}
		next, err := set(child, path[1:], e)
		if err != nil {
			return nil, err
		}
		if m == nil {
			m = map[string]any{}
		}
		m[step] = next
		return m, nil
	case int:
		list, ok := v.([]any)
		if !ok && v != nil {
			return nil, fmt.Errorf("the index %d leads into a %s, not a list", step, typeName(v))
		}
		if e.Delete && step >= len(list) {
			return v, nil
		}
		if step < 0 || step > len(list) {
			return nil, fmt.Errorf("the index %d is out of range: the list has %d elements", step, len(list))
		}
		if e.Delete && len(path) == 1 {
			return slices.Delete(slices.Clone(list), step, step+1), nil
		}
		var child any
		if step < len(list) {
			child = list[step]
		}
		next, err := set(child, path[1:], e)
		if err != nil {
			return nil, err
		}
		list = slices.Clone(list)
		if step == len(list) {
			return append(list, next), nil
		}
		list[step] = next
		return list, nil
	}
	return nil, fmt.Errorf("a path is made of strings and ints, not of %T", path[0])
}

// normal checks that v is plain JSON, and turns every integer into an int64.
func normal(v any) (any, error) {
	switch v := v.(type) {
	case nil, string, bool, int64, float64:
		return v, nil
	case int:
		return int64(v), nil
	case int32:
		return int64(v), nil
	case map[string]any:
		m := make(map[string]any, len(v))
		for k, e := range v {
			n, err := normal(e)
			if err != nil {
				return nil, err
			}
			m[k] = n
		}
		return m, nil
	case []any:
		list := make([]any, len(v))
		for i, e := range v {
			n, err := normal(e)
			if err != nil {
				return nil, err
			}
			list[i] = n
		}
		return list, nil
	}
	return nil, fmt.Errorf("a value of type %T is not plain JSON", v)
}

func typeName(v any) string {
	switch v.(type) {
	case map[string]any:
		return "map"
	case []any:
		return "list"
	case string:
		return "string"
	case bool:
		return "boolean"
	}
	return "number"
}

// pathString names a path in an error.
func pathString(path []any) string {
	var b strings.Builder
	for i, step := range path {
		switch step := step.(type) {
		case int:
			fmt.Fprintf(&b, "[%d]", step)
		default:
			if i > 0 {
				b.WriteByte('.')
			}
			fmt.Fprint(&b, step)
		}
	}
	return b.String()
}

// step is one step of turning a list into another.
type step struct {
	// old and new are indices into the lists; -1 where there is none: an
	// element that is removed or inserted.
	old, new int
}

// alignLimit is how many pairs of elements are compared at most.
const alignLimit = 1 << 20

// align finds the steps that keep as much as possible of the old elements: the
// equal ones, then those that resemble each other.
func align(old, wanted []any) []step {
	first := 0
	for first < len(old) && first < len(wanted) && plain.Equal(old[first], wanted[first]) {
		first++
	}
	last := 0
	for last < len(old)-first && last < len(wanted)-first && plain.Equal(old[len(old)-1-last], wanted[len(wanted)-1-last]) {
		last++
	}
	var steps []step
	for i := range first {
		steps = append(steps, step{i, i})
	}
	o, n := old[first:len(old)-last], wanted[first:len(wanted)-last]
	var matches []step
	if len(o)*len(n) <= alignLimit {
		matches = bestMatches(o, n)
	}
	i, j := 0, 0
	for _, m := range append(matches, step{len(o), len(n)}) {
		for i < m.old || j < m.new {
			s := step{-1, -1}
			if i < m.old {
				s.old = first + i
				i++
			}
			if j < m.new {
				s.new = first + j
				j++
			}
			steps = append(steps, s)
		}
		if i < len(o) && j < len(n) {
			steps = append(steps, step{first + i, first + j})
			i, j = i+1, j+1
		}
	}
	for k := last; k > 0; k-- {
		steps = append(steps, step{len(old) - k, len(wanted) - k})
	}
	return steps
}

// bestMatches returns the pairs, in order, whose likeness adds up to the most.
func bestMatches(o, n []any) []step {
	like := make([][]int, len(o))
	best := make([][]int, len(o)+1)
	best[len(o)] = make([]int, len(n)+1)
	for i := len(o) - 1; i >= 0; i-- {
		like[i] = make([]int, len(n))
		best[i] = make([]int, len(n)+1)
		for j := len(n) - 1; j >= 0; j-- {
			like[i][j] = likeness(o[i], n[j])
			best[i][j] = max(best[i+1][j], best[i][j+1])
			if like[i][j] > 0 {
				best[i][j] = max(best[i][j], best[i+1][j+1]+like[i][j])
			}
		}
	}
	var matches []step
	for i, j := 0, 0; i < len(o) && j < len(n); {
		switch {
		case like[i][j] > 0 && best[i][j] == best[i+1][j+1]+like[i][j]:
			matches = append(matches, step{i, j})
			i, j = i+1, j+1
		case best[i][j] == best[i+1][j]:
			i++
		default:
			j++
		}
	}
	return matches
}

// likeness is 1000 for equal values, and less for maps that share entries.
func likeness(a, b any) int {
	if plain.Equal(a, b) {
		return 1000
	}
	m, ok := a.(map[string]any)
	n, ok2 := b.(map[string]any)
	if !ok || !ok2 {
		return 0
	}
	same := 0
	for k, v := range m {
		if w, ok := n[k]; ok && plain.Equal(v, w) {
			same++
		}
	}
	return 500 * same / max(1, len(m), len(n))
}
