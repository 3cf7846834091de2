// Package guard writes the admission policies that keep a dedicated pool to those
// whom it grants.
//
// It maps one pool to objects of admissionregistration.k8s.io/v1: what they
// refuse, warn about or note is said in CEL, which the API server evaluates. A
// pod could use the pool if it tolerates the pool's taint, by the scheduler's own
// rules (ToleratesTaint in k8s.io/api/core/v1), or if it never meets the
// scheduler: because it names its node, or because somebody else binds it. The
// package must not know workloads or clusters, nor how objects reach one.
package guard

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-sched/kubectl-sched/compiler/admission"
	"github.com/kubectl-sched/kubectl-sched/policy"
)

// systemNamespace is trusted as a whole: who may create pods there may do
// anything to a cluster, and its DaemonSets run on every node.
const systemNamespace = metav1.NamespaceSystem

// Pool is a dedicated pool with a guard.
type Pool struct {
	Name   string
	Taint  corev1.Taint
	Guard  policy.Guard
	Grants policy.Grants
	Exempt policy.GuardExempt
	// Set is the label of the set, by which the objects are named; as for
	// admission.Name.
	Set string
}

// Policy is one admission policy with its binding, whose names are equal.
type Policy struct {
	Policy  *admissionv1.ValidatingAdmissionPolicy
	Binding *admissionv1.ValidatingAdmissionPolicyBinding
	// Reason says what the policy closes, and why nothing simpler would.
	Reason string
}

// Policies returns the policies of the pool: for pods and for bindings of pods,
// and, where people shall be warned or refused, one that tells them so as soon as
// they apply a workload. A pool without a guard has none.
func (p Pool) Policies() []Policy {
	switch p.Guard {
	case policy.GuardAudit:
		return []Policy{p.pods(), p.bindings()}
	case policy.GuardWarn, policy.GuardDeny:
		return []Policy{p.pods(), p.bindings(), p.templates()}
	case policy.GuardOff:
	}
	return nil
}

// Label is the label on each of the objects, bindings included, with the pool
// that it guards.
const Label = "kubectl-sched.github.io/guard"

// name returns the name of the objects for a subject ("pods"). Names of pools are
// DNS labels, so that the parts cannot run into each other.
func (p Pool) name(subject string) string {
	return admission.Name(p.Set, "guard-"+subject+"."+p.Name)
}

// actions are what the API server does where a guard finds something. Whatever
// else it does, it says so in the audit log.
func (p Pool) actions() []admissionv1.ValidationAction {
	switch p.Guard {
	case policy.GuardDeny:
		return []admissionv1.ValidationAction{admissionv1.Deny, admissionv1.Audit}
	case policy.GuardWarn:
		return []admissionv1.ValidationAction{admissionv1.Warn, admissionv1.Audit}
	default:
		return []admissionv1.ValidationAction{admissionv1.Audit}
	}
}

// draft is what the policies of a pool differ in.
type draft struct {
	subject    string
	reason     string
	rules      []admissionv1.NamedRuleWithOperations
	conditions []admissionv1.MatchCondition
	variables  []admissionv1.Variable
	message    string
	actions    []admissionv1.ValidationAction
}

// complaint is the variable that every policy ends in: what is wrong, or the
// empty string.
const complaint = "complaint"

// policy makes the objects of a draft. What cannot be evaluated is refused only
// where the guard refuses.
func (p Pool) policy(d draft) Policy {
	name := p.name(d.subject)
	labels := func() map[string]string { return map[string]string{Label: p.Name} }
	failure, equivalent, forbidden := admissionv1.Ignore, admissionv1.Equivalent, metav1.StatusReasonForbidden
	if p.Guard == policy.GuardDeny && d.actions[0] == admissionv1.Deny {
		failure = admissionv1.Fail
	}
	out := &admissionv1.ValidatingAdmissionPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicy"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels()},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: &failure,
			MatchConstraints: &admissionv1.MatchResources{
				MatchPolicy:       &equivalent,
				NamespaceSelector: p.watchedNamespaces(),
				ObjectSelector:    &metav1.LabelSelector{},
				ResourceRules:     d.rules,
			},
			MatchConditions: d.conditions,
			Variables:       d.variables,
			Validations: []admissionv1.Validation{{
				Expression:        "variables." + complaint + ` == ""`,
				Message:           d.message,
				MessageExpression: "variables." + complaint,
				Reason:            &forbidden,
			}},
		},
	}
	if d.actions[0] != admissionv1.Warn || len(d.actions) > 1 {
		out.Spec.AuditAnnotations = []admissionv1.AuditAnnotation{{Key: "guard", ValueExpression: "variables." + complaint}}
	}
	return Policy{
		Policy: out,
		Binding: &admissionv1.ValidatingAdmissionPolicyBinding{
			TypeMeta:   metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicyBinding"},
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels()},
			Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName:        name,
				ValidationActions: d.actions,
			},
		},
		Reason: d.reason,
	}
}

// rule returns the rule for some resources of one group, in its version v1.
func rule(group string, operations []admissionv1.OperationType, resources ...string) admissionv1.NamedRuleWithOperations {
	scope := admissionv1.NamespacedScope
	return admissionv1.NamedRuleWithOperations{RuleWithOperations: admissionv1.RuleWithOperations{
		Operations: operations,
		Rule:       admissionv1.Rule{APIGroups: []string{group}, APIVersions: []string{"v1"}, Resources: resources, Scope: &scope},
	}}
}
