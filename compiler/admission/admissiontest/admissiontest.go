// Package admissiontest evaluates admission policies as the API server does, by
// its own code and without a server, for tests: thousands of pods a second, and
// with the cost that the server would count.
//
// It must not know how policies come about, nor of the rest of the admission
// chain: defaults, other plugins and webhooks.
package admissiontest

import (
	"context"
	"errors"
	"fmt"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"
)

// Policy is a MutatingAdmissionPolicy, compiled.
type Policy struct {
	scheme   *runtime.Scheme
	compiler *plugincel.CompositedCompiler
	mutators []*recorder
	// conditions are the match conditions, which know no variables.
	conditions plugincel.ConditionEvaluator
}

// recorder keeps what an evaluation left of its budget.
type recorder struct {
	plugincel.MutatingEvaluator
	left int64
}

// ForInput evaluates, and notes what is left of the budget.
func (r *recorder) ForInput(ctx context.Context, attributes *admission.VersionedAttributes, request *admissionv1.AdmissionRequest, inputs plugincel.OptionalVariableBindings, namespace *corev1.Namespace, budget int64) (plugincel.EvaluationResult, int64, error) {
	result, left, err := r.MutatingEvaluator.ForInput(ctx, attributes, request, inputs, namespace, budget)
	r.left = left
	return result, left, err
}

// named is a variable as the CEL compiler takes it.
type named struct {
	admissionregistrationv1.Variable
}

// GetName returns the variable's name.
func (v named) GetName() string { return v.Name }

// GetExpression returns the variable's text.
func (v named) GetExpression() string { return v.Expression }

// ReturnTypes allows any type.
func (v named) ReturnTypes() []*celgo.Type { return []*celgo.Type{celgo.AnyType} }

// Compile compiles the policy as Kubernetes 1.37 does. The error names every
// expression that does not compile.
func Compile(p *admissionregistrationv1.MutatingAdmissionPolicy) (*Policy, error) {
	compiler, err := plugincel.NewCompositedCompiler(environment.MustBaseEnvSet(version.MajorMinor(1, 37)))
	if err != nil {
		return nil, fmt.Errorf("prepare CEL: %w", err)
	}
	out := &Policy{scheme: runtime.NewScheme(), compiler: compiler}
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme} {
		if err := add(out.scheme); err != nil {
			return nil, fmt.Errorf("prepare types: %w", err)
		}
	}
	var problems []error
	declared := plugincel.OptionalVariableDeclarations{HasAuthorizer: true}
	defined := map[string]bool{}
	for _, v := range p.Spec.Variables {
		if defined[v.Name] {
			problems = append(problems, fmt.Errorf("variable %s is there twice, which the API server refuses", v.Name))
		}
		defined[v.Name] = true
		if result := compiler.CompileAndStoreVariable(named{v}, declared, environment.NewExpressions); result.Error != nil {
			problems = append(problems, fmt.Errorf("variable %s: %s", v.Name, result.Error.Detail))
		}
	}
	var conditions []plugincel.ExpressionAccessor
	for i := range p.Spec.MatchConditions {
		conditions = append(conditions, (*matchconditions.MatchCondition)(&p.Spec.MatchConditions[i]))
	}
	out.conditions = plugincel.NewConditionCompiler(environment.MustBaseEnvSet(version.MajorMinor(1, 37))).CompileCondition(conditions, declared, environment.NewExpressions)
	for _, err := range out.conditions.CompilationErrors() {
		problems = append(problems, fmt.Errorf("match conditions: %w", err))
	}
	declared.HasPatchTypes = true
	for i, m := range p.Spec.Mutations {
		evaluator := compiler.CompileMutatingEvaluator(&patch.JSONPatchCondition{Expression: m.JSONPatch.Expression}, declared, environment.NewExpressions)
		for _, err := range evaluator.CompilationErrors() {
			problems = append(problems, fmt.Errorf("mutation %d: %w", i, err))
		}
		out.mutators = append(out.mutators, &recorder{MutatingEvaluator: evaluator})
	}
	return out, errors.Join(problems...)
}

// Mutate returns the object, a pod or a DaemonSet, after the policy's mutations
// when it is created in the namespace, and what their evaluation cost. It
// evaluates twice, because the API server has two ways to show an object to an
// expression, and fails where they differ.
func (p *Policy) Mutate(ctx context.Context, object runtime.Object, namespace *corev1.Namespace) (out runtime.Object, cost int64, err error) {
	if out, cost, err = p.mutate(ctx, object, namespace, false); err != nil {
		return nil, 0, err
	}
	typed, _, err := p.mutate(ctx, object, namespace, true)
	if err != nil {
		return nil, 0, fmt.Errorf("with typed values: %w", err)
	}
	if !equality.Semantic.DeepEqual(out, typed) {
		return nil, 0, fmt.Errorf("with typed values it becomes %v, otherwise %v", typed, out)
	}
	return out, cost, nil
}

// Once is Mutate with one evaluation, the way that the API server does it for
// policies with match conditions, as ours are.
func (p *Policy) Once(ctx context.Context, object runtime.Object, namespace *corev1.Namespace) (out runtime.Object, cost int64, err error) {
	return p.mutate(ctx, object, namespace, true)
}

// Matches reports whether the API server would ask the policy about the object as
// it is created in the namespace, by its match conditions, and what their
// evaluation cost.
func (p *Policy) Matches(ctx context.Context, object runtime.Object, namespace string) (matches bool, cost int64, err error) {
	attributes, resource, err := versioned(object, namespace, true)
	if err != nil {
		return false, 0, err
	}
	request := plugincel.CreateAdmissionRequest(attributes.Attributes, metav1.GroupVersionResource(resource), metav1.GroupVersionKind(attributes.VersionedKind))
	results, left, err := p.conditions.ForInput(ctx, attributes, request, plugincel.OptionalVariableBindings{}, nil, celconfig.RuntimeCELCostBudgetMatchConditions)
	if err != nil {
		return false, 0, err
	}
	matches = true
	for _, r := range results {
		if r.Error != nil {
			return false, 0, r.Error
		}
		matches = matches && r.EvalResult == types.True
	}
	return matches, celconfig.RuntimeCELCostBudgetMatchConditions - left, nil
}

// versioned returns what the API server knows of the object, a pod or a DaemonSet,
// as it is created, and its resource.
func versioned(object runtime.Object, namespace string, typed bool) (*admission.VersionedAttributes, schema.GroupVersionResource, error) {
	meta, ok := object.(metav1.Object)
	if !ok {
		return nil, schema.GroupVersionResource{}, fmt.Errorf("%T has no metadata", object)
	}
	kind, resource := corev1.SchemeGroupVersion.WithKind("Pod"), corev1.SchemeGroupVersion.WithResource("pods")
	if _, ok := object.(*appsv1.DaemonSet); ok {
		kind, resource = appsv1.SchemeGroupVersion.WithKind("DaemonSet"), appsv1.SchemeGroupVersion.WithResource("daemonsets")
	}
	object = object.DeepCopyObject()
	object.GetObjectKind().SetGroupVersionKind(kind)
	lazy := admission.NewLazyObject(object)
	lazy.UseSchemalessTypeRef = typed //nolint:staticcheck // The API server does so once a match condition was evaluated.
	return &admission.VersionedAttributes{
		Attributes:    admission.NewAttributesRecord(object, nil, kind, namespace, meta.GetName(), resource, "", admission.Create, &metav1.CreateOptions{}, false, &user.DefaultInfo{Name: "tester"}),
		VersionedKind: kind, VersionedObject: lazy,
	}, resource, nil
}

func (p *Policy) mutate(ctx context.Context, object runtime.Object, namespace *corev1.Namespace, typed bool) (out runtime.Object, cost int64, err error) {
	out = object
	for _, m := range p.mutators {
		attributes, resource, err := versioned(out, namespace.Name, typed)
		if err != nil {
			return nil, 0, err
		}
		request := patch.Request{
			MatchedResource: resource, VersionedAttributes: attributes,
			ObjectInterfaces: admission.NewObjectInterfacesFromScheme(p.scheme),
			Namespace:        namespace,
		}
		budget := int64(celconfig.RuntimeCELCostBudget)
		if out, err = patch.NewJSONPatcher(m).Patch(p.compiler.CreateContext(ctx), request, budget); err != nil {
			return nil, 0, err
		}
		cost += budget - m.left
	}
	return out, cost, nil
}
