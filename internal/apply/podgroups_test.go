package apply

import (
	"testing"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-sched/kubectl-sched/compiler"
)

// TestPodGroupsComeAndGo holds that a PodGroup is a member of the set: made, brought
// up to date, and deleted once nothing asks for it, while a stranger's stays.
func TestPodGroupsComeAndGo(t *testing.T) {
	t.Parallel()
	l := newLab(t).serve("scheduling.x-k8s.io", "v1alpha1", podGroup)
	a := l.applier(nil)
	group := func(name string, members int64) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": podGroup,
			"metadata": map[string]any{"namespace": l.namespace, "name": name}, "spec": map[string]any{"minMember": members},
		}}
	}
	groups := l.client.Dynamic.Resource(schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"}).Namespace(l.namespace)
	if _, err := groups.Create(t.Context(), group("theirs", 2), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	run := func(wanted ...*unstructured.Unstructured) {
		t.Helper()
		var objects []compiler.Object
		for _, g := range wanted {
			objects = append(objects, compiler.Object{Object: g})
		}
		changes, findings := l.prepareObjects(a, objects)
		if findings.HasErrors() {
			t.Fatal(findings)
		}
		if _, findings, err := a.Run(t.Context(), changes, RunOptions{}); err != nil || findings.HasErrors() {
			t.Fatal(findings, err)
		}
	}
	if _, findings := l.prepareObjects(a, []compiler.Object{{Object: group("theirs", 2)}}); len(findings) != 1 || findings[0].Rule != "apply/object-exists" {
		t.Errorf("a stranger's group: %v", findings)
	}
	for _, min := range []int64{3, 4} {
		run(group("train", min))
		got, err := groups.Get(t.Context(), "train", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if n, _ := valueAt(got.Object, "/spec/minMember"); n != min || got.GetLabels()[applySetPartOf] != l.set.ApplySetID() {
			t.Errorf("it needs %v, want %d; labels %v", n, min, got.GetLabels())
		}
	}
	run()
	if _, err := groups.Get(t.Context(), "train", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("nothing asks for it any more: %v", err)
	}
	if _, err := groups.Get(t.Context(), "theirs", metav1.GetOptions{}); err != nil {
		t.Errorf("the stranger's is gone: %v", err)
	}
}

// TestGroupReplacement holds which changes of the API's PodGroup are only to be had
// by making it anew.
func TestGroupReplacement(t *testing.T) {
	t.Parallel()
	group := func(change func(*schedulingv1beta1.PodGroupSpec)) *unstructured.Unstructured {
		g := &schedulingv1beta1.PodGroup{TypeMeta: metav1.TypeMeta{APIVersion: "scheduling.k8s.io/v1beta1", Kind: podGroup}}
		g.Name = "train"
		g.Spec.SchedulingPolicy.Gang = &schedulingv1beta1.GangSchedulingPolicy{MinCount: 3}
		change(&g.Spec)
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(g)
		if err != nil {
			t.Fatal(err)
		}
		return &unstructured.Unstructured{Object: object}
	}
	plainly := func(*schedulingv1beta1.PodGroupSpec) {}
	classed := func(s *schedulingv1beta1.PodGroupSpec) { s.PriorityClassName = "high" }
	topology := func(s *schedulingv1beta1.PodGroupSpec) {
		s.SchedulingConstraints = &schedulingv1beta1.PodGroupSchedulingConstraints{Topology: []schedulingv1beta1.TopologyConstraint{{Key: "rack"}}}
	}
	larger := func(s *schedulingv1beta1.PodGroupSpec) { s.SchedulingPolicy.Gang.MinCount = 9 }
	for name, test := range map[string]struct {
		live, wanted *unstructured.Unstructured
		anew         bool
	}{
		"the same":                 {group(plainly), group(plainly), false},
		"more members":             {group(plainly), group(larger), false},
		"a class":                  {group(plainly), group(classed), true},
		"the server's own class":   {group(classed), group(plainly), false},
		"a topology":               {group(plainly), group(topology), true},
		"no topology any more":     {group(topology), group(plainly), true},
		"a topology that is there": {group(topology), group(topology), false},
	} {
		if got := groupReplacement(test.live, test.wanted) != nil; got != test.anew {
			t.Errorf("%s: anew is %v, want %v", name, got, test.anew)
		}
	}
}
