// Package approval writes the admission policies that protect gates, and pods from
// the account that opens them. It maps the name of that account to objects of
// admissionregistration.k8s.io/v1.
//
// An approval is an annotation of a pod, and whoever may change pods could write
// one, or remove the gate, or change what it waits for. With Objects in force, only
// those can to whom the cluster's authorizer gives the verb "approve" for
// that gate; and the user whom an approval or a denial names is the one who wrote
// it. The package must not know the controller, nor how objects reach a cluster.
package approval

import (
	"fmt"
	"strconv"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gates/condition"
)

// What the authorizer is asked: whether the user may approve the gate, by the name
// that users give it, in the namespace of the pod. No such resource is served; a
// rule of RBAC can name it all the same.
const (
	Group    = "kubectl-sched.github.io"
	Resource = "gates"
	Verb     = "approve"
)

// Name is the name of the policy and of its binding.
const Name = "gates.kubectl-sched.github.io"

// resources are those through which the annotations and gates of a pod can be
// changed. A binding can add annotations as well, but not to a pod with gates
// (pkg/registry/core/pod/storage).
var resources = []string{"pods", "pods/status", "pods/ephemeralcontainers", "pods/resize"}

// Objects returns the policy and the binding that puts it in force everywhere.
// controller is the user as which the controller opens gates, which it may
// ("system:serviceaccount:placement-system:placement-scheduler"). What the policy
// cannot evaluate is refused.
func Objects(controller string) (*admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding) {
	return objects(Name, admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: pods([]admissionv1.OperationType{admissionv1.Create, admissionv1.Update}, resources...),
		Variables:        variables(controller),
		Validations: []admissionv1.Validation{
			{
				Expression:        `variables.forged.size() == 0`,
				MessageExpression: `"annotation " + variables.forged[0] + " must name the user who writes it, " + request.userInfo.username`,
				Message:           "an approval must name the user who writes it",
			},
			{
				Expression: `variables.refused.size() == 0`,
				// The authorizer cannot be asked for a message, so it names all that were tried.
				MessageExpression: fmt.Sprintf(
					`"user " + request.userInfo.username + " may not approve, deny, change or remove gate " + variables.touched.join(", ") + " of this pod; that takes the verb %s on %s.%s"`, Verb, Resource, Group),
				Message: "the user may not approve, deny, change or remove this gate",
			},
		},
	})
}

// objects returns the policy and its binding. What it finds is forbidden, and so is
// what it cannot evaluate.
func objects(name string, spec admissionv1.ValidatingAdmissionPolicySpec) (*admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding) {
	failure, forbidden := admissionv1.Fail, metav1.StatusReasonForbidden
	spec.FailurePolicy = &failure
	for i := range spec.Validations {
		spec.Validations[i].Reason = &forbidden
	}
	policy := &admissionv1.ValidatingAdmissionPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicy"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       spec,
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicyBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        name,
			ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny, admissionv1.Audit},
		},
	}
	return policy, binding
}

// pods matches requests about pods, or some of their subresources.
func pods(operations []admissionv1.OperationType, resources ...string) *admissionv1.MatchResources {
	equivalent, scope := admissionv1.Equivalent, admissionv1.NamespacedScope
	return &admissionv1.MatchResources{
		MatchPolicy:       &equivalent,
		NamespaceSelector: &metav1.LabelSelector{},
		ObjectSelector:    &metav1.LabelSelector{},
		ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: operations,
			Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: resources, Scope: &scope},
		}}},
	}
}

// variables are what a request does to approvals, conditions and gates.
func variables(controller string) []admissionv1.Variable {
	approved, denied, ours := strconv.Quote(condition.ApprovedPrefix), strconv.Quote(condition.DeniedPrefix), strconv.Quote(condition.Prefix)
	return []admissionv1.Variable{
		{Name: "before", Expression: `oldObject == null ? {} : oldObject.metadata.?annotations.orValue({})`},
		{Name: "after", Expression: `object.metadata.?annotations.orValue({})`},
		{Name: "changed", Expression: `variables.after.filter(k, variables.before[?k] != optional.of(variables.after[k])) + variables.before.filter(k, !(k in variables.after))`},
		{Name: "decisions", Expression: fmt.Sprintf(`variables.changed.filter(k, k.startsWith(%s) || k.startsWith(%s))`, approved, denied)},
		{Name: "forged", Expression: `variables.decisions.filter(k, k in variables.after && variables.after[k] != request.userInfo.username)`},
		// Who creates a pod says what it waits for.
		{Name: "conditions", Expression: fmt.Sprintf(`oldObject == null ? [] : variables.changed.filter(k, k.startsWith(%s))`, ours)},
		{Name: "gates", Expression: `object.spec.?schedulingGates.orValue([]).map(g, g.name)`},
		{Name: "removed", Expression: fmt.Sprintf(
			`oldObject == null || request.userInfo.username == %s ? [] : oldObject.spec.?schedulingGates.orValue([]).map(g, g.name).filter(g, g.startsWith(%s) && !(g in variables.gates))`,
			strconv.Quote(controller), ours)},
		{Name: "touched", Expression: `(variables.decisions + variables.conditions + variables.removed).map(k, k.substring(k.indexOf("/") + 1))`},
		{Name: "refused", Expression: fmt.Sprintf(
			`variables.touched.filter(n, !authorizer.group(%q).resource(%q).namespace(object.metadata.namespace).name(n).check(%q).allowed())`,
			Group, Resource, Verb)},
	}
}
