package guard

import (
	"fmt"
	"strconv"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-sched/kubectl-sched/compiler/cel"
)

// tolerates returns the condition that the toleration which the expression stands
// for tolerates the taint, as Toleration.ToleratesTaint in k8s.io/api/core/v1 has
// it: an absent effect means every effect, an absent key every key, an absent
// operator Equal. The comparison operators count as in force, for the API server
// refuses them where they are not.
func tolerates(t string, taint corev1.Taint) string {
	either := func(field, value string) string {
		return fmt.Sprintf(`%s.?%s.orValue("") in ["", %s]`, t, field, cel.Quote(value))
	}
	value := fmt.Sprintf(`%s.?value.orValue("")`, t)
	byOperator := cel.If(
		fmt.Sprintf(`%s.?operator.orValue("") in ["", "Equal"]`, t),
		value+" == "+cel.Quote(taint.Value),
		cel.Or(t+`.operator == "Exists"`, compares(t, value, taint.Value)),
	)
	return cel.And(either("effect", string(taint.Effect)), either("key", taint.Key), byOperator)
}

// compares returns the condition that a toleration with Lt or Gt tolerates the
// taint's value: both must be integers of 64 bits, written in their shortest form.
func compares(t, value, taintValue string) string {
	number, err := strconv.ParseInt(taintValue, 10, 64)
	if err != nil || strconv.FormatInt(number, 10) != taintValue {
		return cel.False
	}
	// Of 19 digits only those up to the limits fit; digits compare as text.
	fits := cel.Or(
		value+`.matches("^(0|-?[1-9][0-9]{0,17})$")`,
		cel.And(value+`.matches("^[1-9][0-9]{18}$")`, value+` <= "9223372036854775807"`),
		cel.And(value+`.matches("^-[1-9][0-9]{18}$")`, value+` <= "-9223372036854775808"`),
	)
	compare := func(operator, sign string) string {
		return cel.And(t+".operator == "+cel.Quote(operator), fmt.Sprintf("%s %s int(%s)", taintValue, sign, value))
	}
	return cel.And(t+`.operator in ["Lt", "Gt"]`, fits, cel.Or(compare("Lt", "<"), compare("Gt", ">")))
}

// couldUse is the match condition that a pod could use the pool at all.
func (p Pool) couldUse() admissionv1.MatchCondition {
	return admissionv1.MatchCondition{Name: "could-use-the-pool", Expression: cel.Or(
		cel.And(`request.operation == "CREATE"`, `object.spec.?nodeName.orValue("") != ""`),
		fmt.Sprintf("object.spec.?tolerations.orValue([]).exists(t, %s)", tolerates("t", p.Taint)),
	)}
}

// podVariables are the variables about a pod spec that expressions share.
func (p Pool) podVariables(spec string) []admissionv1.Variable {
	return []admissionv1.Variable{
		variable("tolerating", fmt.Sprintf("%s.?tolerations.orValue([]).filter(t, %s)", spec, tolerates("t", p.Taint))),
		shown(),
		variable("account", account(spec)),
		variable("namespaceLabels", cel.LabelsOf("namespaceObject")),
	}
}
