package admission

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kubectl-sched/kubectl-sched/compiler/cel"
)

// The API server asks again, as our own change makes it do, and nearly always
// finds a pod to which nothing was done since. A mutation without an operation
// costs it nearly as much as one with many: it writes the pod out, reads it again,
// fills in defaults and compares. Where a match condition says no, it does not.

// settling is a condition under which the place policy may still have something to
// do, besides those of the mark: it is asked for pods that the policy has marked.
// It must not say no where there is something, and may say yes where there is
// nothing; so what takes long to find out counts as something.
func (p *program) settling(may string) { p.unsettled = append(p.unsettled, may) }

// costly adds what takes long to find out: the pod may be unsettled where the
// condition holds, whatever the changes are that are added.
func (p *program) costly(may string, add func()) {
	p.settling(may)
	p.unasked = true
	add()
	p.unasked = false
}

// unsettledCondition leaves out, besides those of conditions, pods that the place
// policy has placed in this very request, and that nothing was done to since which
// concerns it. At first no pod is left out, but one that comes with the very mark
// that it would get, and with all that it would get. Nothing is left out of
// DaemonSets: theirs are stored with their marks. False where the condition cannot
// be said: it may not see the labels of the namespace.
func (s Set) unsettledCondition(p *program, content string) (admissionregistrationv1.MatchCondition, bool) {
	prefix := cel.Quote(content + " ")
	asked := append([]string{"variables.mark == " + prefix, "variables.mark != variables.marked"}, p.unsettled...)
	text, ok := p.anyOf(asked)
	return admissionregistrationv1.MatchCondition{
		Name: "ours-and-not-placed-yet-or-changed-since",
		Expression: fmt.Sprintf("%s\n&& (request.resource.resource == \"daemonsets\" || !object.metadata.?annotations[?%s].orValue(\"\").startsWith(%s)\n|| %s)",
			ours, cel.Quote(Annotation(s.Name)), prefix, text),
	}, ok && len(text) <= maxExpression
}

// ofPods is what variables are for pods, as which DaemonSets do not count here.
var ofPods = map[string]string{
	"daemonSet":    "false",
	"pod":          "object",
	"spec":         "object.spec",
	"podNamespace": "request.namespace",
}

// given puts what variables are known to be in their places, among the other
// variables and the expressions, and returns the variables that are left.
func given(known map[string]string, variables []admissionregistrationv1.Variable, expressions ...*string) []admissionregistrationv1.Variable {
	put := func(text string) string {
		return replaceVariables(text, func(name string) string {
			if is, ok := known[name]; ok {
				return is
			}
			return "variables." + name
		})
	}
	var out []admissionregistrationv1.Variable
	for _, v := range variables {
		if _, ok := known[v.Name]; !ok {
			out = append(out, admissionregistrationv1.Variable{Name: v.Name, Expression: put(v.Expression)})
		}
	}
	for _, e := range expressions {
		*e = put(*e)
	}
	return out
}

// anyOf returns the condition that one of them holds for a pod, with all variables in
// it, for where there are none; false where they need what a match condition cannot see. A
// variable is worked out once, whether or not it comes to matter: before the
// conditions that need it, or with the only one that does.
func (p *program) anyOf(conditions []string) (string, bool) {
	list := slices.Clone(conditions)
	expressions := make([]*string, len(list))
	for i := range list {
		expressions[i] = &list[i]
	}
	needed := inline(given(ofPods, p.needed(conditions...), expressions...), expressions...)
	texts := map[string]string{}
	var bound []admissionregistrationv1.Variable
	for _, v := range needed {
		text := free(v.Expression, texts)
		if strings.Contains(text, "namespaceObject") {
			return "", false
		}
		if constant(v.Expression) && len(v.Expression) <= maxInline || alias(v.Expression) {
			texts[v.Name] = text
			continue
		}
		bound = append(bound, admissionregistrationv1.Variable{Name: v.Name, Expression: text})
	}
	for i := range list {
		if list[i] = free(list[i], texts); strings.Contains(list[i], "namespaceObject") {
			return "", false
		}
	}
	// From the last to the first, a variable goes to the one place that uses it: a
	// condition, or what comes before all of them, which is the last place.
	var before []admissionregistrationv1.Variable
	for _, v := range slices.Backward(bound) {
		name, users := boundName(v.Name), 0
		user := -1
		for i := range list {
			if uses(list[i], name) {
				users++
				user = i
			}
		}
		if users == 1 && !slices.ContainsFunc(before, func(b admissionregistrationv1.Variable) bool { return uses(b.Expression, name) }) {
			list[user] = bind(v, list[user])
			continue
		}
		before = append(before, v)
	}
	out := cel.Or(list...)
	for _, v := range before {
		out = bind(v, out)
	}
	return out, true
}

// bind returns the condition with the variable bound in it.
func bind(v admissionregistrationv1.Variable, condition string) string {
	return fmt.Sprintf("[%s].exists(%s, %s)", v.Expression, boundName(v.Name), condition)
}

func boundName(variable string) string { return "v_" + variable }

// free returns the expression with the names of bound variables in place of
// variables, or with their texts.
func free(expression string, texts map[string]string) string {
	return replaceVariables(expression, func(name string) string {
		if t, ok := texts[name]; ok {
			return t
		}
		return boundName(name)
	})
}

// uses reports whether the name is in the expression.
func uses(expression, name string) bool {
	found := false
	scan(expression, func(i int) {
		end := i + len(name)
		found = found || strings.HasPrefix(expression[i:], name) &&
			(i == 0 || strings.IndexByte(nameCharacters+".", expression[i-1]) < 0) &&
			(end == len(expression) || strings.IndexByte(nameCharacters, expression[end]) < 0)
	})
	return found
}
