package gpumemory_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	"k8s.io/utils/clock"
	"pgregory.net/rapid"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/args"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/contain"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/plugins/gpumemory"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/registry"
)

// trial is a framework on a snapshot, as the pod-group cycle uses one: members are
// assumed in the snapshot, reserved, and all taken back.
type trial struct {
	framework.Framework
	client   *fake.Clientset
	snapshot *cache.Snapshot
}

func newTrial(t *testing.T, nodes ...*v1.Node) *trial {
	t.Helper()
	metrics.Register()
	tr := &trial{client: fake.NewClientset(), snapshot: cache.NewSnapshot(nil, nodes)}
	tr.client.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, &v1.Pod{}, nil })
	ours, err := registry.New(contain.Options{Metrics: contain.NewMetrics(), Budgets: contain.DefaultBudgets(), Clock: clock.RealClock{}},
		registry.Plugin{Name: gpumemory.Name, New: new(gpumemory.Factory).New})
	if err != nil {
		t.Fatal(err)
	}
	all := plugins.NewInTreeRegistry()
	if err := all.Merge(ours); err != nil {
		t.Fatal(err)
	}
	profile := &config.KubeSchedulerProfile{SchedulerName: "test", Plugins: &config.Plugins{MultiPoint: config.PluginSet{
		Enabled: []config.Plugin{{Name: "PrioritySort"}, {Name: "DefaultBinder"}, {Name: gpumemory.Name, Weight: 1}},
	}}}
	tr.Framework, err = frameworkruntime.NewFramework(t.Context(), all, profile,
		frameworkruntime.WithClientSet(tr.client), frameworkruntime.WithSnapshotSharedLister(tr.snapshot),
		frameworkruntime.WithInformerFactory(informers.NewSharedInformerFactory(tr.client, 0)),
		frameworkruntime.WithPodNominator(queue.NewTestQueue(t.Context(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// placed is one member that was assumed and reserved.
type placed struct {
	pod   *v1.Pod
	state fwk.CycleState
}

// place places the pods one after the other on the first node that each fits, and
// returns those that fit. It follows upstream's assumeAndReserve: the pod is in
// the snapshot when it is reserved.
func (tr *trial) place(t *rapid.T, pods []*v1.Pod) (members []placed) {
	nodes, err := tr.snapshot.NodeInfos().List()
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods {
		state := framework.NewCycleState()
		if _, status, _ := tr.RunPreFilterPlugins(t.Context(), state, pod); !status.IsSuccess() {
			t.Fatal(status)
		}
		for _, node := range nodes {
			if !tr.RunFilterPluginsWithNominatedPods(t.Context(), state, pod, node).IsSuccess() {
				continue
			}
			assumed := pod.DeepCopy()
			assumed.Spec.NodeName = node.Node().Name
			info, err := framework.NewPodInfo(assumed)
			if err != nil {
				t.Fatal(err)
			}
			node.AddPodInfo(info)
			if status := tr.RunReservePluginsReserve(t.Context(), state, assumed, assumed.Spec.NodeName); !status.IsSuccess() {
				t.Fatalf("Filter lets pod %s onto node %s, and Reserve does not: %v", pod.Name, assumed.Spec.NodeName, status)
			}
			members = append(members, placed{assumed, state})
			break
		}
	}
	return members
}

// revert takes the members back.
func (tr *trial) revert(t *rapid.T, members []placed) {
	for i := len(members) - 1; i >= 0; i-- {
		pod := members[i].pod
		tr.RunReservePluginsUnreserve(t.Context(), members[i].state, pod, pod.Spec.NodeName)
		node, err := tr.snapshot.NodeInfos().Get(pod.Spec.NodeName)
		if err != nil {
			t.Fatal(err)
		}
		if err := node.RemovePod(klog.Background(), pod); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTrials holds that a group may be tried any number of times: each trial comes
// out alike, none calls the API server, and what is bound in the end overdraws no
// device.
func TestTrials(t *testing.T) {
	t.Parallel()
	capacity := map[string][]int64{"a": {16, 10}, "b": {24}, "c": {8, 8, 8}}
	tr := newTrial(t, node("a", nil, "16Gi,10Gi"), node("b", nil, "24Gi"), node("c", nil, "8Gi,8Gi,8Gi"))
	rapid.Check(t, func(t *rapid.T) {
		var pods []*v1.Pod
		sizes := map[string]int64{}
		for i := range rapid.IntRange(1, 12).Draw(t, "pods") {
			name := fmt.Sprintf("p%d", i)
			sizes[name] = rapid.Int64Range(1, 12).Draw(t, "Gi")
			p := pod(name, fmt.Sprintf("%dGi", sizes[name]))
			if rapid.IntRange(0, 3).Draw(t, "two devices") == 0 {
				p.Annotations[args.PodGPUDevices] = "2"
			}
			pods = append(pods, p)
		}
		tr.client.ClearActions()
		where := func(members []placed) map[string]string {
			nodes := map[string]string{}
			for _, m := range members {
				nodes[m.pod.Name] = m.pod.Spec.NodeName
			}
			return nodes
		}
		first := tr.place(t, pods)
		tr.revert(t, first)
		for range rapid.IntRange(0, 3).Draw(t, "more trials") {
			again := tr.place(t, pods)
			tr.revert(t, again)
			if diff := cmp.Diff(where(first), where(again)); diff != "" {
				t.Fatalf("a second trial comes out otherwise (-first +second)\n%s", diff)
			}
		}
		if actions := tr.client.Actions(); len(actions) != 0 {
			t.Fatalf("trials call the API server: %v", actions)
		}
		last := tr.place(t, pods)
		defer tr.revert(t, last)
		used := map[string]int64{}
		for _, m := range last {
			for _, device := range tr.bind(t, m) {
				used[fmt.Sprintf("%s/%s", m.pod.Spec.NodeName, device)] += sizes[m.pod.Name]
			}
		}
		for name, devices := range capacity {
			for i, size := range devices {
				if got := used[fmt.Sprintf("%s/%d", name, i)]; got > size {
					t.Errorf("device %d of node %s has %dGi of %dGi in use", i, name, got, size)
				}
			}
		}
	})
}

// bind runs PreBind for the member, and returns the devices that it wrote.
func (tr *trial) bind(t *rapid.T, m placed) []string {
	tr.client.ClearActions()
	if status := tr.RunPreBindPreFlights(t.Context(), m.state, m.pod, m.pod.Spec.NodeName); !status.IsSuccess() {
		t.Fatal(status)
	}
	if status := tr.RunPreBindPlugins(t.Context(), m.state, m.pod, m.pod.Spec.NodeName); !status.IsSuccess() {
		t.Fatal(status)
	}
	actions := tr.client.Actions()
	if len(actions) != 1 {
		t.Fatalf("PreBind calls the API server %d times: %v", len(actions), actions)
	}
	var patch struct {
		Metadata struct {
			UID         string
			Annotations map[string]string
		}
	}
	if err := json.Unmarshal(actions[0].(clienttesting.PatchAction).GetPatch(), &patch); err != nil {
		t.Fatal(err)
	}
	if patch.Metadata.UID != string(m.pod.UID) {
		t.Errorf("the patch is for the UID %q, and the pod has %q", patch.Metadata.UID, m.pod.UID)
	}
	devices := strings.Split(patch.Metadata.Annotations[args.PodGPUIndex], ",")
	want := 1
	if m.pod.Annotations[args.PodGPUDevices] == "2" {
		want = 2
	}
	if len(devices) != want {
		t.Errorf("pod %s got devices %v, want %d", m.pod.Name, devices, want)
	}
	return devices
}
