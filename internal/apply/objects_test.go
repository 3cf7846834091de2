package apply

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

const admissionVersion = "admissionregistration.k8s.io/v1"

// podCreation matches the creation of pods in the lab's namespace alone.
func (l *lab) podCreation() *admissionv1.MatchResources {
	return &admissionv1.MatchResources{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: l.namespace}},
		ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Create},
			Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
		}}},
	}
}

// mutation is a policy that gives pods an annotation, and its binding.
func (l *lab) mutation(value string) []compiler.Object {
	name := l.namespace
	policy := &admissionv1.MutatingAdmissionPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionVersion, Kind: mutatingPolicy},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.MutatingAdmissionPolicySpec{
			MatchConstraints: l.podCreation(), ReinvocationPolicy: admissionv1.IfNeededReinvocationPolicy,
			Mutations: []admissionv1.Mutation{{
				PatchType:          admissionv1.PatchTypeApplyConfiguration,
				ApplyConfiguration: &admissionv1.ApplyConfiguration{Expression: `Object{metadata: Object.metadata{annotations: {"mutated": "` + value + `"}}}`},
			}},
		},
	}
	binding := &admissionv1.MutatingAdmissionPolicyBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionVersion, Kind: mutatingBinding},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: name},
	}
	origins := []compiler.Origin{{Policy: "test", Range: diag.At(diag.Pos{File: "placement/test.cue", Line: 7, Column: 3})}}
	return []compiler.Object{{Object: policy, Origins: origins}, {Object: binding, Origins: origins}}
}

// prepareObjects prepares a run of a plan that makes the objects.
func (l *lab) prepareObjects(a *Applier, objects []compiler.Object) (*ChangeSet, diag.Findings) {
	l.Helper()
	r := l.request(a)
	r.Plan.Objects = objects
	changes, findings, err := a.Prepare(l.Context(), r)
	if err != nil {
		l.Fatal(err)
	}
	return changes, findings
}

// applyObjects runs it.
func (l *lab) applyObjects(a *Applier, objects []compiler.Object) Outcome {
	l.Helper()
	changes, findings := l.prepareObjects(a, objects)
	if findings.HasErrors() {
		l.Fatal(findings)
	}
	outcome, findings, err := a.Run(l.Context(), changes, RunOptions{})
	if err != nil || findings.HasErrors() {
		l.Fatal(findings, err)
	}
	return outcome
}

func (l *lab) policy() *admissionv1.MutatingAdmissionPolicy {
	l.Helper()
	p, err := l.client.Kube.AdmissionregistrationV1().MutatingAdmissionPolicies().Get(l.Context(), l.namespace, metav1.GetOptions{})
	if err != nil {
		l.Fatal(err)
	}
	return p
}

// patchPolicy changes the policy as somebody else would.
func (l *lab) patchPolicy(patch string) {
	l.Helper()
	_, err := l.client.Kube.AdmissionregistrationV1().MutatingAdmissionPolicies().
		Patch(l.Context(), l.namespace, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "somebody"})
	if err != nil {
		l.Fatal(err)
	}
}

func TestObjectsComeAndGoInOrder(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	log := &requestLog{}
	a := l.applier(log.wrap)
	writes := func() string {
		var kinds []string
		for _, w := range log.writes() {
			if _, path, _ := strings.Cut(w, "/apis/"+admissionVersion+"/"); path != "" {
				verb, _, _ := strings.Cut(w, " ")
				kind, _, _ := strings.Cut(path, "/")
				kinds = append(kinds, verb+" "+kind)
			}
		}
		return strings.Join(kinds, ", ")
	}
	objects := l.mutation("one")
	slices.Reverse(objects)
	if got := l.applyObjects(a, objects); got.Objects != 2 || got.Revision != 1 {
		t.Errorf("first run: %+v", got)
	}
	if d := cmp.Diff("PATCH mutatingadmissionpolicies, PATCH mutatingadmissionpolicybindings", writes()); d != "" {
		t.Errorf("the policy comes first (-want +got):\n%s", d)
	}
	parent, err := l.client.Kube.CoreV1().ConfigMaps(l.set.Namespace).Get(t.Context(), l.set.parentName(), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := "MutatingAdmissionPolicy.admissionregistration.k8s.io,MutatingAdmissionPolicyBinding.admissionregistration.k8s.io"
	if d := cmp.Diff(want, parent.Annotations[applySetGroupKinds]); d != "" {
		t.Errorf("kinds of the set (-want +got):\n%s", d)
	}
	log.reset()
	if got := l.applyObjects(a, objects); !got.Unchanged || len(log.writes()) > 0 {
		t.Errorf("the same again: %+v, %v", got, log.writes())
	}
	l.delete(a)
	if d := cmp.Diff("DELETE mutatingadmissionpolicybindings, DELETE mutatingadmissionpolicies", writes()); d != "" {
		t.Errorf("the binding goes first (-want +got):\n%s", d)
	}
}

func TestObjectsOfOthersAreRefused(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	a := l.applier(nil)
	theirs := l.mutation("theirs")[0].Object.(*admissionv1.MutatingAdmissionPolicy)
	policies := l.client.Kube.AdmissionregistrationV1().MutatingAdmissionPolicies()
	if _, err := policies.Create(t.Context(), theirs, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	_, findings := l.prepareObjects(a, l.mutation("ours"))
	if len(findings) != 1 || findings[0].Rule != "apply/object-exists" || findings[0].Range.Start.Line != 7 {
		t.Errorf("a stranger's: %v", findings)
	}
	if err := policies.Delete(t.Context(), theirs.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	l.applyObjects(a, l.mutation("ours"))
	second := *l
	second.set = Set{Name: "b" + l.set.Name[1:], Namespace: DefaultNamespace}
	_, findings = second.prepareObjects(a, second.mutation("ours"))
	if len(findings) != 2 || !strings.Contains(findings[0].Message, `belongs to set "`+l.set.Name+`"`) {
		t.Errorf("another set's: %v", findings)
	}
	// A set without objects takes none of the other's away.
	second.applyObjects(a, nil)
	l.policy()
}

func TestObjectsThatTheServerRefuses(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	objects := l.mutation("x")
	objects[0].Object.(*admissionv1.MutatingAdmissionPolicy).Spec.Mutations[0].ApplyConfiguration.Expression = "1 +"
	_, findings := l.prepareObjects(l.applier(nil), objects)
	if len(findings) != 1 || findings[0].Rule != "apply/refused" || findings[0].Policy != "test" || !strings.Contains(findings[0].Message, "Syntax error") {
		t.Errorf("findings are %v", findings)
	}
	objects[0].Object.(*admissionv1.MutatingAdmissionPolicy).APIVersion = "unserved.example.com/v1"
	_, findings = l.prepareObjects(l.applier(nil), objects[:1])
	if len(findings) != 1 || findings[0].Rule != "apply/not-served" {
		t.Errorf("findings are %v", findings)
	}
}

func TestObjectsThatDrift(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ patch, field string }{
		"changed":      {`{"spec":{"reinvocationPolicy":"Never"}}`, ".spec.reinvocationPolicy"},
		"added":        {`{"spec":{"matchConditions":[{"name":"mine","expression":"false"}]}}`, ""},
		"label-gone":   {`{"metadata":{"labels":{"kubectl-sched.github.io/set":null}}}`, ".metadata.labels[kubectl-sched.github.io/set]"},
		"no-mutations": {`{"spec":{"mutations":[{"patchType":"JSONPatch","jsonPatch":{"expression":"[JSONPatch{op: \"test\", path: \"/kind\", value: \"Pod\"}]"}}]}}`, ".spec.mutations"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			a := l.applier(nil)
			l.applyObjects(a, l.mutation("one"))
			before := l.policy()
			l.patchPolicy(test.patch)
			status, err := a.Status(t.Context(), l.state())
			if err != nil {
				t.Fatal(err)
			}
			if len(status.Drifts) != 1 || status.Drifts[0].Field != test.field || status.Drifts[0].Subject != "MutatingAdmissionPolicy "+l.namespace {
				t.Errorf("drifts are %+v", status.Drifts)
			}
			if got := l.applyObjects(a, l.mutation("one")); got.Objects != 1 {
				t.Errorf("applied again: %+v", got)
			}
			if d := cmp.Diff(before.Spec, l.policy().Spec); d != "" {
				t.Errorf("it is not as it was (-want +got):\n%s", d)
			}
			if got := l.applyObjects(a, l.mutation("one")); !got.Unchanged {
				t.Errorf("and again: %+v", got)
			}
		})
	}
}

func TestObjectsKeepWhatOthersPutIntoTheMetadata(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	a := l.applier(nil)
	l.applyObjects(a, l.mutation("one"))
	l.patchPolicy(`{"metadata":{"labels":{"team":"x"}},"spec":{"matchConditions":[{"name":"mine","expression":"false"}]}}`)
	l.applyObjects(a, l.mutation("two"))
	if p := l.policy(); p.Labels["team"] != "x" || len(p.Spec.MatchConditions) > 0 {
		t.Errorf("labels %v, conditions %v", p.Labels, p.Spec.MatchConditions)
	}
}

func TestUndoPutsFormerObjectsBack(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	a := l.applier(nil)
	l.applyObjects(a, l.mutation("one"))
	first := l.policy()
	l.applyObjects(a, l.mutation("two"))
	l.applyObjects(a, nil)
	for to, want := range map[int]string{1: `"one"`, 2: `"two"`} {
		state := l.state()
		r, err := state.UndoTarget(to)
		if err != nil {
			t.Fatal(err)
		}
		changes, findings, err := a.PrepareUndo(t.Context(), state, r)
		if err != nil || findings.HasErrors() {
			t.Fatal(findings, err)
		}
		if _, findings, err := a.Run(t.Context(), changes, RunOptions{}); err != nil || findings.HasErrors() {
			t.Fatal(findings, err)
		}
		if text := l.policy().Spec.Mutations[0].ApplyConfiguration.Expression; !strings.Contains(text, want) {
			t.Errorf("back to revision %d, it is %s", to, text)
		}
	}
	if first.UID == l.policy().UID {
		t.Error("it was pruned in between, and must be another")
	}
	l.delete(a)
}

func TestComparisonsOfObjects(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	a := l.applier(nil)
	changes, _ := l.prepareObjects(a, l.mutation("one"))
	comparisons, err := changes.Comparisons()
	if err != nil {
		t.Fatal(err)
	}
	if len(comparisons) != 2 || comparisons[0].Before != nil || comparisons[0].Name != "admissionregistration.k8s.io.v1.MutatingAdmissionPolicy.."+l.namespace {
		t.Fatalf("they are %+v", comparisons)
	}
	if u := (&unstructured.Unstructured{Object: comparisons[0].After}); u.GetUID() != "" || len(u.GetManagedFields()) > 0 {
		t.Errorf("it shows what a server makes up: %v", u.Object["metadata"])
	}
	l.applyObjects(a, l.mutation("one"))
	changes, _ = l.prepareObjects(a, l.mutation("two"))
	if comparisons, err = changes.Comparisons(); err != nil || len(comparisons) != 1 {
		t.Fatalf("they are %+v, %v", comparisons, err)
	}
	ops := difference(comparisons[0].Before, comparisons[0].After)
	if len(ops) != 1 || ops[0].Path != "/spec/mutations/0/applyConfiguration/expression" {
		t.Errorf("they differ in %+v", ops)
	}
}

func TestObjectsNeedTheirPermissions(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	user := l.as("dev-"+l.namespace, rule("get,list", "", "configmaps"))
	r := l.request(l.applier(nil))
	r.Plan.Objects = l.mutation("one")
	_, findings, err := user.applier(nil).Prepare(t.Context(), r)
	if err != nil || len(findings) != 2 || findings[0].Rule != "apply/no-permission" || findings[0].Policy != "test" {
		t.Errorf("findings are %v, %v", findings, err)
	}
}
