package permit_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clienttesting "k8s.io/client-go/testing"
	fwk "k8s.io/kube-scheduler/framework"
	config "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/args"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/contain"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/plugins/gang/permit"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/registry"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/schedulertest"
)

// heard are the groups that the plugin tells of what it sees: what was last said of each.
type heard struct {
	mu   sync.Mutex
	last map[string]string
}

func (*heard) Configure(string, *args.GangArgs) {}

func (h *heard) Failed(_, group string, fits int) { h.hear(group, fmt.Sprintf("%d fit", fits)) }

func (h *heard) Fits(_, group string) { h.hear(group, "fits") }

func (h *heard) hear(group, what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last[strings.TrimPrefix(group, "x-k8s.io:")] = what
}

// lastOf returns what was last said of the gang.
func (h *heard) lastOf(gang string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last[gang]
}

// late is a plugin that holds back the pods with the label "late" until it is open:
// members that a plan has and that do not come.
type late struct {
	mu   sync.Mutex
	open bool
}

func (*late) Name() string { return "Late" }

func (l *late) PreEnqueue(_ context.Context, pod *corev1.Pod) *fwk.Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	if pod.Labels["late"] != "" && !l.open {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "late")
	}
	return nil
}

func (l *late) new(_ context.Context, _ runtime.Object, _ fwk.Handle, guard *contain.Guard) (fwk.Plugin, error) {
	return contain.Wrap[struct {
		contain.Plugin
		contain.PreEnqueuePlugin
	}](guard, l)
}

// lab is the real scheduler with the plugin.
type lab struct {
	*schedulertest.Lab
	late  *late
	heard *heard
	mu    sync.Mutex
	// early are Bindings of members of which fewer had a node than must have one.
	early []string
	bound int
}

// start starts a scheduler with so many nodes for one pod each, and gangs whose
// members wait for the timeout.
func start(t *testing.T, nodes int, timeout time.Duration) *lab {
	t.Helper()
	l := &lab{late: &late{}, heard: &heard{last: map[string]string{}}}
	client := schedulertest.NewClient()
	client.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if create, ok := action.(clienttesting.CreateAction); ok && action.GetSubresource() == "binding" {
			if binding, ok := create.GetObject().(*corev1.Binding); ok {
				l.watchBinding(binding.Name)
			}
		}
		return false, nil, nil
	})
	for i := range nodes {
		addNode(t, client.Tracker(), fmt.Sprintf("node-%d", i), nil)
	}
	state := permit.NewState(l.heard, clock.RealClock{})
	plugins := []registry.Plugin{
		{Name: permit.Name, New: permit.New(state)},
		{Name: permit.SortName, New: permit.NewSort(state)},
		{Name: "Late", New: l.late.new},
	}
	defaults, err := latest.Default()
	if err != nil {
		t.Fatal(err)
	}
	profile := *defaults.Profiles[0].DeepCopy()
	profile.SchedulerName = "test"
	for _, name := range []string{"Late", permit.Name} {
		profile.Plugins.MultiPoint.Enabled = append(profile.Plugins.MultiPoint.Enabled, config.Plugin{Name: name})
	}
	profile.PluginConfig = append(profile.PluginConfig, config.PluginConfig{Name: permit.Name, Args: &runtime.Unknown{Raw: fmt.Appendf(nil, "timeout: %s", timeout)}})
	profiles := []config.KubeSchedulerProfile{profile}
	if err := registry.GangSorts(profiles, permit.SortName); err != nil {
		t.Fatal(err)
	}
	l.Lab = schedulertest.Start(t, client, schedulertest.Options{Plugins: plugins, Configured: profiles})
	go state.Run(t.Context())
	return l
}

// watchBinding notes a Binding that comes before enough members have a node. The
// names of members say how many that are: gang-need-number.
func (l *lab) watchBinding(name string) {
	parts := strings.Split(name, "-")
	if len(parts) != 3 || l.Lab == nil {
		return
	}
	placed := 0
	for _, node := range l.Scheduler.Cache.Dump().Nodes {
		for _, pod := range node.GetPods() {
			if strings.HasPrefix(pod.GetPod().Name, parts[0]+"-") {
				placed++
			}
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bound++
	if fmt.Sprint(placed) < parts[1] { // both have one digit
		l.early = append(l.early, fmt.Sprintf("%s with %d", name, placed))
	}
}

// end fails the test if a Binding came early.
func (l *lab) end(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.early) > 0 {
		t.Errorf("Bindings before enough members had a node: %v", l.early)
	}
}

func addNode(t *testing.T, tracker clienttesting.ObjectTracker, name string, labels map[string]string) {
	t.Helper()
	node := st.MakeNode().Name(name).UID(name).Capacity(map[corev1.ResourceName]string{"cpu": "1", "pods": "10"}).Obj()
	node.Labels = labels
	if err := tracker.Add(node); err != nil {
		t.Fatal(err)
	}
}

// group makes or changes the virtual group of a gang.
func (l *lab) group(t *testing.T, name string, need int32) {
	t.Helper()
	groups := l.Client.SchedulingV1beta1().PodGroups(schedulertest.Namespace)
	group := &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Name: "x-k8s.io:" + name, Namespace: schedulertest.Namespace},
		Spec: schedulingv1beta1.PodGroupSpec{
			Priority:         ptr.To[int32](0),
			SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: need}},
		},
	}
	if _, err := groups.Create(t.Context(), group, metav1.CreateOptions{}); err == nil {
		return
	}
	if _, err := groups.Update(t.Context(), group, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// single returns a pod that fills a node.
func single(name string) *corev1.Pod {
	return st.MakePod().Name(name).UID(name).Namespace(schedulertest.Namespace).Req(map[corev1.ResourceName]string{"cpu": "1"}).Obj()
}

// member returns a member of a gang that needs so many.
func member(gang string, need, i int) *corev1.Pod {
	pod := single(fmt.Sprintf("%s-%d-%d", gang, need, i))
	pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To("x-k8s.io:" + gang)}
	return pod
}

// again returns another pod of the same name.
func again(pod *corev1.Pod) *corev1.Pod {
	pod.UID += "-again"
	return pod
}

func lateMember(gang string, need, i int) *corev1.Pod {
	pod := member(gang, need, i)
	pod.Labels = map[string]string{"late": "yes"}
	return pod
}

// placed returns which pods with the prefix have a node in the API.
func (l *lab) placed(t *testing.T, prefix string) (names []string) {
	t.Helper()
	list, err := l.Client.CoreV1().Pods(schedulertest.Namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range list.Items {
		if strings.HasPrefix(pod.Name, prefix) && pod.Spec.NodeName != "" {
			names = append(names, pod.Name)
		}
	}
	return names
}

// until waits for the condition.
func until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) { return condition(), nil })
	if err != nil {
		t.Fatalf("wait for %s: %v", what, err)
	}
}

// waiting returns how many pods wait at Permit.
func (l *lab) waiting() (n int) {
	l.Framework("test").IterateOverWaitingPods(func(fwk.WaitingPod) { n++ })
	return n
}

// TestContendingGangs holds that of two gangs that each fit alone, one is bound whole
// and the other not at all, until there is room.
func TestContendingGangs(t *testing.T) {
	t.Parallel()
	l := start(t, 6, time.Minute)
	l.group(t, "red", 4)
	l.group(t, "blue", 4)
	for i := range 4 {
		l.Create(t, member("red", 4, i))
		l.Create(t, member("blue", 4, i))
	}
	until(t, "one gang whole", func() bool { return len(l.placed(t, ""))%4 == 0 && len(l.placed(t, "")) > 0 })
	winner, loser := "red", "blue"
	if len(l.placed(t, "blue")) == 4 {
		winner, loser = loser, winner
	}
	for i := range 4 {
		l.Pending(t, fmt.Sprintf("%s-4-%d", loser, i), "Unschedulable", "gang "+loser+": a node was found for 2 of 4 members, needs 4", "Insufficient cpu")
	}
	if got := l.heard.lastOf(winner) + ", " + l.heard.lastOf(loser); got != "fits, 2 fit" {
		t.Errorf("said of the gang that is whole and of the other: %s", got)
	}
	l.Create(t, single("single"))
	l.Bound(t, "single") // it needs none of the gang's nodes
	if names := l.placed(t, loser); len(names) > 0 {
		t.Errorf("bound in part: %v", names)
	}
	for i := range 4 {
		l.Delete(t, fmt.Sprintf("%s-4-%d", winner, i))
	}
	until(t, "the other gang whole", func() bool { return len(l.placed(t, loser)) == 4 })
	if got := l.heard.lastOf(loser); got != "fits" {
		t.Errorf("said of the gang that is whole by now: %s", got)
	}
	l.end(t)
}

// TestMembersComeAndGo holds that a gang waits for its size, that surplus and new
// members are placed beside it, and that a smaller minCount counts.
func TestMembersComeAndGo(t *testing.T) {
	t.Parallel()
	l := start(t, 5, time.Minute)
	for i := range 2 {
		l.Create(t, member("g", 3, i))
	}
	l.Create(t, single("single"))
	l.Bound(t, "single")
	l.group(t, "g", 3)
	l.Create(t, member("g", 3, 2))
	l.Create(t, member("g", 3, 3))
	for i := range 4 {
		l.Bound(t, fmt.Sprintf("g-3-%d", i))
	}
	l.Delete(t, "g-3-1")
	l.Create(t, again(member("g", 3, 1)))
	l.Bound(t, "g-3-1")
	l.end(t)
	// Of a gang of 3 two are needed no more, as when they have finished.
	l.Delete(t, "g-3-0")
	l.Delete(t, "single")
	l.group(t, "h", 3)
	l.Create(t, member("h", 1, 0))
	l.Create(t, single("witness"))
	l.Bound(t, "witness")
	if names := l.placed(t, "h"); len(names) > 0 {
		t.Errorf("bound alone: %v", names)
	}
	l.group(t, "h", 1)
	l.Bound(t, "h-1-0")
}

// TestTimeout holds that what members hold is given back after the gang's timeout,
// and that others are placed there then.
func TestTimeout(t *testing.T) {
	t.Parallel()
	l := start(t, 3, 2*time.Second)
	l.group(t, "g", 3)
	begin := time.Now()
	l.Create(t, member("g", 3, 0))
	l.Create(t, member("g", 3, 1))
	l.Create(t, lateMember("g", 3, 2))
	until(t, "two members that wait", func() bool { return l.waiting() == 2 })
	l.Create(t, single("free")) // a gang that waits blocks no single pod
	l.Bound(t, "free")
	l.Create(t, single("single"))
	l.Pending(t, "single", "Unschedulable")
	for i := range 2 {
		l.Pending(t, fmt.Sprintf("g-3-%d", i), "Unschedulable")
	}
	l.Bound(t, "single")
	if took := time.Since(begin); took < 2*time.Second || took > 12*time.Second {
		t.Errorf("the members' nodes were given back after %s", took)
	}
	if l.bound != 2 && len(l.placed(t, "g")) > 0 {
		t.Error("a member is bound")
	}
	l.end(t)
}

// TestMemberLost holds that the siblings of a member that is deleted while they wait
// are let go at once, and that the gang starts with the one that takes its place.
func TestMemberLost(t *testing.T) {
	t.Parallel()
	l := start(t, 3, 10*time.Minute)
	l.group(t, "g", 3)
	l.Create(t, member("g", 3, 0))
	l.Create(t, member("g", 3, 1))
	l.Create(t, lateMember("g", 3, 2))
	until(t, "two members that wait", func() bool { return l.waiting() == 2 })
	l.Delete(t, "g-3-1")
	until(t, "none that waits", func() bool { return l.waiting() == 0 })
	l.late.mu.Lock()
	l.late.open = true
	l.late.mu.Unlock()
	l.Create(t, again(member("g", 3, 1)))
	for i := range 3 {
		l.Bound(t, fmt.Sprintf("g-3-%d", i))
	}
	l.end(t)
}

// TestPoolsDoNotWait holds that while a gang has its turn, one that could be on its
// nodes waits for it, and one of another pool does not.
func TestPoolsDoNotWait(t *testing.T) {
	t.Parallel()
	l := start(t, 4, 10*time.Minute)
	for i := range 2 {
		addNode(t, l.Client.Tracker(), fmt.Sprintf("other-%d", i), map[string]string{"pool": "other"})
	}
	elsewhere := func(pod *corev1.Pod) *corev1.Pod {
		pod.Spec.NodeSelector = map[string]string{"pool": "other"}
		return pod
	}
	here := func(pod *corev1.Pod) *corev1.Pod {
		pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "pool", Operator: corev1.NodeSelectorOpDoesNotExist}}}},
		}}}
		return pod
	}
	l.group(t, "first", 2)
	l.Create(t, here(member("first", 2, 0)))
	l.Create(t, here(lateMember("first", 2, 1)))
	until(t, "a member that waits", func() bool { return l.waiting() == 1 })
	l.group(t, "second", 2)
	l.group(t, "third", 2)
	for i := range 2 {
		l.Create(t, here(member("second", 2, i)))
		l.Create(t, elsewhere(member("third", 2, i)))
	}
	for i := range 2 {
		l.Bound(t, fmt.Sprintf("third-2-%d", i))
		l.Pending(t, fmt.Sprintf("second-2-%d", i), "waiting for its turn")
	}
	l.Create(t, here(single("single")))
	l.Bound(t, "single")
	l.Delete(t, "first-2-0") // its turn is over
	for i := range 2 {
		l.Bound(t, fmt.Sprintf("second-2-%d", i))
	}
	l.end(t)
}

// TestFailedBind holds that a member whose Binding fails keeps its seat for the next
// try, and that nobody is bound early for it.
func TestFailedBind(t *testing.T) {
	t.Parallel()
	l := start(t, 2, time.Minute)
	var mu sync.Mutex
	refuse := true
	l.Client.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		create, ok := action.(clienttesting.CreateAction)
		if !ok || action.GetSubresource() != "binding" {
			return false, nil, nil
		}
		binding, ok := create.GetObject().(*corev1.Binding)
		mu.Lock()
		defer mu.Unlock()
		if ok && binding.Name == "g-2-1" && refuse {
			return true, nil, fmt.Errorf("refused by the test")
		}
		return false, nil, nil
	})
	l.group(t, "g", 2)
	for i := range 2 {
		l.Create(t, member("g", 2, i))
	}
	l.Bound(t, "g-2-0")
	l.Pending(t, "g-2-1", "refused by the test")
	l.Create(t, single("single"))
	l.Pending(t, "single", "a seat is kept for gang default/g")
	mu.Lock()
	refuse = false
	mu.Unlock()
	l.Bound(t, "g-2-1")
	l.Pending(t, "single", "Unschedulable")
}

// TestSinglePods holds that no method of the plugin runs for a node for a pod in no
// gang, and that a pod in a group of the API's own is one.
func TestSinglePods(t *testing.T) {
	t.Parallel()
	l := start(t, 2, time.Minute)
	pod := single("single")
	pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To("own")}
	l.Create(t, pod)
	l.Bound(t, "single")
	if filter, pre := l.Calls(t, permit.Name, "Filter"), l.Calls(t, permit.Name, "PreFilter"); filter != 0 || pre != 1 {
		t.Errorf("%d calls of Filter and %d of PreFilter", filter, pre)
	}
}
