package admission

import (
	"regexp"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// The API server prepares every variable of a policy anew for each kind of its
// expressions and each pass, and each use of one is a look-up by name with a
// regular expression in it. That comes to a fifth of what a policy costs, so what
// only one place uses stands in that place.

// macros are the calls that evaluate an argument once for each element.
var macros = []string{
	"all", "exists", "exists_one", "existsOne", "filter", "map", "optFlatMap", "optMap", "sortBy", "transformList", "transformMap", "transformMapEntry",
}

const nameCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789"

// inline puts variables that one place alone uses into that place, among the other
// variables and the expressions, and returns the variables that are left. What is
// worked out stays a variable where it would be worked out again for each element;
// a constant is none the dearer for it, and a short one goes to all its places. So
// does what is another variable by another name, or an element of one.
func inline(variables []admissionregistrationv1.Variable, expressions ...*string) []admissionregistrationv1.Variable {
	variables = slices.Clone(variables)
	for i := 0; i < len(variables); {
		v := variables[i]
		name := "variables." + v.Name
		var user *string
		var at, uses int
		find := func(text *string) {
			for from := 0; ; {
				found := strings.Index((*text)[from:], name)
				if found < 0 {
					return
				}
				from += found + len(name)
				if from < len(*text) && strings.IndexByte(nameCharacters, (*text)[from]) >= 0 {
					continue // It is the beginning of another name.
				}
				user, at = text, from-len(name)
				uses++
			}
		}
		for j := i + 1; j < len(variables); j++ {
			find(&variables[j].Expression)
		}
		for _, e := range expressions {
			find(e)
		}
		if alias(v.Expression) || constant(v.Expression) && uses > 1 && uses*len(v.Expression) <= maxInline {
			everywhere := func(text *string) {
				*text = replaceVariables(*text, func(name string) string {
					if name == v.Name {
						return v.Expression
					}
					return "variables." + name
				})
			}
			variables = slices.Delete(variables, i, i+1)
			for j := range variables[i:] {
				everywhere(&variables[i+j].Expression)
			}
			for _, e := range expressions {
				everywhere(e)
			}
			continue
		}
		if uses != 1 || len(*user)+len(v.Expression) > maxExpression || !constant(v.Expression) && repeated((*user)[:at]) {
			i++
			continue
		}
		*user = (*user)[:at] + operand(v.Expression) + (*user)[at+len(name):]
		variables = slices.Delete(variables, i, i+1)
	}
	return variables
}

// operand returns the expression so that it can stand anywhere.
func operand(expression string) string {
	if constant(expression) || strings.HasPrefix(expression, "variables.") && !strings.ContainsAny(expression, " \n") {
		return expression
	}
	return "(" + expression + ")"
}

// constant reports whether the expression is a list or a map of literals alone,
// which the API server makes once, when it compiles. A literal may be made dyn.
func constant(expression string) bool {
	if expression == "" || !strings.ContainsAny(expression[:1], "[{") {
		return false
	}
	expression = withoutDyn(expression)
	depth, literal := 0, true
	scan(expression, func(i int) {
		switch c := expression[i]; {
		case strings.IndexByte("[{", c) >= 0:
			depth++
		case strings.IndexByte("]}", c) >= 0:
			if depth--; depth == 0 && i < len(expression)-1 {
				literal = false
			}
		case strings.IndexByte(" \n,:-0123456789", c) < 0:
			literal = false
		}
	})
	return literal
}

// withoutDyn takes away the calls that make a literal dyn: outside of strings none
// of a list of literals is followed by anything but their arguments.
func withoutDyn(expression string) string {
	var b strings.Builder
	last := 0
	scan(expression, func(i int) {
		if strings.HasPrefix(expression[i:], "dyn(") {
			b.WriteString(expression[last:i])
			last = i + len("dyn(")
		} else if expression[i] == ')' {
			b.WriteString(expression[last:i])
			last = i + 1
		}
	})
	return b.String() + expression[last:]
}

// repeated reports whether what follows the text is within an argument of a
// macro.
func repeated(before string) bool {
	var open []bool
	scan(before, func(i int) {
		switch before[i] {
		case '(':
			call := strings.TrimRight(before[:i], nameCharacters)
			open = append(open, strings.HasSuffix(call, ".") && slices.Contains(macros, before[len(call):i]))
		case '[', '{':
			open = append(open, false)
		case ')', ']', '}':
			open = open[:len(open)-1]
		}
	})
	return slices.Contains(open, true)
}

// scan calls f with the place of each character outside of strings.
func scan(expression string, f func(i int)) {
	for i := 0; i < len(expression); i++ {
		if expression[i] != '"' {
			f(i)
			continue
		}
		for i++; i < len(expression) && expression[i] != '"'; i++ {
			if expression[i] == '\\' {
				i++
			}
		}
	}
}

// alias reports whether the expression is another variable, or an element of one at
// a fixed place.
func alias(expression string) bool { return aliased.MatchString(expression) }

var aliased = regexp.MustCompile(`^variables\.[a-zA-Z_0-9]+(\[[0-9]+\])?$`)

// replaceVariables returns the expression with each use of a variable replaced.
func replaceVariables(expression string, by func(name string) string) string {
	var b strings.Builder
	last := 0
	scan(expression, func(i int) {
		if i < last || !strings.HasPrefix(expression[i:], "variables.") || i > 0 && strings.IndexByte(nameCharacters+".", expression[i-1]) >= 0 {
			return
		}
		end := i + len("variables.")
		for end < len(expression) && strings.IndexByte(nameCharacters, expression[end]) >= 0 {
			end++
		}
		b.WriteString(expression[last:i])
		b.WriteString(by(expression[i+len("variables.") : end]))
		last = end
	})
	return b.String() + expression[last:]
}
