package gpumemory_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/args"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/plugins/gpumemory"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/registry"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/schedulertest"
)

type m = map[string]string

func node(name string, labels m, memory string) *v1.Node {
	n := st.MakeNode().Name(name).UID(name).Capacity(map[v1.ResourceName]string{"cpu": "64", "pods": "110", "nvidia.com/gpu": "1"}).Obj()
	n.Labels = labels
	if memory != "" {
		n.Annotations = m{args.NodeGPUMemory: memory}
	}
	return n
}

func pod(name, memory string) *v1.Pod {
	p := st.MakePod().Name(name).Namespace(schedulertest.Namespace).UID(name).Req(map[v1.ResourceName]string{"cpu": "1"}).Obj()
	if memory != "" {
		p.Annotations = m{args.PodGPUMemory: memory}
	}
	return p
}

func client(t *testing.T, nodes ...*v1.Node) *fake.Clientset {
	t.Helper()
	c := schedulertest.NewClient()
	for _, n := range nodes {
		if _, err := c.CoreV1().Nodes().Create(t.Context(), n, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func options(yaml string) schedulertest.Options {
	return schedulertest.Options{
		Plugins: []registry.Plugin{{Name: gpumemory.Name, New: new(gpumemory.Factory).New}},
		Args:    m{gpumemory.Name: yaml},
	}
}

func index(p *v1.Pod) string { return p.Annotations[args.PodGPUIndex] }

// TestDevicesAreNotShared is the promise: three pods of 12Gi never share a device
// of 24Gi, and memory of two devices is not added up.
func TestDevicesAreNotShared(t *testing.T) {
	t.Parallel()
	lab := schedulertest.Start(t, client(t, node("one", nil, "24Gi"), node("two", nil, "16Gi,16Gi")), options(""))
	perDevice := map[string]int{}
	for _, name := range []string{"p0", "p1", "p2", "p3"} {
		lab.Create(t, pod(name, "12Gi"))
		p := lab.Bound(t, name)
		perDevice[p.Spec.NodeName+"/"+index(p)]++
	}
	if diff := cmp.Diff(map[string]int{"one/0": 2, "two/0": 1, "two/1": 1}, perDevice); diff != "" {
		t.Errorf("pods by device (-want +got)\n%s", diff)
	}
	lab.Create(t, pod("p4", "12Gi"))
	lab.Pending(t, "p4", "Unschedulable", "2 "+gpumemory.ReasonFull)
	lab.Create(t, pod("p5", "25Gi"))
	lab.Pending(t, "p5", "2 "+gpumemory.ReasonSmall)
	// What goes leaves its own device, and wakes who waits for it.
	gone := lab.Bound(t, "p1")
	lab.Delete(t, "p1")
	if got := lab.Bound(t, "p4"); got.Spec.NodeName != gone.Spec.NodeName || index(got) != index(gone) {
		t.Errorf("p4 is on %s/%s, want %s/%s", got.Spec.NodeName, index(got), gone.Spec.NodeName, index(gone))
	}
}

func TestPlacement(t *testing.T) {
	t.Parallel()
	gfd := func(memory, count string) m { return m{args.NodeGFDMemory: memory, args.NodeGFDCount: count} }
	tests := []struct {
		name  string
		args  string
		nodes []*v1.Node
		pod   *v1.Pod
		// want is the node and the device, or what is said of a pod that waits.
		want, pending string
	}{
		{"labels of feature discovery, in MiB", "", []*v1.Node{node("a", gfd("15109", "1"), ""), node("b", gfd("24564", "4"), "")}, pod("p", "20Gi"), "b/0", ""},
		{"our annotation outranks the labels", "", []*v1.Node{node("a", gfd("80000", "1"), "8Gi"), node("b", nil, "24Gi")}, pod("p", "20Gi"), "b/0", ""},
		{"most free", "", []*v1.Node{node("a", nil, "16Gi,40Gi"), node("b", nil, "24Gi")}, pod("p", "12Gi"), "a/1", ""},
		{"best fit", "prefer: best-fit", []*v1.Node{node("a", nil, "40Gi,16Gi"), node("b", nil, "24Gi")}, pod("p", "12Gi"), "a/1", ""},
		{"free memory by a label", "", []*v1.Node{node("a", m{"gpu-memory-free-gb": "8"}, ""), node("b", m{"gpu-memory-free-gb": "20"}, "")}, pod("p", "12G"), "b/0", ""},
		{"free memory by a label of another unit", "freeLabels: [{key: free, unit: MiB}]", []*v1.Node{node("a", m{"free": "8000"}, ""), node("b", m{"free": "20000"}, "")}, pod("p", "12Gi"), "b/0", ""},
		{"GB is not GiB", "", []*v1.Node{node("a", m{"gpu-memory-free-gb": "12"}, "")}, pod("p", "12Gi"), "", gpumemory.ReasonFull},
		{"no GPU", "", []*v1.Node{node("a", nil, "")}, pod("p", "12Gi"), "", gpumemory.ReasonNone},
		{"a label with a unit", "", []*v1.Node{node("a", gfd("24Gi", "1"), "")}, pod("p", "12Gi"), "", gpumemory.ReasonGFD},
		{"a label without its count", "", []*v1.Node{node("a", m{args.NodeGFDMemory: "24564"}, "")}, pod("p", "12Gi"), "", gpumemory.ReasonGFD},
		{"a wrong annotation is not passed over", "", []*v1.Node{node("a", gfd("24564", "1"), "24Gi,lots")}, pod("p", "12Gi"), "", gpumemory.ReasonOwn},
		{"an annotation without a unit", "", []*v1.Node{node("a", nil, "24")}, pod("p", "12Gi"), "", gpumemory.ReasonOwn},
		{"slices", "", []*v1.Node{node("a", m{args.NodeGFDMemory: "4864", args.NodeGFDCount: "7", args.NodeGFDProduct: "A100-MIG-1g.5gb"}, "")}, pod("p", "4Gi"), "", gpumemory.ReasonMIG},
		{"free memory of several devices", "", []*v1.Node{node("a", m{"gpu-memory-free-gb": "48", args.NodeGFDCount: "4"}, "")}, pod("p", "4Gi"), "", gpumemory.ReasonFreeMany},
		{"free memory with a unit", "", []*v1.Node{node("a", m{"gpu-memory-free-gb": "48GB"}, "")}, pod("p", "4Gi"), "", gpumemory.ReasonFree},
		{"a pod without a unit", "", []*v1.Node{node("a", nil, "24Gi")}, pod("p", "12"), "", `is "12", less than 1Mi; write a quantity with its unit`},
		{"a pod with a wrong unit", "", []*v1.Node{node("a", nil, "24Gi")}, pod("p", "12GB"), "", `is "12GB", which is no quantity`},
		{"a negative pod", "", []*v1.Node{node("a", nil, "24Gi")}, pod("p", "-12Gi"), "", `less than 1Mi`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			lab := schedulertest.Start(t, client(t, test.nodes...), options(test.args))
			lab.Create(t, test.pod)
			if test.pending != "" {
				lab.Pending(t, "p", "Unschedulable", test.pending)
				return
			}
			p := lab.Bound(t, "p")
			if got := p.Spec.NodeName + "/" + index(p); got != test.want {
				t.Errorf("the pod is on %s, want %s", got, test.want)
			}
		})
	}
}

// TestSeveralDevices holds that a pod of several devices gets as many, and that
// every one of them counts.
func TestSeveralDevices(t *testing.T) {
	t.Parallel()
	lab := schedulertest.Start(t, client(t, node("a", nil, "24Gi,24Gi,24Gi")), options(""))
	two := pod("two", "16Gi")
	two.Annotations[args.PodGPUDevices] = "2"
	lab.Create(t, two)
	if got := index(lab.Bound(t, "two")); got != "0,1" {
		t.Errorf("got devices %q, want 0,1", got)
	}
	again := pod("again", "16Gi")
	again.Annotations[args.PodGPUDevices] = "2"
	lab.Create(t, again)
	lab.Pending(t, "again", gpumemory.ReasonFull)
	lab.Create(t, pod("one", "16Gi"))
	if got := index(lab.Bound(t, "one")); got != "2" {
		t.Errorf("got device %q, want 2", got)
	}
	for name, value := range (m{"none": "0", "many": "65", "word": "two"}) {
		p := pod(name, "16Gi")
		p.Annotations[args.PodGPUDevices] = value
		lab.Create(t, p)
		lab.Pending(t, name, "write a whole number from 1 to 64")
	}
}

// TestRestart holds that a scheduler that starts finds the devices where the last
// one left them, and that it does not trust an annotation that was changed since
// it saw the pod.
func TestRestart(t *testing.T) {
	t.Parallel()
	c := client(t, node("a", nil, "24Gi,24Gi"))
	first := schedulertest.Start(t, c, options("prefer: best-fit"))
	for _, name := range []string{"p0", "p1"} {
		first.Create(t, pod(name, "10Gi"))
		if got := index(first.Bound(t, name)); got != "0" {
			t.Errorf("%s is on device %q, want 0", name, got)
		}
	}
	first.Stop()
	second := schedulertest.Start(t, c, options("prefer: best-fit"))
	second.Create(t, pod("p2", "24Gi"))
	if got := index(second.Bound(t, "p2")); got != "1" {
		t.Errorf("p2 is on device %q, want 1", got)
	}
	second.Update(t, "p2", func(p *v1.Pod) { p.Annotations[args.PodGPUIndex] = "0" })
	second.Create(t, pod("p3", "10Gi"))
	second.Pending(t, "p3", gpumemory.ReasonFull)
}

// TestUnknownDevice holds that a pod that something else bound, so that nobody
// knows its device, is taken to be on any.
func TestUnknownDevice(t *testing.T) {
	t.Parallel()
	c := client(t, node("a", nil, "24Gi,24Gi"))
	stranger := pod("stranger", "16Gi")
	stranger.Spec.NodeName, stranger.Spec.SchedulerName = "a", "other"
	if _, err := c.CoreV1().Pods(schedulertest.Namespace).Create(t.Context(), stranger, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	lab := schedulertest.Start(t, c, options(""))
	lab.Create(t, pod("p", "12Gi"))
	lab.Pending(t, "p", gpumemory.ReasonFull)
	lab.Create(t, pod("q", "8Gi"))
	lab.Bound(t, "q")
}

// TestWholeDevices holds that a pod that takes whole devices from the kubelet
// keeps others off, until it goes.
func TestWholeDevices(t *testing.T) {
	t.Parallel()
	lab := schedulertest.Start(t, client(t, node("a", nil, "24Gi")), options(""))
	whole := st.MakePod().Name("whole").Namespace(schedulertest.Namespace).UID("whole").Req(map[v1.ResourceName]string{"nvidia.com/gpu": "1"}).Obj()
	lab.Create(t, whole)
	lab.Bound(t, "whole")
	lab.Create(t, pod("p", "12Gi"))
	lab.Pending(t, "p", gpumemory.ReasonWhole)
	lab.Delete(t, "whole")
	lab.Bound(t, "p")
}

// TestPreemption holds that victims free their devices in the dry run: the one
// victim on the right device goes, not one elsewhere that would not help.
func TestPreemption(t *testing.T) {
	t.Parallel()
	o := options("")
	o.Defaults = true
	lab := schedulertest.Start(t, client(t, node("a", nil, "24Gi,10Gi")), o)
	lab.Create(t, pod("large", "20Gi"))
	lab.Bound(t, "large")
	lab.Create(t, pod("small", "8Gi"))
	lab.Bound(t, "small")
	high := pod("high", "18Gi")
	priority := int32(1000)
	high.Spec.Priority = &priority
	lab.Create(t, high)
	if got := index(lab.Bound(t, "high")); got != "0" {
		t.Errorf("high is on device %q, want 0", got)
	}
	list, err := lab.Client.CoreV1().Pods(schedulertest.Namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range list.Items {
		names = append(names, p.Name)
	}
	slices.Sort(names)
	if diff := cmp.Diff([]string{"high", "small"}, names); diff != "" {
		t.Errorf("pods that are left (-want +got)\n%s", diff)
	}
}

// TestProfilesShareTheLedger holds that what one profile has reserved, another
// knows before it is bound.
func TestProfilesShareTheLedger(t *testing.T) {
	t.Parallel()
	o := options("")
	o.Profiles = []string{"test", "other"}
	lab := schedulertest.Start(t, client(t, node("a", nil, "24Gi,24Gi,24Gi,24Gi")), o)
	names := []string{"p0", "p1", "p2", "p3"}
	for i, name := range names {
		p := pod(name, "24Gi")
		p.Spec.SchedulerName = o.Profiles[i%2]
		lab.Create(t, p)
	}
	var devices []string
	for _, name := range names {
		devices = append(devices, index(lab.Bound(t, name)))
	}
	slices.Sort(devices)
	if diff := cmp.Diff([]string{"0", "1", "2", "3"}, devices); diff != "" {
		t.Errorf("devices (-want +got)\n%s", diff)
	}
}

// TestFreeLabel holds that pods placed since the label last changed are taken off
// what it says, and running ones not twice.
func TestFreeLabel(t *testing.T) {
	t.Parallel()
	factory := &gpumemory.Factory{}
	o := options("")
	o.Plugins[0].New = factory.New
	lab := schedulertest.Start(t, client(t, node("a", m{"gpu-memory-free-gb": "24"}, "")), o)
	lab.Create(t, pod("p0", "16G"))
	lab.Bound(t, "p0")
	lab.Create(t, pod("p1", "12G"))
	lab.Pending(t, "p1", gpumemory.ReasonFull)
	lab.Create(t, pod("p2", "8G"))
	lab.Bound(t, "p2")
	// p0 runs, and the node's agent sees what it uses: 24 - 16. p2 does not yet.
	lab.Update(t, "p0", func(p *v1.Pod) { p.Status.Phase = v1.PodRunning })
	eventually(t, "p0 is seen to run", func() bool { return factory.Running("p0") })
	lab.UpdateNode(t, "a", func(n *v1.Node) { n.Labels["gpu-memory-free-gb"] = "8" })
	eventually(t, "the new label is seen", func() bool { return factory.Counted("a") == 16e9 })
	lab.Create(t, pod("p3", "4G"))
	lab.Pending(t, "p3", gpumemory.ReasonFull)
	// 8 are free and the 16 of p0 come free, less the 8 of p2 that are not seen yet.
	lab.Delete(t, "p0")
	lab.Bound(t, "p1")
}

// eventually waits for the condition.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		return condition(), nil
	})
	if err != nil {
		t.Fatalf("waiting until %s: %v", what, err)
	}
}

func TestUnconcerned(t *testing.T) {
	t.Parallel()
	lab := schedulertest.Start(t, client(t, node("a", nil, ""), node("b", nil, "")), options(""))
	lab.Create(t, pod("p", ""))
	if got := lab.Bound(t, "p"); index(got) != "" {
		t.Errorf("a pod without GPU memory got device %q", index(got))
	}
	for point, want := range map[string]int{"PreFilter": 1, "Filter": 0, "PreScore": 1, "Score": 0, "PreBind": 0} {
		if got := lab.Calls(t, gpumemory.Name, point); got != want {
			t.Errorf("%s ran %d times, want %d", point, got, want)
		}
	}
	// With NominatedNodeNameForExpectation off nobody asks beforehand whether PreBind is needed.
	if status := lab.Framework("test").RunPreBindPlugins(t.Context(), framework.NewCycleState(), pod("p", ""), "a"); !status.IsSuccess() {
		t.Errorf("PreBind, which was not asked beforehand, has an error for a pod without GPU memory: %v", status)
	}
	sign := func(p *v1.Pod) string {
		p.Spec.SchedulerName = "test"
		return string(lab.Framework("test").SignPod(t.Context(), p))
	}
	plain := sign(pod("p", ""))
	if plain == "" || plain != sign(pod("q", "")) {
		t.Errorf("pods without GPU memory are not the same: %q", plain)
	}
	if got := sign(pod("p", "12Gi")); got == "" || got == plain || got == sign(pod("p", "13Gi")) || got != sign(pod("q", "12288Mi")) {
		t.Errorf("pods with GPU memory are signed %q", got)
	}
	lab.Create(t, pod("q", "12Gi"))
	lab.Pending(t, "q", gpumemory.ReasonNone)
	if got := lab.Calls(t, gpumemory.Name, "Filter"); got != 2 {
		t.Errorf("Filter ran %d times for a pod with GPU memory on two nodes", got)
	}
}

// TestWakes holds that a pod wakes when it should, and not before.
func TestWakes(t *testing.T) {
	t.Parallel()
	lab := schedulertest.Start(t, client(t, node("a", nil, "8Gi"), node("b", nil, "8Gi")), options(""))
	lab.Create(t, pod("p", "12Gi"))
	lab.Pending(t, "p", gpumemory.ReasonSmall)
	attempts := lab.Calls(t, gpumemory.Name, "PreFilter")
	lab.UpdateNode(t, "a", func(n *v1.Node) { n.Labels = m{"unrelated": "yes"} })
	lab.UpdateNode(t, "a", func(n *v1.Node) { n.Annotations[args.NodeGPUMemory] = "10Gi" })
	lab.Create(t, pod("other", ""))
	lab.Bound(t, "other")
	lab.Delete(t, "other")
	lab.UpdateNode(t, "b", func(n *v1.Node) { n.Annotations[args.NodeGPUMemory] = "16Gi" })
	if got := lab.Bound(t, "p").Spec.NodeName; got != "b" {
		t.Errorf("the pod is on node %q, want b", got)
	}
	// One attempt of the other pod, and one of p.
	if got := lab.Calls(t, gpumemory.Name, "PreFilter") - attempts; got != 2 {
		t.Errorf("%d attempts, want 2", got)
	}
	lab.Create(t, pod("q", "20Gi"))
	lab.Pending(t, "q", gpumemory.ReasonSmall)
	lab.Update(t, "q", func(p *v1.Pod) { p.Annotations[args.PodGPUMemory] = "4Gi" })
	lab.Bound(t, "q")
}
