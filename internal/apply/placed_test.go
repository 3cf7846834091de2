package apply

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-sched/kubectl-sched/policy"
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
	l.eventually("the service account", func(ctx context.Context) bool {
		_, err := l.client.Kube.CoreV1().ServiceAccounts(l.namespace).Get(ctx, "default", metav1.GetOptions{})
		return err == nil
	})
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
