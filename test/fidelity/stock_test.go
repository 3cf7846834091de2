package fidelity_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/kubectl-sched/kubectl-sched/internal/simulate"
)

// stockCases is how many cases the stock scheduler is held to, pod by pod.
const stockCases = 4

// TestSimulatorPlacesAsStockScheduler holds that a pod goes where the stock
// kube-scheduler puts it, or waits with the same message: one pod at a time, from a
// snapshot that was captured before.
func TestSimulatorPlacesAsStockScheduler(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	placed, waiting := 0, 0
	for n := range stockCases {
		c := generate("stock", *seed+1000, n)
		if err := l.set(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		for _, s := range c.steps {
			for _, pod := range s.create {
				if pod.Spec.SchedulerName != plainProfile || len(pod.Spec.SchedulingGates) > 0 || pod.Spec.NodeName != "" || pod.Spec.PriorityClassName != "" {
					continue // preemption of the stock scheduler works in the background
				}
				pod.Spec.SchedulerName = corev1.DefaultSchedulerName
				if l.judge(t, pod) {
					placed++
				} else {
					waiting++
				}
			}
			if s.change != nil || s.add != nil {
				if err := l.take(t.Context(), c, s); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := l.clear(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("seed %d, cases 0 to %d: %d pods were placed and %d were not", *seed+1000, stockCases-1, placed, waiting)
	if placed == 0 || waiting == 0 {
		t.Errorf("%d pods were placed and %d were not, want some of both", placed, waiting)
	}
}

// judge has both place the pod, and reports whether it was placed.
func (l *lab) judge(t *testing.T, pod *corev1.Pod) bool {
	t.Helper()
	s, err := l.snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	decided, err := l.decide(t.Context(), pod)
	if err != nil {
		t.Fatal(err)
	}
	d := &listener{}
	w := world(t, s, d)
	defer w.Close()
	if err := w.Take(t.Context(), simulate.Rollout{Object: pod}); err != nil {
		t.Fatal(err)
	}
	name := pod.Namespace + "/" + pod.Name
	if decided.Spec.NodeName != "" {
		if !slices.Contains(d.best, decided.Spec.NodeName) {
			t.Errorf("%s: the scheduler chose %s, the simulator %v", name, decided.Spec.NodeName, d.best)
		}
		return true
	}
	said := message(decided)
	for _, p := range w.Outcome().Pods {
		if p.Pod.Namespace != pod.Namespace || p.Pod.Name != pod.Name {
			continue
		}
		if p.Attempt == nil || p.Attempt.Message != said {
			t.Errorf("%s:\n  scheduler: %s\n  simulator: %+v", name, said, p.Attempt)
		}
		return false
	}
	t.Errorf("%s is not in the outcome", name)
	return false
}

// decide creates the pod, and returns it when the scheduler has said something of it.
func (l *lab) decide(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	pods := l.client.CoreV1().Pods(pod.Namespace)
	if _, err := pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	var found *corev1.Pod
	err := l.until(ctx, clearLimit, func(ctx context.Context) (bool, error) {
		list, err := pods.List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", pod.Name).String()})
		if err != nil || len(list.Items) == 0 {
			return false, err
		}
		found = &list.Items[0]
		return found.Spec.NodeName != "" && found.Status.StartTime != nil || found.Spec.NodeName == "" && message(found) != "", nil
	})
	if err != nil {
		return nil, fmt.Errorf("the scheduler says nothing of %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return found, nil
}

// message is why the pod is not placed.
func message(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Message
		}
	}
	return ""
}
