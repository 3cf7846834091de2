package nodeexpr

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// Requirement is one requirement of the API, with its values sorted and without
// repetitions.
type Requirement struct {
	Key      Key
	Operator corev1.NodeSelectorOperator
	Values   []string
}

// Requirements returns the requirements of a term, labels before fields, in the
// order in which they stand.
func Requirements(t corev1.NodeSelectorTerm) []Requirement {
	var out []Requirement
	for _, r := range t.MatchExpressions {
		out = append(out, Requirement{Label(r.Key), r.Operator, sorted(r.Values)})
	}
	for _, r := range t.MatchFields {
		out = append(out, Requirement{Key{Field: true, Name: r.Key}, r.Operator, sorted(r.Values)})
	}
	return out
}

// api returns the requirement as the API has it.
func (r Requirement) api() corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: r.Key.Name, Operator: r.Operator, Values: slices.Clone(r.Values)}
}

func (r Requirement) compare(o Requirement) int {
	return cmp.Or(r.Key.compare(o.Key), cmp.Compare(r.Operator, o.Operator), slices.Compare(r.Values, o.Values))
}

// number is what the comparing operators take for a number when two
// requirements are compared: the integers of up to 18 digits, which never
// overflow.
var number = regexp.MustCompile(`^-?[0-9]{1,18}$`)

// Implies reports whether every node that meets r meets o, as far as a
// comparison of the two alone, without any arithmetic beyond "larger", can tell.
// The expressions of admission policies carry out this very rule.
func (r Requirement) Implies(o Requirement) bool {
	if r.Key != o.Key {
		return false
	}
	if r.compare(o) == 0 {
		return true
	}
	in := r.Operator == corev1.NodeSelectorOpIn
	switch o.Operator {
	case corev1.NodeSelectorOpIn:
		return in && within(r.Values, o.Values)
	case corev1.NodeSelectorOpNotIn:
		return in && !slices.ContainsFunc(r.Values, func(v string) bool { return slices.Contains(o.Values, v) }) ||
			r.Operator == corev1.NodeSelectorOpNotIn && within(o.Values, r.Values) ||
			r.Operator == corev1.NodeSelectorOpDoesNotExist
	case corev1.NodeSelectorOpExists:
		return in || r.Operator == corev1.NodeSelectorOpGt || r.Operator == corev1.NodeSelectorOpLt
	case corev1.NodeSelectorOpGt:
		return in && r.allNumbers(func(n int64) bool { return n > o.bound() }) || r.Operator == o.Operator && r.allNumbers(func(n int64) bool { return n >= o.bound() })
	case corev1.NodeSelectorOpLt:
		return in && r.allNumbers(func(n int64) bool { return n < o.bound() }) || r.Operator == o.Operator && r.allNumbers(func(n int64) bool { return n <= o.bound() })
	default:
		return false
	}
}

func within(a, b []string) bool {
	return !slices.ContainsFunc(a, func(v string) bool { return !slices.Contains(b, v) })
}

// allNumbers reports whether all values are numbers for which the condition holds.
func (r Requirement) allNumbers(holds func(int64) bool) bool {
	return !slices.ContainsFunc(r.Values, func(v string) bool {
		n, err := strconv.ParseInt(v, 10, 64)
		return err != nil || !number.MatchString(v) || !holds(n)
	})
}

// bound is the number that a comparing requirement of ours compares with.
func (r Requirement) bound() int64 {
	n, err := strconv.ParseInt(r.Values[0], 10, 64)
	if err != nil {
		return 0
	}
	return n
}
