package gpumemory

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"pgregory.net/rapid"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/args"
)

// draw returns a random node of a few devices.
func draw(t *rapid.T) memory {
	var m memory
	m.count = rapid.IntRange(1, 4).Draw(t, "devices")
	for i := range m.count {
		m.bytes[i] = rapid.Int64Range(0, 6).Draw(t, "free")
	}
	return m
}

func drawNeed(t *rapid.T) need {
	return need{Bytes: rapid.Int64Range(1, 5).Draw(t, "bytes"), Devices: rapid.IntRange(1, 3).Draw(t, "on")}
}

// fits is the definition: some choice of devices for each pod leaves none below
// zero. It tries all.
func fits(m memory, pods []need) bool {
	if len(pods) == 0 {
		return true
	}
	for set := devices(0); set < 1<<m.count; set++ {
		if set.count() != pods[0].Devices {
			continue
		}
		rest, ok := m, true
		rest.take(pods[0].Bytes, set)
		for i := range m.count {
			ok = ok && (!set.has(i) || rest.bytes[i] >= 0)
		}
		if ok && fits(rest, pods[1:]) {
			return true
		}
	}
	return false
}

func TestHoldsIsExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := draw(t)
		var pods []need
		for range rapid.IntRange(0, 4).Draw(t, "pods") {
			pods = append(pods, drawNeed(t))
		}
		if got, want := m.holds(pods), fits(m, pods); got != want {
			t.Errorf("devices %v hold %v: got %v, want %v", m.bytes[:m.count], pods, got, want)
		}
	})
}

// TestChoose holds that what is chosen fits, is as many as asked for, exists
// whenever Filter says so, and is the preferred.
func TestChoose(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m, n := draw(t), drawNeed(t)
		prefer := rapid.SampledFrom([]args.DevicePreference{args.MostFree, args.BestFit}).Draw(t, "prefer")
		others := []need{drawNeed(t)}
		chosen, ok := m.chooseBeside(n, prefer, others)
		if want := fits(m, []need{n}); ok != want {
			t.Fatalf("got %v, want %v", ok, want)
		}
		if !ok {
			return
		}
		rest := m
		rest.take(n.Bytes, chosen)
		if chosen.count() != n.Devices {
			t.Errorf("%d devices, want %d", chosen.count(), n.Devices)
		}
		for i := range m.count {
			if rest.bytes[i] < 0 {
				t.Errorf("device %d is overdrawn by %d", i, -rest.bytes[i])
			}
		}
		if n.Devices == 1 && fits(m, append(others, n)) && !fits(rest, others) {
			t.Errorf("%v on %v of %v leaves no room for %v, and another device would", n, chosen, m.bytes[:m.count], others)
		}
		plain, _ := m.choose(n, prefer)
		for i := range m.count {
			for j := range m.count {
				if !plain.has(i) || plain.has(j) || m.bytes[j] < n.Bytes {
					continue
				}
				if prefer == args.MostFree && m.bytes[j] > m.bytes[i] || prefer == args.BestFit && m.bytes[j] < m.bytes[i] {
					t.Errorf("%s took device %d and left %d of %v", prefer, i, j, m.bytes[:m.count])
				}
			}
		}
	})
}

// TestChooseBesideTriesEveryDevice holds a case that the property finds seldom:
// both of the devices that are preferred are in the other pod's way.
func TestChooseBesideTriesEveryDevice(t *testing.T) {
	t.Parallel()
	m := memory{count: 3}
	copy(m.bytes[:], []int64{1, 4, 4})
	got, ok := m.chooseBeside(need{Bytes: 1, Devices: 1}, args.MostFree, []need{{Bytes: 4, Devices: 2}})
	if want := devices(0).with(0); !ok || got != want {
		t.Errorf("got devices %v, %v, want %v", got, ok, want)
	}
}

func TestDevicesText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := devices(rapid.Uint64Min(1).Draw(t, "devices"))
		if got, ok := parseDevices(want.String()); !ok || got != want {
			t.Errorf("%s is read as %s", want, got)
		}
	})
	for _, text := range []string{"", "a", "1,", "64", "-1", "1,1", "all", "0x1"} {
		if got, ok := parseDevices(text); ok {
			t.Errorf("%q is read as %s", text, got)
		}
	}
}

// lister is a snapshot of one node.
type lister struct {
	fwk.NodeInfoLister
	node fwk.NodeInfo
}

func (l lister) Get(string) (fwk.NodeInfo, error) { return l.node, nil }

// TestReserveIsReversible holds that any number of trials, in any order, leave the
// ledger as it was, without a call to the API server: there is no client.
func TestReserveIsReversible(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, err := args.FromObject[*args.GPUMemoryArgs](Name, nil)
		if err != nil {
			t.Fatal(err)
		}
		node := framework.NewNodeInfo()
		node.SetNode(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node", Annotations: map[string]string{args.NodeGPUMemory: "16Gi,16Gi"}}})
		p := &Plugin{
			args: a, ledger: newLedger(), nominated: func(string) []fwk.PodInfo { return nil },
			nodes: func() fwk.NodeInfoLister { return lister{node: node} },
		}
		free := func() memory {
			var m memory
			if reason, _ := p.free(node, "", &m, &waiting{}); reason != "" {
				t.Fatal(reason)
			}
			return m
		}
		before := free()
		var placed []*v1.Pod
		for i := range rapid.IntRange(1, 12).Draw(t, "pods") {
			pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprint(i), UID: types.UID(fmt.Sprint(i)),
				Annotations: map[string]string{args.PodGPUMemory: fmt.Sprintf("%dGi", rapid.IntRange(1, 9).Draw(t, "Gi"))},
			}}
			if status := p.Reserve(t.Context(), framework.NewCycleState(), pod, "node"); !status.IsSuccess() {
				continue
			}
			pod.Spec.NodeName = "node"
			node.AddPod(pod)
			placed = append(placed, pod)
			now := free()
			for d := range now.count {
				if now.bytes[d] < 0 {
					t.Fatalf("device %d is overdrawn", d)
				}
			}
		}
		for _, i := range rapid.Permutation(placed).Draw(t, "order") {
			p.Unreserve(t.Context(), framework.NewCycleState(), i, "node")
			p.Unreserve(t.Context(), framework.NewCycleState(), i, "node")
			if err := node.RemovePod(klog.Background(), i); err != nil {
				t.Fatal(err)
			}
		}
		if got := free(); got != before {
			t.Errorf("the devices have %v free, and had %v", got.bytes[:got.count], before.bytes[:before.count])
		}
		if left := len(p.ledger.pods) + len(p.ledger.onNode); left != 0 {
			t.Errorf("%d entries are left in the ledger", left)
		}
	})
}

// full is a node of eight devices with so many pods that have GPU memory, and as
// many that have none.
func full(t testing.TB, pods int) (*Plugin, *v1.Pod, fwk.NodeInfo, fwk.CycleState) {
	t.Helper()
	a, err := args.FromObject[*args.GPUMemoryArgs](Name, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &Plugin{args: a, ledger: newLedger()}
	node := framework.NewNodeInfo()
	labels := map[string]string{args.NodeGFDMemory: "81559", args.NodeGFDCount: "8"}
	for i := range 40 {
		labels[fmt.Sprintf("example.com/label-%d", i)] = "value"
	}
	node.SetNode(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node", Labels: labels}})
	for i := range 2 * pods {
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(i), UID: types.UID(fmt.Sprintf("2b5c1a3e-0000-4000-8000-%012d", i))}, Spec: v1.PodSpec{NodeName: "node"}}
		if i%2 == 0 {
			pod.Annotations = map[string]string{args.PodGPUMemory: "8Gi", args.PodGPUIndex: fmt.Sprint(i / 2 % 8)}
		}
		node.AddPod(pod)
		p.ledger.bound(pod, true)
	}
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{args.PodGPUMemory: "12Gi"}}}
	state := framework.NewCycleState()
	if _, status := p.PreFilter(t.Context(), state, pod, nil); !status.IsSuccess() {
		t.Fatal(status)
	}
	return p, pod, node, state
}

// TestNoAllocationPerNode is not parallel: it counts the process's allocations.
func TestNoAllocationPerNode(t *testing.T) {
	p, pod, node, state := full(t, 16)
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
	for _, pods := range []int{0, 8, 32} {
		b.Run(fmt.Sprintf("pods=%d", pods), func(b *testing.B) {
			p, pod, node, state := full(b, pods)
			b.ReportAllocs()
			for b.Loop() {
				p.Filter(b.Context(), state, pod, node)
			}
		})
	}
}

func BenchmarkScore(b *testing.B) {
	for _, pods := range []int{0, 8, 32} {
		b.Run(fmt.Sprintf("pods=%d", pods), func(b *testing.B) {
			p, pod, node, state := full(b, pods)
			b.ReportAllocs()
			for b.Loop() {
				p.Score(b.Context(), state, pod, node)
			}
		})
	}
}
