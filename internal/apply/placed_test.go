package apply

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// document is what the lab's admission policies are said to be compiled from.
func (l *lab) document(key string) Source {
	return Source{Placement: &policy.Placement{Policies: []policy.Policy{{
		Name: "test", Level: policy.Mandatory,
		Workloads: policy.Workloads{Namespaces: []string{l.namespace}, Pods: &policy.Pods{Labels: map[string]policy.Values{"app": {"placed"}}}},
		Tolerate:  &policy.Tolerate{Taints: map[string]policy.Taint{"one": {Key: key}}},
	}}}}
}

func TestStatusCountsPods(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	a := l.applier(nil)
	status := func() *AdmissionStatus {
		t.Helper()
		s, err := a.Status(t.Context(), l.state())
		if err != nil {
			t.Fatal(err)
		}
		if s.Drifted() || s.Admission == nil {
			t.Fatalf("status is %+v", s)
		}
		return s.Admission
	}
	l.untilPodsMay(l.namespace)
	l.pod(l.namespace, "before")
	web := strings.ReplaceAll(deployment("web"), "app: web", "app: placed")
	l.create(web)
	l.eventually("the pods of the Deployment", func(ctx context.Context) bool {
		list, err := l.client.Kube.CoreV1().Pods(l.namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=placed"})
		return err == nil && len(list.Items) == 3
	})
	other := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/main:1"}}}}
	if _, err := l.client.Kube.CoreV1().Pods(l.namespace).Create(t.Context(), other, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	r := l.admit(a, true, l.placing("c1", "one"))
	r.Source = l.document("one")
	l.step(a, r)
	if d := cmp.Diff(&AdmissionStatus{
		Step: r.Step, Content: "c1", Pods: 4, Policies: []PolicyStatus{{Policy: "test", Selected: 3, Pending: 3, Placed: map[int]int{}}},
	}, status()); d != "" {
		t.Errorf("observing (-want +got):\n%s", d)
	}

	r = l.admit(a, false, l.placing("c1", "one"))
	r.Source = l.document("one")
	l.step(a, r)
	l.pod(l.namespace, "first")
	r = l.admit(a, false, l.placing("c2", "two"))
	r.Source = l.document("two")
	l.step(a, r)
	for i := range 2 {
		l.pod(l.namespace, fmt.Sprintf("second-%d", i))
	}
	if d := cmp.Diff(&AdmissionStatus{
		Step: r.Step, Content: "c2", Pods: 7, Placed: 3,
		Policies: []PolicyStatus{{Policy: "test", Selected: 6, Predating: 4, Placed: map[int]int{2: 1, 3: 2}}},
	}, status()); d != "" {
		t.Errorf("acting (-want +got):\n%s", d)
	}
	l.delete(a)
}

// TestStatusCountsContradictions holds what is said while the set observes of a pod
// whose own node selector excludes the policy against what the API server makes of
// such a pod as soon as the set acts: it gives it the requirement and does not
// refuse it, and then no node fits it.
func TestStatusCountsContradictions(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	a := l.applier(nil)
	l.untilPodsMay(l.namespace)
	create := func(name, arch string) *corev1.Pod {
		t.Helper()
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
			NodeSelector: map[string]string{"disk": "fast"}, Containers: []corev1.Container{{Name: "main", Image: "example.com/main:1"}},
		}}
		if arch != "" {
			pod.Spec.NodeSelector[corev1.LabelArchStable] = arch
		}
		made, err := l.client.Kube.CoreV1().Pods(l.namespace).Create(t.Context(), pod, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	create("indifferent", "")
	create("contrary", "arm64")
	create("content", "amd64")

	at := func(line int) policy.Positions {
		return policy.Positions{"": diag.At(diag.Pos{File: "policy.cue", Line: line, Column: 1})}
	}
	workloads := policy.Workloads{Namespaces: []string{l.namespace}}
	placement := &policy.Placement{Policies: []policy.Policy{
		{Name: "intel", Level: policy.Mandatory, Workloads: workloads, Positions: at(1), Nodes: &policy.Nodes{Require: &policy.NodeTerm{Arch: []string{"amd64"}}}},
		{Name: "zoned", Level: policy.Mandatory, Workloads: workloads, Positions: at(2), Nodes: &policy.Nodes{Require: &policy.NodeTerm{Zones: []string{"a"}}}},
	}}
	plan, findings := compiler.Compile(compiler.Request{Placement: placement, Surface: policy.SurfaceAdmission, Set: l.set.Label(), Capabilities: capability.Capabilities{Minor: 37}})
	if findings.HasErrors() {
		t.Fatal(findings)
	}
	r := l.admit(a, true, plan.Objects)
	r.Source = Source{Placement: placement}
	l.step(a, r)
	status, err := a.Status(t.Context(), l.state())
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]PolicyStatus{
		{Policy: "intel", Selected: 3, Pending: 2, Nowhere: 1, Placed: map[int]int{}},
		{Policy: "zoned", Selected: 3, Pending: 3, Placed: map[int]int{}},
	}, status.Admission.Policies); d != "" {
		t.Errorf("observing (-want +got):\n%s", d)
	}

	r = l.admit(a, false, plan.Objects)
	r.Source = Source{Placement: placement}
	l.step(a, r)
	required := func(pod *corev1.Pod) (keys []string) {
		if pod.Spec.Affinity != nil && pod.Spec.Affinity.NodeAffinity != nil {
			for _, e := range pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchExpressions {
				keys = append(keys, e.Key)
			}
		}
		return keys
	}
	for name, test := range map[string]struct {
		arch string
		want []string
	}{
		"indifferent-again": {"", []string{corev1.LabelArchStable, corev1.LabelTopologyZone}},
		"contrary-again":    {"arm64", []string{corev1.LabelArchStable, corev1.LabelTopologyZone}},
		"content-again":     {"amd64", []string{corev1.LabelTopologyZone}},
	} {
		if d := cmp.Diff(test.want, required(create(name, test.arch))); d != "" {
			t.Errorf("%s is required (-want +got):\n%s", name, d)
		}
	}
	l.delete(a)
}
