package cachelocality_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/args"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/plugins/cachelocality"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/registry"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/schedulertest"
)

// start starts a scheduler with the plugin on the nodes.
func start(t *testing.T, yaml string, nodes ...*v1.Node) *schedulertest.Lab {
	t.Helper()
	return startWith(t, &cachelocality.Factory{}, yaml, nodes...)
}

func startWith(t *testing.T, factory *cachelocality.Factory, yaml string, nodes ...*v1.Node) *schedulertest.Lab {
	t.Helper()
	client := schedulertest.NewClient()
	for _, n := range nodes {
		if _, err := client.CoreV1().Nodes().Create(t.Context(), n, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return schedulertest.Start(t, client, schedulertest.Options{
		Plugins: []registry.Plugin{{Name: cachelocality.Name, New: factory.New}},
		Args:    map[string]string{cachelocality.Name: yaml},
	})
}

func node(name string, labels, annotations map[string]string) *v1.Node {
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: labels, Annotations: annotations}}
}

func pod(name string, labels, annotations map[string]string) *v1.Pod {
	p := st.MakePod().Name(name).Namespace(schedulertest.Namespace).UID(name).Labels(labels).Obj()
	p.Annotations = annotations
	return p
}

type m = map[string]string

func TestPlacement(t *testing.T) {
	t.Parallel()
	const warm, drained = "cache/warm-for", "cache/drained"
	own := args.PodDatasets
	tests := []struct {
		name  string
		args  string
		nodes []*v1.Node
		pod   *v1.Pod
		want  string
	}{
		{
			"the warm node", "",
			[]*v1.Node{node("a", nil, nil), node("b", m{warm: "imagenet"}, nil), node("c", m{warm: "other"}, nil)},
			pod("p", m{"dataset": "imagenet"}, nil), "b",
		},
		{
			"not the warm node that drains", "",
			[]*v1.Node{node("a", m{warm: "imagenet", drained: "true"}, nil), node("b", nil, nil)},
			pod("p", m{"dataset": "imagenet"}, nil), "b",
		},
		{
			"draining by a word that nobody expected", "",
			[]*v1.Node{node("a", m{warm: "imagenet", drained: "yes"}, nil), node("b", nil, nil)},
			pod("p", m{"dataset": "imagenet"}, nil), "b",
		},
		{
			"drained=false is not draining", "",
			[]*v1.Node{node("a", m{warm: "imagenet", drained: "false"}, nil), node("b", nil, nil)},
			pod("p", m{"dataset": "imagenet"}, nil), "a",
		},
		{
			"several keys of draining", "drainedKeys: [x/one, x/two]",
			[]*v1.Node{node("a", m{warm: "imagenet", "x/two": ""}, nil), node("b", m{drained: "true"}, nil)},
			pod("p", m{"dataset": "imagenet"}, nil), "b",
		},
		{
			"more of a set", "",
			[]*v1.Node{node("a", nil, m{warm: "x"}), node("b", nil, m{warm: "x,y,other"}), node("c", m{warm: "z"}, nil)},
			pod("p", nil, m{own: "x, y, z"}), "b",
		},
		{
			"more bytes, not more datasets", "",
			[]*v1.Node{node("a", nil, m{warm: "small,tiny"}), node("b", m{warm: "large"}, nil)},
			pod("p", nil, m{own: "large=100Gi, small=2Gi, tiny=1Mi"}), "b",
		},
		{
			"more of the one dataset", "",
			[]*v1.Node{node("a", nil, m{warm: "large=10Gi"}), node("b", nil, m{warm: "large=60Gi"}), node("c", nil, m{warm: "large=everything"})},
			pod("p", nil, m{own: "large=100Gi"}), "b",
		},
		{
			"a node that is warm by a thousandth is better than a cold one", "",
			[]*v1.Node{node("a", nil, nil), node("b", nil, m{warm: "large=100Mi"})},
			pod("p", nil, m{own: "large=100Gi"}), "b",
		},
		{
			"label and annotation add up", "",
			[]*v1.Node{node("a", nil, m{warm: "x"}), node("b", m{warm: "y"}, m{warm: "x"})},
			pod("p", m{"dataset": "x"}, m{own: "y"}), "b",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			lab := start(t, test.args, test.nodes...)
			lab.Create(t, test.pod)
			if got := lab.Bound(t, "p").Spec.NodeName; got != test.want {
				t.Errorf("the pod is on node %q, want %q", got, test.want)
			}
		})
	}
}

// TestUnconcerned holds that a pod that names no datasets costs one PreFilter and
// one PreScore: nothing of ours runs per node, and draining is not its business.
func TestUnconcerned(t *testing.T) {
	t.Parallel()
	lab := start(t, "", node("a", m{"cache/drained": "true", "cache/warm-for": "x"}, nil), node("b", m{"cache/drained": "true"}, nil))
	lab.Create(t, pod("p", m{"app": "web"}, nil))
	lab.Bound(t, "p")
	for point, want := range map[string]int{"PreFilter": 1, "Filter": 0, "PreScore": 1, "Score": 0, "ScoreExtensionNormalize": 0} {
		if got := lab.Calls(t, cachelocality.Name, point); got != want {
			t.Errorf("%s ran %d times, want %d", point, got, want)
		}
	}
	// The same lab shows that the counting counts.
	lab.Create(t, pod("q", m{"dataset": "x"}, nil))
	lab.Pending(t, "q", cachelocality.ReasonDrained)
	if got := lab.Calls(t, cachelocality.Name, "Filter"); got != 2 {
		t.Errorf("Filter ran %d times for a pod with datasets on two nodes", got)
	}
}

func TestSignature(t *testing.T) {
	t.Parallel()
	lab := start(t, "", node("a", nil, nil))
	sign := func(p *v1.Pod) string {
		p.Spec.SchedulerName = "test"
		return string(lab.Framework("test").SignPod(t.Context(), p))
	}
	plain := sign(pod("p", m{"app": "web"}, nil))
	if plain == "" || plain != sign(pod("q", m{"app": "shop"}, nil)) {
		t.Errorf("pods without datasets are not the same: %q", plain)
	}
	x := sign(pod("p", m{"dataset": "x"}, nil))
	if x == "" || x == plain || x == sign(pod("p", m{"dataset": "y"}, nil)) {
		t.Error("other datasets, and the same signature")
	}
	if x != sign(pod("q", nil, m{args.PodDatasets: "x"})) {
		t.Error("the same dataset by another key, and another signature")
	}
	if sign(pod("p", nil, m{args.PodDatasets: "x=1Gi"})) == sign(pod("p", nil, m{args.PodDatasets: "x=2Gi"})) {
		t.Error("another size, and the same signature")
	}
	if got := sign(pod("p", nil, m{args.PodDatasets: "x=huge"})); got != "" {
		t.Errorf("a pod that cannot be read is signed %q", got)
	}
}

// TestHotNode holds that a warm node is not overrun, and that it counts anew once
// its label changes.
func TestHotNode(t *testing.T) {
	t.Parallel()
	factory := &cachelocality.Factory{}
	lab := startWith(t, factory, "penaltyPerPod: 30", node("a", nil, m{"cache/warm-for": "x=100Gi"}), node("b", nil, m{"cache/warm-for": "x=80Gi"}))
	next := 0
	place := func() string {
		next++
		name := fmt.Sprintf("p%d", next)
		lab.Create(t, pod(name, nil, m{args.PodDatasets: "x=100Gi"}))
		return lab.Bound(t, name).Spec.NodeName
	}
	// a has 100, 70, 40, 10, 0 points, and b 80, 50, 20.
	got := ""
	for range 6 {
		got += place()
	}
	if want := "ababab"; got != want {
		t.Errorf("pods went to %s, want %s", got, want)
	}
	lab.UpdateNode(t, "b", func(n *v1.Node) { n.Annotations["cache/warm-for"] = "x=90Gi" })
	err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		return factory.Placed("b") == 0, nil
	})
	if err != nil {
		t.Fatalf("node b has a count of %d although what it says has changed: %v", factory.Placed("b"), err)
	}
	// b has 90 points again, then 60 and 30, and a has 10.
	if got := place() + place() + place(); got != "bbb" {
		t.Errorf("pods went to %s, want bbb", got)
	}
}

// TestWakes holds that a pod wakes when it should, and not before.
func TestWakes(t *testing.T) {
	t.Parallel()
	lab := start(t, "", node("a", m{"cache/drained": "true"}, nil), node("b", m{"cache/drained": "true"}, nil))
	lab.Create(t, pod("p", m{"dataset": "x"}, nil))
	lab.Pending(t, "p", cachelocality.ReasonDrained)
	// None of these is a reason to try again: another label, a pod that goes, and a
	// node that comes draining.
	lab.UpdateNode(t, "a", func(n *v1.Node) { n.Labels["unrelated"] = "yes" })
	lab.UpdateNode(t, "a", func(n *v1.Node) { n.Labels["cache/warm-for"] = "x" })
	if _, err := lab.Client.CoreV1().Nodes().Create(t.Context(), node("c", m{"cache/drained": "true"}, nil), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	lab.Create(t, pod("other", nil, nil))
	lab.Bound(t, "other")
	lab.Delete(t, "other")
	// This is one. Events come in order, so that what woke the pod earlier would
	// have cost one more attempt than these three: p, other, p.
	lab.UpdateNode(t, "b", func(n *v1.Node) { delete(n.Labels, "cache/drained") })
	if got := lab.Bound(t, "p").Spec.NodeName; got != "b" {
		t.Errorf("the pod is on node %q, want b", got)
	}
	if got := lab.Calls(t, cachelocality.Name, "PreFilter"); got != 3 {
		t.Errorf("%d attempts, want 3", got)
	}
}

// TestUnreadable holds that a pod whose datasets cannot be read says how they are
// written, and goes on once they are.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	lab := start(t, "", node("a", nil, nil))
	for name, test := range map[string]struct{ value, want string }{
		"unit":   {"x=12Gigs", `"12Gigs" is no quantity above zero`},
		"zero":   {"x=0", "no quantity above zero"},
		"mixed":  {"x=1Gi,y", "give all a size or none"},
		"twice":  {"x=1Gi,x=2Gi", "two sizes"},
		"empty":  {"x,,y", "no list of datasets"},
		"spaces": {"x y", "no list of datasets"},
		"much":   {"x=7Ei,y=7Ei", "more than 8Ei"},
	} {
		lab.Create(t, pod(name, nil, m{args.PodDatasets: test.value}))
		lab.Pending(t, name, "Unschedulable", test.want)
	}
	lab.Update(t, "unit", func(p *v1.Pod) { p.Annotations[args.PodDatasets] = "x=12Gi" })
	lab.Bound(t, "unit")
}
