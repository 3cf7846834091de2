// Package guardtest evaluates ValidatingAdmissionPolicies in process, by the API
// server's own code, for tests of what is written in them.
//
// It maps a policy and a request to what the policy complains about. It must not
// know what a policy is for, and nothing but tests may import it.
package guardtest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"
)

// Evaluator is a compiled policy.
type Evaluator struct {
	namespaces labels.Selector
	validator  validating.Validator
}

// Request is what the API server asks a policy about. Kind and Resource are those
// of the version v1.
type Request struct {
	Operation   admission.Operation
	Kind        schema.GroupVersionKind
	Resource    schema.GroupVersionResource
	Subresource string
	// Object and Old are typed, as the API server has them; Old may be nil.
	Object, Old runtime.Object
	Namespace   *corev1.Namespace
	User        user.Info
}

// base is the environment of every policy; it takes a while to make.
var base = sync.OnceValue(func() *environment.EnvSet {
	return environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
})

// New compiles the policy as the API server does for one that is stored. Errors in
// its expressions come back from Complaints.
func New(p *admissionv1.ValidatingAdmissionPolicy) (*Evaluator, error) {
	compiler, err := cel.NewCompositedCompiler(base())
	if err != nil {
		return nil, fmt.Errorf("compile policy %q: %w", p.Name, err)
	}
	selector, err := metav1.LabelSelectorAsSelector(p.Spec.MatchConstraints.NamespaceSelector)
	if err != nil {
		return nil, fmt.Errorf("compile policy %q: %w", p.Name, err)
	}
	var variables []cel.NamedExpressionAccessor
	for _, v := range p.Spec.Variables {
		variables = append(variables, &validating.Variable{Name: v.Name, Expression: v.Expression})
	}
	declarations := cel.OptionalVariableDeclarations{HasAuthorizer: true}
	compiler.CompileAndStoreVariables(variables, declarations, environment.StoredExpressions)
	var validations, messages, annotations, conditions []cel.ExpressionAccessor
	for _, v := range p.Spec.Validations {
		validations = append(validations, &validating.ValidationCondition{Expression: v.Expression, Message: v.Message, Reason: v.Reason})
		messages = append(messages, &validating.MessageExpressionCondition{MessageExpression: v.MessageExpression})
	}
	for _, a := range p.Spec.AuditAnnotations {
		annotations = append(annotations, &validating.AuditAnnotationCondition{Key: a.Key, ValueExpression: a.ValueExpression})
	}
	for i := range p.Spec.MatchConditions {
		conditions = append(conditions, (*matchconditions.MatchCondition)(&p.Spec.MatchConditions[i]))
	}
	// The policy must answer by itself, so whatever fails shows.
	failure := admissionv1.Fail
	var matcher matchconditions.Matcher
	if len(conditions) > 0 {
		matcher = matchconditions.NewMatcher(compiler.CompileCondition(conditions, declarations, environment.StoredExpressions), &failure, "policy", "validate", p.Name)
	}
	return &Evaluator{
		namespaces: selector,
		validator: validating.NewValidator(
			compiler.CompileCondition(validations, declarations, environment.StoredExpressions),
			matcher,
			compiler.CompileCondition(annotations, declarations, environment.StoredExpressions),
			compiler.CompileCondition(messages, cel.OptionalVariableDeclarations{}, environment.StoredExpressions),
			&failure, nil,
		),
	}, nil
}

// Complaints returns the messages of what the policy finds wrong with a request
// that it is asked about, and the audit annotations that it makes. An expression
// that does not compile or fails is an error.
func (e *Evaluator) Complaints(ctx context.Context, r Request) (messages, annotations []string, err error) {
	if !e.namespaces.Matches(labels.Set(r.Namespace.Labels)) {
		return nil, nil, nil
	}
	accessor, ok := r.Object.(metav1.Object)
	if !ok {
		return nil, nil, errors.New("the object has no metadata")
	}
	attributes := &admission.VersionedAttributes{
		Attributes:    admission.NewAttributesRecord(r.Object, r.Old, r.Kind, r.Namespace.Name, accessor.GetName(), r.Resource, r.Subresource, r.Operation, nil, false, r.User),
		VersionedKind: r.Kind,
	}
	attributes.VersionedObject.Set(r.Object)
	if r.Old != nil {
		attributes.VersionedOldObject.Set(r.Old)
	}
	result := e.validator.Validate(ctx, r.Resource, attributes, nil, r.Namespace, celconfig.RuntimeCELCostBudget, nil)
	for _, d := range result.Decisions {
		switch {
		case d.Evaluation == validating.EvalError:
			return nil, nil, errors.New(d.Message)
		case d.Action == validating.ActionDeny:
			messages = append(messages, d.Message)
		}
	}
	for _, a := range result.AuditAnnotations {
		switch a.Action {
		case validating.AuditAnnotationActionPublish:
			annotations = append(annotations, a.Key+": "+a.Value)
		case validating.AuditAnnotationActionError:
			return nil, nil, errors.New(a.Error)
		case validating.AuditAnnotationActionExclude:
		}
	}
	return messages, annotations, nil
}

// Pod is a request to create the pod, or, with an old one, to change it.
func Pod(pod, old *corev1.Pod, namespace *corev1.Namespace, by user.Info) Request {
	r := Request{
		Operation: admission.Create,
		Kind:      corev1.SchemeGroupVersion.WithKind("Pod"),
		Resource:  corev1.SchemeGroupVersion.WithResource("pods"),
		Object:    pod, Namespace: namespace, User: by,
	}
	if old != nil {
		r.Operation, r.Old = admission.Update, old
	}
	return r
}

// Namespace returns a namespace with the labels, and the one that the API server
// gives it.
func Namespace(name string, more map[string]string) *corev1.Namespace {
	all := map[string]string{corev1.LabelMetadataName: name}
	for k, v := range more {
		all[k] = v
	}
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: all}}
}
