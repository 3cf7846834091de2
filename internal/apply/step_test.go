package apply

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/compiler/admission"
	"github.com/kubectl-sched/kubectl-sched/policy"
)

// placing are the objects of a set that tolerates a key, in the shape that the
// compiler gives them: a policy that places and answers probes, and one that
// audits, each with its binding.
func (l *lab) placing(content, key string) []compiler.Object {
	set := l.set.Label()
	meta := func(role string) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Name: admission.Name(set, role), Labels: map[string]string{admission.RoleLabel: role},
			Annotations: map[string]string{admission.ContentAnnotation: content},
		}
	}
	everywhere := l.podCreation()
	everywhere.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: []string{"kube-system"}},
	}}
	mark := admission.Mark{Content: content, Policies: []string{"test"}}.String()
	expression := fmt.Sprintf(`
		has(request.dryRun) && request.dryRun && has(object.metadata.annotations) && object.metadata.annotations[?%[1]q].orValue("") == %[2]q
		? [JSONPatch{op: "replace", path: "/metadata/annotations/" + jsonpatch.escapeKey(%[1]q), value: %[3]q}]
		: has(object.metadata.labels) && object.metadata.labels[?"app"].orValue("") == "placed"
		? (has(object.metadata.annotations) ? [] : [JSONPatch{op: "add", path: "/metadata/annotations", value: {}}])
		  + [JSONPatch{op: "add", path: "/metadata/annotations/" + jsonpatch.escapeKey(%[4]q), value: %[5]q}]
		  + (has(object.spec.tolerations) ? [] : [JSONPatch{op: "add", path: "/spec/tolerations", value: []}])
		  + (has(object.spec.tolerations) && object.spec.tolerations.exists(t, has(t.key) && t.key == %[6]q) ? [] :
		     [JSONPatch{op: "add", path: "/spec/tolerations/-", value: Object.spec.tolerations{key: %[6]q, operator: "Exists"}}])
		: []`, admission.ProbeAnnotation, set, content, admission.Annotation(set), mark, key)
	return []compiler.Object{
		{Object: &admissionv1.MutatingAdmissionPolicy{
			TypeMeta: metav1.TypeMeta{APIVersion: admissionVersion, Kind: mutatingPolicy}, ObjectMeta: meta(admission.RolePlace),
			Spec: admissionv1.MutatingAdmissionPolicySpec{
				MatchConstraints: everywhere, ReinvocationPolicy: admissionv1.IfNeededReinvocationPolicy,
				Mutations: []admissionv1.Mutation{{PatchType: admissionv1.PatchTypeJSONPatch, JSONPatch: &admissionv1.JSONPatch{Expression: expression}}},
			},
		}},
		{Object: &admissionv1.MutatingAdmissionPolicyBinding{
			TypeMeta: metav1.TypeMeta{APIVersion: admissionVersion, Kind: mutatingBinding}, ObjectMeta: meta(admission.RolePlace),
			Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: admission.Name(set, admission.RolePlace)},
		}},
		{Object: &admissionv1.ValidatingAdmissionPolicy{
			TypeMeta: metav1.TypeMeta{APIVersion: admissionVersion, Kind: validating}, ObjectMeta: meta(admission.RoleAudit),
			Spec: admissionv1.ValidatingAdmissionPolicySpec{
				MatchConstraints: everywhere,
				AuditAnnotations: []admissionv1.AuditAnnotation{{Key: admission.AuditContent, ValueExpression: fmt.Sprintf("%q", content)}},
			},
		}},
		{Object: &admissionv1.ValidatingAdmissionPolicyBinding{
			TypeMeta: metav1.TypeMeta{APIVersion: admissionVersion, Kind: validatingBind}, ObjectMeta: meta(admission.RoleAudit),
			Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: admission.Name(set, admission.RoleAudit), ValidationActions: []admissionv1.ValidationAction{admissionv1.Audit},
			},
		}},
	}
}

// admit is a request for a step of surface admission.
func (l *lab) admit(a *Applier, observe bool, objects []compiler.Object) Request {
	l.Helper()
	r := l.request(a)
	r.Plan.Objects = objects
	r.Step = Step{Surface: policy.SurfaceAdmission, Observe: observe}
	return r
}

// step applies a request, and waits until it is in force.
func (l *lab) step(a *Applier, r Request) *ChangeSet {
	l.Helper()
	changes, findings, err := a.Prepare(l.Context(), r)
	if err != nil || findings.HasErrors() {
		l.Fatal(findings, err)
	}
	if _, findings, err := a.Run(l.Context(), changes, RunOptions{}); err != nil || findings.HasErrors() {
		l.Fatal(findings, err)
	}
	if findings, err := a.WaitInForce(l.Context(), changes, time.Minute); err != nil || len(findings) > 0 {
		l.Fatal(findings, err)
	}
	return changes
}

// pod creates a pod that the policy is for, and returns the keys that it
// tolerates, without those that every pod does.
func (l *lab) pod(namespace, name string) string {
	l.Helper()
	pod, err := l.client.Kube.CoreV1().Pods(namespace).Create(l.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "placed"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/main:1"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		l.Fatal(err)
	}
	var keys []string
	for _, t := range pod.Spec.Tolerations {
		if !strings.HasPrefix(t.Key, "node.kubernetes.io/") {
			keys = append(keys, t.Key)
		}
	}
	return strings.Join(keys, ",")
}

// kinds are the kinds of the change set's objects, by action.
func kinds(c *ChangeSet) string {
	var list []string
	for _, o := range c.Objects {
		list = append(list, string(o.Action)+" "+o.Kind.Kind)
	}
	return strings.Join(list, ", ")
}

// TestLadder climbs all steps and goes back down by undo.
func TestLadder(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	a := l.applier(nil)
	second := l.namespace + "-b"
	if _, err := l.client.Kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: second}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, namespace := range []string{l.namespace, second} {
		l.untilPodsMay(namespace)
	}
	both := []string{l.namespace, second}
	n := 0
	check := func(what, first, other string) {
		t.Helper()
		n++
		name := fmt.Sprintf("p%d", n)
		if got := [2]string{l.pod(l.namespace, name), l.pod(second, name)}; got != [2]string{first, other} {
			t.Errorf("%s: the pods tolerate %q", what, got)
		}
	}

	l.scope.Namespaces = both
	changes := l.step(a, l.admit(a, true, l.placing("c1", "one")))
	if d := cmp.Diff("create ValidatingAdmissionPolicy, create ValidatingAdmissionPolicyBinding", kinds(changes)); d != "" {
		t.Errorf("observe (-want +got):\n%s", d)
	}
	check("observe", "", "")
	l.scope.Namespaces = []string{l.namespace}
	l.step(a, l.admit(a, false, l.placing("c1", "one")))
	check("one namespace", "one", "")
	l.scope.Namespaces = both
	l.step(a, l.admit(a, false, l.placing("c1", "one")))
	check("both", "one", "one")
	l.step(a, l.admit(a, false, l.placing("c2", "two")))
	check("another content", "two", "two")

	var causes []string
	for _, r := range l.state().Revisions {
		causes = append(causes, r.Cause)
	}
	list := strings.Join(both, ",")
	if d := cmp.Diff([]string{"apply --observe -n " + list, "apply -n " + l.namespace, "apply -n " + list, "apply -n " + list}, causes); d != "" {
		t.Errorf("history (-want +got):\n%s", d)
	}
	back := func(to int) {
		t.Helper()
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
		if findings, err := a.WaitInForce(t.Context(), changes, time.Minute); err != nil || len(findings) > 0 {
			t.Fatal(findings, err)
		}
	}
	back(0)
	check("undo", "one", "one")
	back(1)
	check("undo to observing", "", "")
	if step := l.state().step(); !step.Observe || !step.Admission() {
		t.Errorf("the step is %+v", step)
	}
	l.delete(a)
}

func TestStepsNeedClearWords(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	a := l.applier(nil)
	l.step(a, l.admit(a, false, l.placing("c1", "one")))
	rules := func(r Request) string {
		t.Helper()
		_, findings, err := a.Prepare(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		var list []string
		for _, f := range findings {
			list = append(list, string(f.Severity)+" "+f.Rule)
		}
		return strings.Join(list, ", ")
	}
	all := l.admit(a, false, l.placing("c1", "one"))
	all.Scope.Namespaces = nil
	if got := rules(all); got != "error apply/other-scope" {
		t.Errorf("silently everywhere: %s", got)
	}
	all.Everywhere = true
	if got := rules(all); got != "" {
		t.Errorf("everywhere: %s", got)
	}
	other := l.admit(a, false, l.placing("c1", "one"))
	other.Scope.Namespaces = []string{"another"}
	if got := rules(other); got != "warning apply/narrowed" {
		t.Errorf("elsewhere: %s", got)
	}
	other.Scope.Folders = []string{"elsewhere"}
	if got := rules(other); got != "error apply/other-scope" {
		t.Errorf("other folders: %s", got)
	}
}

// TestFromFieldsToAdmission moves a set from live fields to admission: the field
// goes from the template and comes to the pods.
func TestFromFieldsToAdmission(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	a := l.applier(nil)
	u := l.create(strings.ReplaceAll(deployment("web"), "app: web", "app: placed"))
	l.apply(a, matching(tolerate("one"), "web"))
	log := &requestLog{}
	a = l.applier(log.wrap)
	r := l.admit(a, false, l.placing("c1", "one"))
	changes := l.step(a, r)
	if n := slices.IndexFunc(log.writes(), func(w string) bool { return strings.Contains(w, "/deployments/") }); n < 3 {
		t.Errorf("the policies must come first: %v", log.writes())
	}
	if len(changes.Workloads) != 1 || changes.Workloads[0].Action != Withdraw {
		t.Errorf("changes are %+v", changes.Workloads)
	}
	l.sameObject(u)
	if got := l.pod(l.namespace, "new"); got != "one" {
		t.Errorf("a new pod tolerates %q", got)
	}
}

func TestTypeCheckerIsHeard(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	a := l.applier(nil)
	objects := l.placing("c1", "one")[2:]
	objects[0].Object.(*admissionv1.ValidatingAdmissionPolicy).Spec.Validations = []admissionv1.Validation{{Expression: `object.spec.nodeNaem == ""`}}
	changes, findings := l.prepareObjects(a, objects)
	if findings.HasErrors() {
		t.Fatal(findings)
	}
	if _, findings, err := a.Run(t.Context(), changes, RunOptions{}); err != nil || findings.HasErrors() {
		t.Fatal(findings, err)
	}
	findings, err := a.WaitInForce(t.Context(), changes, time.Minute)
	if err != nil || len(findings) != 1 || findings[0].Rule != "apply/type-check" || !strings.Contains(findings[0].Message, "nodeNaem") {
		t.Errorf("findings are %v, %v", findings, err)
	}
	l.delete(a)
}
