package scheduler_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/args"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/plugins/cachelocality"
)

const (
	warmFor     = "cache/warm-for"
	drained     = "cache/drained"
	canaryLabel = "test.example/canary"
)

// TestWarmNodes holds that a profile with CacheLocality places pods where their
// data is, never on a node that drains its cache, and on that again once it is done.
func TestWarmNodes(t *testing.T) {
	t.Parallel()
	eachPlane(t, func(t *testing.T, p *plane) {
		l := newLab(t, p, 0)
		for i, labels := range []map[string]string{
			{warmFor: "red"}, {}, {warmFor: "green"}, {warmFor: "blue"}, {}, {warmFor: "red", drained: "true"},
		} {
			l.node(i, labels)
		}
		l.untilNodesKnown(6)
		// In another order than the nodes', and each while colder nodes are free.
		for _, want := range []struct {
			dataset string
			node    int
		}{{"blue", 3}, {"red", 0}, {"green", 2}} {
			l.create(l.reader(want.dataset, want.dataset))
			if got := l.untilPlaced(want.dataset); got != l.nodeName(want.node) {
				t.Errorf("the pod that reads %s is on %s, want %s, which has it warm", want.dataset, got, l.nodeName(want.node))
			}
		}
		// The only node left that has it warm is draining.
		for _, name := range []string{"more-0", "more-1"} {
			l.create(l.reader(name, "red"))
			if got := l.untilPlaced(name); got == l.nodeName(5) {
				t.Errorf("%s is on %s, which is draining its cache", name, got)
			}
		}
		l.create(l.reader("late", "red"))
		l.untilUnschedulable("late", 1)
		l.untilEvent("Pod", "late", "FailedScheduling", cachelocality.ReasonDrained)
		patch := []byte(`{"metadata":{"labels":{"` + drained + `":null}}}`)
		if _, err := l.client.CoreV1().Nodes().Patch(t.Context(), l.nodeName(5), types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		if got := l.untilPlaced("late"); got != l.nodeName(5) {
			t.Errorf("late is on %s, want %s", got, l.nodeName(5))
		}
	})
}

// reader returns a pod that fills a node and reads the dataset.
func (l *lab) reader(name, dataset string) *corev1.Pod {
	pod := l.pod(name, nil)
	pod.Annotations = map[string]string{args.PodDatasets: dataset}
	pod.Spec.SchedulerName = cacheName
	return pod
}

// untilPlaced waits until the pod has a node, and returns its name.
func (l *lab) untilPlaced(name string) string {
	l.Helper()
	var node string
	l.until("a node for "+name, func(ctx context.Context) (bool, string) {
		pod, err := l.client.CoreV1().Pods(l.namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		node = pod.Spec.NodeName
		return node != "", fmt.Sprint(pod.Status.Conditions)
	})
	return node
}

// untilNodesKnown waits until the scheduler knows all nodes before the one
// numbered next as ready. It makes that one and a pod for it: the scheduler learns
// of nodes in the order of their changes.
func (l *lab) untilNodesKnown(next int) {
	l.Helper()
	l.untilNodesKnownTo(schedulerName, next)
}

// untilNodesKnownTo is untilNodesKnown for the scheduler with the profile.
func (l *lab) untilNodesKnownTo(scheduler string, next int) {
	l.Helper()
	l.until("nodes without taints", func(ctx context.Context) (bool, string) {
		nodes, err := l.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: poolLabel + "=" + l.namespace})
		if err != nil {
			return false, err.Error()
		}
		for _, node := range nodes.Items {
			if len(node.Spec.Taints) > 0 {
				return false, fmt.Sprintf("%s has %v", node.Name, node.Spec.Taints)
			}
		}
		return len(nodes.Items) == next, fmt.Sprintf("%d nodes", len(nodes.Items))
	})
	l.node(next, map[string]string{canaryLabel: ""})
	canary := l.pod("canary", nil)
	canary.Spec.SchedulerName = scheduler
	canary.Spec.NodeSelector[canaryLabel] = ""
	l.create(canary)
	l.untilPlaced("canary")
}
