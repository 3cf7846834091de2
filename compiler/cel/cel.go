// Package cel writes the Common Expression Language: it maps what policies say
// (names, globs, labels) to the text of expressions as the API server's
// admission policies evaluate them.
//
// What it returns is text, and each function says what must be true of the text
// that it is given. It must not know policies, nor what an expression is for.
package cel

import (
	"strconv"
	"strings"
)

// The constants of the type bool, which And and Or simplify.
const (
	True  = "true"
	False = "false"
)

// Quote returns the literal of a string. Bytes that are no UTF-8 become U+FFFD.
func Quote(s string) string { return strconv.Quote(strings.ToValidUTF8(s, "\uFFFD")) }

// List returns the literal of a list of strings, in the order given.
func List(texts []string) string {
	quoted := make([]string, len(texts))
	for i, t := range texts {
		quoted[i] = Quote(t)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// And returns the conjunction of conditions; True of none. Operands are put into
// parentheses where their own operators bind less.
func And(conditions ...string) string { return join(" && ", True, False, conditions) }

// Or returns the disjunction of conditions; False of none.
func Or(conditions ...string) string { return join(" || ", False, True, conditions) }

// Not returns the negation of a condition.
func Not(condition string) string {
	switch condition {
	case True:
		return False
	case False:
		return True
	}
	return "!" + parenthesise(condition, anyOperator)
}

// If returns what the condition chooses: then or otherwise, which must be of one
// type.
func If(condition, then, otherwise string) string {
	switch condition {
	case True:
		return then
	case False:
		return otherwise
	}
	ternary := func(c byte) bool { return c == '?' }
	return parenthesise(condition, ternary) + " ? " + parenthesise(then, ternary) + " : " + parenthesise(otherwise, ternary)
}

// join links conditions by an operator. The neutral constant is left out, and the
// dominant one decides alone.
func join(operator, neutral, dominant string, conditions []string) string {
	var operands []string
	for _, c := range conditions {
		switch c {
		case neutral:
		case dominant:
			return dominant
		default:
			operands = append(operands, c)
		}
	}
	switch len(operands) {
	case 0:
		return neutral
	case 1:
		return operands[0]
	}
	own := operator[1]
	for i, o := range operands {
		operands[i] = parenthesise(o, func(c byte) bool { return c == '?' || (c == '|' || c == '&') && c != own })
	}
	return strings.Join(operands, operator)
}

// anyOperator reports whether a character outside brackets and literals may be
// an operator that binds less than a negation.
func anyOperator(c byte) bool { return strings.IndexByte("?&|=!<>+-*/% ", c) >= 0 }

// parenthesise puts text into parentheses if a character that is loose stands in
// it outside brackets and literals. The "?" of an optional field (".?x", "[?x]")
// is no operator.
func parenthesise(text string, loose func(c byte) bool) string {
	depth, previous := 0, byte(0)
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '"' || c == '\'':
			for i++; i < len(text) && text[i] != c; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case strings.IndexByte("([{", c) >= 0:
			depth++
		case strings.IndexByte(")]}", c) >= 0:
			depth--
		case depth == 0 && loose(c) && (c != '?' || previous != '.'):
			return "(" + text + ")"
		}
		previous = c
	}
	return text
}
