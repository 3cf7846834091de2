package cachelocality

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"pgregory.net/rapid"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/args"
)

func plugin(t testing.TB) *Plugin {
	t.Helper()
	a, err := args.FromObject[*args.CacheLocalityArgs](Name, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &Plugin{args: a, heat: newHeat(a.WarmKeys)}
}

// TestWarmIsTheShareOfBytes holds the share to its definition: the sum over the
// pod's datasets of what the node has of each, by the sum of their sizes.
func TestWarmIsTheShareOfBytes(t *testing.T) {
	t.Parallel()
	p := plugin(t)
	rapid.Check(t, func(t *rapid.T) {
		var wants, has []string
		var total, warm int64
		for i := range rapid.IntRange(1, args.MaxDatasets).Draw(t, "datasets") {
			size := rapid.Int64Range(1, 1<<40).Draw(t, "size")
			total += size
			wants = append(wants, fmt.Sprintf("d%d=%d", i, size))
			switch rapid.IntRange(0, 2).Draw(t, "warm") {
			case 1:
				warm += size
				has = append(has, fmt.Sprintf("d%d", i))
			case 2:
				part := rapid.Int64Range(1, 1<<41).Draw(t, "part")
				warm += min(part, size)
				has = append(has, fmt.Sprintf("d%d=%d", i, part))
			}
		}
		has = append(has, "foreign=1Ti")
		d, err := p.read(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{args.PodDatasets: strings.Join(wants, ",")}}})
		if err != nil {
			t.Fatal(err)
		}
		got := d.warm(&v1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"cache/warm-for": strings.Join(has, ", ")}}}, p.args.WarmKeys)
		want := float64(warm) / float64(total) * wholly
		if float64(got) < want-1 || float64(got) > want+1 {
			t.Errorf("got %d, want %.1f (of %s, warm %s)", got, want, wants, has)
		}
		if (got == 0) != (warm == 0) && want >= 1 {
			t.Errorf("got %d with %d warm bytes", got, warm)
		}
	})
}

// many is a pod, a node and a state as large as they come in earnest.
func many(t testing.TB, p *Plugin) (*v1.Pod, fwk.NodeInfo, fwk.CycleState) {
	t.Helper()
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{args.PodDatasets: "imagenet=120Gi,vocab=2Gi,audio=40Gi,maps=7Gi"}}}
	node := framework.NewNodeInfo()
	labels := map[string]string{"cache/warm-for": "vocab"}
	for i := range 40 {
		labels[fmt.Sprintf("example.com/label-%d", i)] = "value"
	}
	node.SetNode(&v1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: "node", Labels: labels,
		Annotations: map[string]string{"cache/warm-for": "other, imagenet=60Gi, more, and-more, maps, last=3Gi"},
	}})
	p.heat.place("node")
	state := framework.NewCycleState()
	if _, status := p.PreFilter(t.Context(), state, pod, nil); !status.IsSuccess() {
		t.Fatal(status)
	}
	return pod, node, state
}

// TestNoAllocationPerNode is not parallel: it counts the process's allocations.
func TestNoAllocationPerNode(t *testing.T) {
	p := plugin(t)
	pod, node, state := many(t, p)
	if got := testing.AllocsPerRun(1000, func() {
		if s := p.Filter(t.Context(), state, pod, node); !s.IsSuccess() {
			t.Fatal(s)
		}
	}); got != 0 {
		t.Errorf("Filter: %v allocations a node", got)
	}
	if got := testing.AllocsPerRun(1000, func() {
		if score, s := p.Score(t.Context(), state, pod, node); !s.IsSuccess() || score <= 0 {
			t.Fatal(score, s)
		}
	}); got != 0 {
		t.Errorf("Score: %v allocations a node", got)
	}
}

func BenchmarkFilter(b *testing.B) {
	p := plugin(b)
	pod, node, state := many(b, p)
	b.ReportAllocs()
	for b.Loop() {
		p.Filter(b.Context(), state, pod, node)
	}
}

func BenchmarkScore(b *testing.B) {
	p := plugin(b)
	pod, node, state := many(b, p)
	b.ReportAllocs()
	for b.Loop() {
		p.Score(b.Context(), state, pod, node)
	}
}
