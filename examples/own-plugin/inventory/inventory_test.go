package inventory_test

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-sched/kubectl-sched/examples/own-plugin/inventory"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/registry"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/schedulertest"
)

// nodes returns so many nodes, of which the first are retired.
func nodes(n, retired int) []runtime.Object {
	var out []runtime.Object
	for i := range n {
		node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", i), Labels: map[string]string{}}}
		if i < retired {
			node.Labels[inventory.RetiredLabel] = "true"
		}
		out = append(out, node)
	}
	return out
}

func start(t *testing.T, args string, objects []runtime.Object) *schedulertest.Lab {
	t.Helper()
	return schedulertest.Start(t, schedulertest.NewClient(objects...), schedulertest.Options{
		Plugins: append(registry.Bundled(), registry.Plugin{Name: inventory.Name, New: inventory.New}),
		Args:    map[string]string{inventory.Name: args},
	})
}

func pod(name string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Image: "i"}}}}
}

// TestRetired holds that pods are kept off retired nodes, that they say why, and
// that they are placed as soon as one is back, wherever the inventory is asked.
func TestRetired(t *testing.T) {
	t.Parallel()
	for _, ask := range []string{inventory.AskPerPod, inventory.AskPerNode} {
		t.Run(ask, func(t *testing.T) {
			t.Parallel()
			l := start(t, "ask: "+ask, nodes(3, 2))
			l.Create(t, pod("a"))
			if got := l.Bound(t, "a").Spec.NodeName; got != "node-2" {
				t.Errorf("a is on %s, and only node-2 is not retired", got)
			}
			l.UpdateNode(t, "node-2", func(n *v1.Node) { n.Labels[inventory.RetiredLabel] = "true" })
			l.Create(t, pod("b"))
			l.Pending(t, "b", "3 "+inventory.ReasonRetired)
			l.UpdateNode(t, "node-1", func(n *v1.Node) { delete(n.Labels, inventory.RetiredLabel) })
			if got := l.Bound(t, "b").Spec.NodeName; got != "node-1" {
				t.Errorf("b is on %s, and only node-1 is not retired", got)
			}
		})
	}
}

// TestArgs holds that a mistake in the arguments keeps the scheduler from starting.
func TestArgs(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"ask: perCluster":          `ask is "perCluster"`,
		"latency: 2s":              "latency is 2s",
		"latncy: 1ms":              `unknown field "latncy"`,
		"latency: soon":            "invalid duration",
		"ask: perPod\nask: perPod": `key "ask" already set`,
	} {
		_, err := inventory.New(t.Context(), &runtime.Unknown{Raw: []byte(text)}, nil, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}
