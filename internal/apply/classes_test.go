package apply

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-sched/kubectl-sched/compiler"
)

func TestPriorityClassesAreOursAlone(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	a := l.applier(nil)
	class := func(name string, value int32) *schedulingv1.PriorityClass {
		return &schedulingv1.PriorityClass{
			TypeMeta:   metav1.TypeMeta{APIVersion: "scheduling.k8s.io/v1", Kind: "PriorityClass"},
			ObjectMeta: metav1.ObjectMeta{Name: l.namespace + "-" + name}, Value: value,
		}
	}
	classes := l.client.Kube.SchedulingV1().PriorityClasses()
	if _, err := classes.Create(t.Context(), class("theirs", 7), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	prepare := func(wanted ...*schedulingv1.PriorityClass) (*ChangeSet, []string) {
		t.Helper()
		r := l.request(a)
		for _, c := range wanted {
			r.Plan.Objects = append(r.Plan.Objects, compiler.Object{Object: c})
		}
		changes, findings, err := a.Prepare(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		var rules []string
		for _, f := range findings {
			rules = append(rules, string(f.Severity)+" "+f.Rule)
		}
		return changes, rules
	}
	run := func(changes *ChangeSet) {
		t.Helper()
		if _, findings, err := a.Run(t.Context(), changes, RunOptions{}); err != nil || findings.HasErrors() {
			t.Fatal(findings, err)
		}
	}
	if _, rules := prepare(class("theirs", 8)); !cmp.Equal(rules, []string{"error apply/class-exists"}) {
		t.Errorf("another value: %v", rules)
	}
	changes, rules := prepare(class("theirs", 7), class("ours", 100))
	if !cmp.Equal(rules, []string{"info apply/class-exists"}) {
		t.Errorf("the same value: %v", rules)
	}
	run(changes)
	got, err := classes.Get(t.Context(), l.namespace+"-ours", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got.Value != 100 || got.Labels[applySetPartOf] != l.set.ApplySetID() {
		t.Errorf("it is %+v", got)
	}
	parent, err := l.client.Kube.CoreV1().ConfigMaps(l.set.Namespace).Get(t.Context(), l.set.parentName(), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if parent.Labels[applySetID] != l.set.ApplySetID() || parent.Annotations[applySetGroupKinds] != "PriorityClass.scheduling.k8s.io" || parent.Annotations[applySetTooling] != "kubectl-sched/test" {
		t.Errorf("the parent is %v, %v", parent.Labels, parent.Annotations)
	}
	// A new value can only be had by making it anew.
	changes, rules = prepare(class("ours", 200))
	if !cmp.Equal(rules, []string{"warning apply/class-replaced"}) {
		t.Errorf("a new value: %v", rules)
	}
	run(changes)
	if got, err = classes.Get(t.Context(), l.namespace+"-ours", metav1.GetOptions{}); err != nil || got.Value != 200 {
		t.Errorf("it is %+v, %v", got, err)
	}
	// While a stranger's workload names it, it stays.
	web := l.create(deployment("web", "priorityClassName: "+l.namespace+"-ours"))
	changes, rules = prepare()
	if !cmp.Equal(rules, []string{"warning apply/class-in-use"}) || !changes.Empty() {
		t.Errorf("in use: %v", rules)
	}
	if err := l.client.Kube.AppsV1().Deployments(l.namespace).Delete(t.Context(), web.GetName(), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	changes, _ = prepare()
	run(changes)
	if _, err := classes.Get(t.Context(), l.namespace+"-ours", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("ours was not pruned: %v", err)
	}
	if _, err := classes.Get(t.Context(), l.namespace+"-theirs", metav1.GetOptions{}); err != nil {
		t.Errorf("theirs: %v", err)
	}
}
