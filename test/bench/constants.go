package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
)

// constantPolicies makes the two policies that do the least that comes to the same as
// the 50: one writes what these make of a pod, without having to work anything out, and
// is not asked again; the other notes two texts in the audit log. What a pod's creation
// takes with them is the API server's own share of it. It waits until they are in force.
func (b *admissionBench) constantPolicies(ctx context.Context) error {
	patch, err := b.constantPatch(ctx)
	if err != nil {
		return err
	}
	meta := metav1.ObjectMeta{Name: constantNamespace}
	match := &admissionregistrationv1.MatchResources{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: constantNamespace}},
		ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
		}}},
	}
	writes := &admissionregistrationv1.MutatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
		MatchConstraints:   match,
		MatchConditions:    []admissionregistrationv1.MatchCondition{{Name: "not-yet", Expression: "!has(object.metadata.annotations)"}},
		FailurePolicy:      new(admissionregistrationv1.Fail),
		ReinvocationPolicy: admissionregistrationv1.IfNeededReinvocationPolicy,
		Mutations: []admissionregistrationv1.Mutation{{
			PatchType: admissionregistrationv1.PatchTypeJSONPatch, JSONPatch: &admissionregistrationv1.JSONPatch{Expression: patch},
		}},
	}}
	notes := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: match,
		FailurePolicy:    new(admissionregistrationv1.Ignore),
		AuditAnnotations: []admissionregistrationv1.AuditAnnotation{{Key: "policies", ValueExpression: `"all"`}, {Key: "content", ValueExpression: `"constant"`}},
	}}
	api := b.kube.AdmissionregistrationV1()
	if _, err := api.MutatingAdmissionPolicies().Create(ctx, writes, metav1.CreateOptions{}); err != nil {
		return err
	}
	if _, err := api.ValidatingAdmissionPolicies().Create(ctx, notes, metav1.CreateOptions{}); err != nil {
		return err
	}
	if _, err := api.MutatingAdmissionPolicyBindings().Create(ctx, &admissionregistrationv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: meta, Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: meta.Name},
	}, metav1.CreateOptions{}); err != nil {
		return err
	}
	if _, err := api.ValidatingAdmissionPolicyBindings().Create(ctx, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: meta, Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: meta.Name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Audit},
		},
	}, metav1.CreateOptions{}); err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		pod, err := b.kube.CoreV1().Pods(constantNamespace).Create(ctx, benchPod(0), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err == nil && mutated(constantNamespace, pod), err
	})
}

// constantPatch returns the expression of a JSON patch that writes what the 50
// policies make of a pod.
func (b *admissionBench) constantPatch(ctx context.Context) (string, error) {
	placed, err := b.kube.CoreV1().Pods(placedNamespace).Create(ctx, benchPod(1), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return "", err
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(placed)
	if err != nil {
		return "", err
	}
	var operations []string
	add := func(at string, value any) {
		operations = append(operations, fmt.Sprintf("JSONPatch{op: \"add\", path: %q, value: %s}", at, celLiteral(value)))
	}
	for _, path := range [][]string{{"metadata", "annotations"}, {"spec", "affinity"}, {"spec", "topologySpreadConstraints"}} {
		value, found, err := unstructured.NestedFieldNoCopy(object, path...)
		if err != nil {
			return "", err
		}
		if !found {
			return "", fmt.Errorf("a placed pod has no %s", strings.Join(path, "."))
		}
		add("/"+strings.Join(path, "/"), value)
	}
	tolerations, _, err := unstructured.NestedSlice(object, "spec", "tolerations")
	for _, t := range tolerations {
		if t, ok := t.(map[string]any); ok && t["tolerationSeconds"] == nil { // the API server adds its own to every pod
			add("/spec/tolerations/-", t)
		}
	}
	return "[" + strings.Join(operations, ", ") + "]", err
}

// celLiteral returns a JSON value as CEL has it, each part of any type.
func celLiteral(v any) string {
	var parts []string
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, strconv.Quote(k)+": "+celLiteral(v[k]))
		}
		return "dyn({" + strings.Join(parts, ", ") + "})"
	case []any:
		for _, e := range v {
			parts = append(parts, celLiteral(e))
		}
		return "dyn([" + strings.Join(parts, ", ") + "])"
	case string:
		return "dyn(" + strconv.Quote(v) + ")"
	default:
		return fmt.Sprintf("dyn(%v)", v)
	}
}
