package guard

import (
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kubectl-sched/kubectl-sched/compiler/cel"
)

// sentence returns the expression of a text that is put together from the given
// expressions.
func sentence(parts ...string) string { return strings.Join(parts, " + ") }

// words is the literal of a piece of text, formatted as fmt does.
func words(format string, args ...any) string { return cel.Quote(fmt.Sprintf(format, args...)) }

// ungranted is the beginning of a complaint: who has no grant.
func (p Pool) ungranted() string {
	if p.Grants.ServiceAccounts == nil {
		return sentence(words("pool %q is dedicated, and nothing grants it to namespace \"", p.Name), "request.namespace", words(`"; `))
	}
	return sentence(words("pool %q is dedicated, and nothing grants it to service account \"", p.Name), "request.namespace", words("/"), "variables.account", words(`"; `))
}

// shown is the variable with the first toleration at fault, written as "kubectl
// describe pod" does.
func shown() admissionv1.Variable {
	field := func(name, before string) string {
		return fmt.Sprintf(`(t.?%[1]s.orValue("") == "" ? "" : %[2]s + t.%[1]s)`, name, cel.Quote(before))
	}
	one := sentence(field("key", ""), field("value", "="), field("effect", ":"), field("operator", " op="))
	return variable("shown", "variables.tolerating.map(t, ("+one+").trim())")
}

// tolerationComplaint is the expression of what is wrong with a toleration.
func (p Pool) tolerationComplaint(subject string) string {
	return sentence(
		p.ungranted(),
		words(`toleration "`), "variables.shown[0]",
		words("\" would let %s onto its nodes; take it out, or have the grant added to the pool in the placement policy", subject),
	)
}

// nodeNameComplaint is the expression of what is wrong with naming a node.
func (p Pool) nodeNameComplaint(node string) string {
	return sentence(
		p.ungranted(),
		words(`spec.nodeName "`), node,
		words("\" passes by the scheduler, and so by the taint of the pool, if the node is one of its; ask for nodes by nodeSelector or affinity instead, or have the grant added to the pool in the placement policy"),
	)
}

// bindingComplaint is the expression of what is wrong with a binding.
func (p Pool) bindingComplaint() string {
	return sentence(
		words("pool %q is dedicated, and user \"", p.Name), "request.userInfo.username",
		words(`" is no scheduler that is known; binding a pod of namespace "`), "request.namespace",
		words("\" by hand passes by the taint of the pool, if the node is one of its; leave it to a scheduler, or, if this is one, have it named in dedicated.exempt.users of the pool"),
	)
}
