package scheduler_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"

	"github.com/kubectl-sched/kubectl-sched/internal/sandbox/sandboxtest"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gangkey"
)

const (
	// patience limits every wait: the machine may be busy with other tests.
	patience = 90 * time.Second
	// poolLabel keeps the pods of a test on its own nodes.
	poolLabel = "test.example/pool"
)

// lab is a namespace and nodes of one test's own.
type lab struct {
	*testing.T
	*plane
	namespace string
}

// newLab makes a namespace and so many nodes, each of which takes one pod.
func newLab(t *testing.T, p *plane, nodes int) *lab {
	t.Helper()
	l := &lab{T: t, plane: p, namespace: fmt.Sprintf("lab-%d", p.labs.Add(1))}
	if err := sandboxtest.MakeNamespace(t.Context(), p.client, l.namespace, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			l.dump()
		}
		l.clear()
	})
	for i := range nodes {
		l.node(i, nil)
	}
	return l
}

// node makes one node for one pod, with labels beside its pool's.
func (l *lab) node(i int, labels map[string]string) {
	l.Helper()
	l.nodeFor(i, 1, labels)
}

// nodeFor makes one node for so many pods.
func (l *lab) nodeFor(i int, pods int64, labels map[string]string) {
	l.Helper()
	all := map[string]string{poolLabel: l.namespace}
	maps.Copy(all, labels)
	capacity := corev1.ResourceList{
		corev1.ResourceCPU: *resource.NewQuantity(pods, resource.DecimalSI), corev1.ResourceMemory: resource.MustParse("4Gi"), corev1.ResourcePods: *resource.NewQuantity(10*pods, resource.DecimalSI),
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: l.nodeName(i), Labels: all},
		Status: corev1.NodeStatus{
			Capacity: capacity, Allocatable: capacity,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"}},
		},
	}
	if _, err := l.client.CoreV1().Nodes().Create(l.Context(), node, metav1.CreateOptions{}); err != nil {
		l.Fatal(err)
	}
}

func (l *lab) nodeName(i int) string { return fmt.Sprintf("%s-%02d", l.namespace, i) }

// clear takes away the test's nodes, and its pods with them.
func (l *lab) clear() {
	ctx, cancel := afterwards()
	defer cancel()
	now := metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}
	for _, err := range []error{
		l.client.CoreV1().Pods(l.namespace).DeleteCollection(ctx, now, metav1.ListOptions{}),
		l.client.CoreV1().Nodes().DeleteCollection(ctx, now, metav1.ListOptions{LabelSelector: poolLabel + "=" + l.namespace}),
	} {
		if err != nil {
			l.Errorf("clear up: %v", err)
		}
	}
}

// afterwards returns a context for what is also done when the test is over.
func afterwards() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), patience)
}

// besides runs a scheduler of the test's own, with the configuration on the sandbox,
// until the test is over.
func (l *lab) besides(config string, more ...string) {
	l.Helper()
	binary, err := sandboxtest.SchedulerBinary()
	if err != nil {
		l.Fatal(err)
	}
	const name = "own"
	dir := l.TempDir()
	command, err := startProcess(binary, dir, name, config, more...)
	if err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() {
		if err := command.Process.Kill(); err != nil {
			l.Error(err)
		}
		_ = command.Wait() // killed is how it ends
		if data, err := os.ReadFile(filepath.Join(dir, name+".log")); err == nil && l.Failed() {
			l.Logf("the test's own scheduler:\n%s\n%s", config, tail(string(data), 40))
		}
	})
}

// dump shows what a failed test left.
func (l *lab) dump() {
	for _, pod := range l.pods("") {
		l.Logf("pod %s on %q: %+v", pod.Name, pod.Spec.NodeName, pod.Status.Conditions)
	}
	ctx, cancel := afterwards()
	defer cancel()
	events, err := l.client.EventsV1().Events(l.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	for _, e := range events.Items {
		l.Logf("event on %s %s: %s: %s", e.Regarding.Kind, e.Regarding.Name, e.Reason, e.Note)
	}
}

// podGroup creates a PodGroup object.
func (l *lab) podGroup(name string, minMember int) {
	l.Helper()
	l.podGroupOf(podGroups, name, minMember, 0)
}

// podGroupOf creates a PodGroup object of one of their groups, with a timeout of
// its own if that is not 0.
func (l *lab) podGroupOf(gvr schema.GroupVersionResource, name string, minMember int, timeout time.Duration) {
	l.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": gvr.GroupVersion().String(), "kind": "PodGroup",
		"metadata": map[string]any{"name": name},
		"spec":     map[string]any{"minMember": int64(minMember), "scheduleTimeoutSeconds": int64(timeout.Seconds())},
	}}
	if _, err := l.dynamic.Resource(gvr).Namespace(l.namespace).Create(l.Context(), object, metav1.CreateOptions{}); err != nil {
		l.Fatal(err)
	}
}

// pod returns a pod that fills a node of the test's.
func (l *lab) pod(name string, labels map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: l.namespace, Labels: labels},
		Spec:       l.podSpec(),
	}
}

func (l *lab) podSpec() corev1.PodSpec {
	return corev1.PodSpec{
		SchedulerName: schedulerName,
		NodeSelector:  map[string]string{poolLabel: l.namespace},
		Containers: []corev1.Container{{
			Name: "c", Image: "none",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("900m")}},
		}},
	}
}

// member returns a member of the gang.
func (l *lab) member(gang string, i int) *corev1.Pod {
	return l.pod(fmt.Sprintf("%s-%d", gang, i), map[string]string{gangkey.Label: gang})
}

func (l *lab) create(pod *corev1.Pod) {
	l.Helper()
	if _, err := l.client.CoreV1().Pods(l.namespace).Create(l.Context(), pod, metav1.CreateOptions{}); err != nil {
		l.Fatal(err)
	}
}

func (l *lab) delete(names ...string) {
	l.Helper()
	for _, name := range names {
		if err := l.client.CoreV1().Pods(l.namespace).Delete(l.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}); err != nil {
			l.Fatal(err)
		}
	}
}

// replace deletes the pod of that name, which has a node, and returns when another
// of the same name has one. As an operator does, it makes the pod again where that
// is gone: kwok deletes by name alone, and when a deletion is under way may take
// the new pod for the old.
func (l *lab) replace(pod *corev1.Pod) {
	l.Helper()
	pods := l.client.CoreV1().Pods(l.namespace)
	old, err := pods.Get(l.Context(), pod.Name, metav1.GetOptions{})
	if err != nil {
		l.Fatal(err)
	}
	l.delete(pod.Name)
	l.until("a new pod "+pod.Name+" on a node", func(ctx context.Context) (bool, string) {
		got, err := pods.Get(ctx, pod.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			got, err = pods.Create(ctx, pod.DeepCopy(), metav1.CreateOptions{})
		}
		if err != nil {
			return false, err.Error()
		}
		return got.UID != old.UID && got.Spec.NodeName != "", fmt.Sprintf("%s on %q: %v", got.UID, got.Spec.NodeName, got.Status.Conditions)
	})
}

// pods returns the pods whose names begin with prefix.
func (l *lab) pods(prefix string) []corev1.Pod {
	ctx, cancel := afterwards()
	defer cancel()
	list, err := l.client.CoreV1().Pods(l.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		l.Error(err)
		return nil
	}
	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return !strings.HasPrefix(p.Name, prefix) })
}

// bound returns the names of the pods with a node whose names begin with prefix.
func (l *lab) bound(prefix string) []string {
	var names []string
	for _, pod := range l.pods(prefix) {
		if pod.Spec.NodeName != "" {
			names = append(names, pod.Name)
		}
	}
	return names
}

// until waits for check, and fails the test with what check said last.
func (l *lab) until(what string, check func(context.Context) (bool, string)) {
	l.Helper()
	last := ""
	err := wait.PollUntilContextTimeout(l.Context(), 50*time.Millisecond, patience, true, func(ctx context.Context) (done bool, _ error) {
		done, last = check(ctx)
		return done, nil
	})
	if err != nil {
		l.Fatalf("wait for %s: %v; last: %s", what, err, last)
	}
}

// untilBound waits until exactly n pods with prefix have a node.
func (l *lab) untilBound(prefix string, n int) {
	l.Helper()
	l.until(fmt.Sprintf("%d bound pods of %q", n, prefix), func(context.Context) (bool, string) {
		bound := l.bound(prefix)
		return len(bound) == n, fmt.Sprint(bound)
	})
}

// untilUnschedulable waits until n pods with prefix say that they do not fit.
func (l *lab) untilUnschedulable(prefix string, n int) {
	l.Helper()
	l.until(fmt.Sprintf("%d unschedulable pods of %q", n, prefix), func(context.Context) (bool, string) {
		count := 0
		for _, pod := range l.pods(prefix) {
			for _, c := range pod.Status.Conditions {
				if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
					count++
				}
			}
		}
		return count == n, fmt.Sprint(count)
	})
}

// untilEvent waits for an event with the reason whose note has all of the parts.
func (l *lab) untilEvent(kind, name, reason string, parts ...string) {
	l.Helper()
	l.until(fmt.Sprintf("event %s on %s %s with %q", reason, kind, name, parts), func(ctx context.Context) (bool, string) {
		events, err := l.client.EventsV1().Events(l.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err.Error()
		}
		var notes []string
		for _, e := range events.Items {
			if e.Regarding.Kind != kind || e.Regarding.Name != name || e.Reason != reason {
				continue
			}
			notes = append(notes, e.Note)
			if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(e.Note, part) }) {
				return true, ""
			}
		}
		return false, strings.Join(notes, "\n")
	})
}

// noLeak fails the test if a stored pod has a scheduling group.
func (l *lab) noLeak() {
	l.Helper()
	for _, pod := range l.pods("") {
		if pod.Spec.SchedulingGroup != nil {
			l.Errorf("stored pod %s has the scheduling group %v", pod.Name, pod.Spec.SchedulingGroup)
		}
	}
}
