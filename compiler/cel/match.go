package cel

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Matches returns the condition that the string which the expression stands for
// is one of the names or matches one of the globs (as path.Match has them). It
// is False for no patterns at all, and a glob that is malformed matches nothing.
//
// The string must have no "/", as names of objects and values of labels have
// none. The expression is repeated, so it should be a variable or a field.
func Matches(expression string, patterns []string) string {
	var literals []string
	var globs []string
	for _, p := range slices.Compact(slices.Sorted(slices.Values(patterns))) {
		if IsGlob(p) {
			globs = append(globs, glob(expression, p))
		} else {
			literals = append(literals, p)
		}
	}
	literal := False
	switch len(literals) {
	case 0:
	case 1:
		literal = expression + " == " + Quote(literals[0])
	default:
		literal = expression + " in " + List(literals)
	}
	return Or(literal, Or(globs...))
}

// IsGlob reports whether a name is a pattern, as path.Match has it.
func IsGlob(name string) bool { return strings.ContainsAny(name, `*?[\`) }

// glob returns the condition for one glob: a method of strings where one says
// it, which costs less than a regular expression.
func glob(expression, pattern string) string {
	inner := strings.Trim(pattern, "*")
	first, last := strings.HasPrefix(pattern, "*"), strings.HasSuffix(pattern, "*")
	method := ""
	switch {
	case IsGlob(inner):
	case inner == "":
		return True
	case first && last:
		method = "contains"
	case first:
		method = "endsWith"
	case last:
		method = "startsWith"
	}
	if method == "" {
		re, err := regularExpression(pattern)
		if err != nil {
			return False
		}
		method, inner = "matches", re
	}
	return fmt.Sprintf("%s.%s(%s)", expression, method, Quote(inner))
}

// LabelsOf returns the labels of the object that the expression stands for, as a
// map that is empty where the object has none.
func LabelsOf(object string) string { return object + ".metadata.?labels.orValue({})" }

// Labels returns the condition that the map has every wanted label with one of
// its values; "*" among the values wants the label to be there, whatever it is.
// The expression is repeated, so it should be a variable (LabelsOf in it).
func Labels[V ~[]string](expression string, want map[string]V) string {
	var conditions []string
	for _, key := range slices.Sorted(maps.Keys(want)) {
		conditions = append(conditions, Label(expression, key, want[key]))
	}
	return And(conditions...)
}

// Label is Labels for one key.
func Label(expression, key string, values []string) string {
	has := Quote(key) + " in " + expression
	if slices.Contains(values, "*") {
		return has
	}
	return And(has, Matches(expression+"["+Quote(key)+"]", values))
}
