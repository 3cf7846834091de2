package gang

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/args"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/registry"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/schedulertest"
)

func groupName(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "ns", Name: name}
}

// held returns a hold of one seat on each of the nodes, since now and for a minute,
// that appends the names of the pods which it wakes to woken.
func held(t *testing.T, now time.Time, group string, priority int32, woken *[]string, nodes ...string) *hold {
	t.Helper()
	h := &hold{
		group: groupName(group), priority: priority, seats: map[string][]fwk.PodInfo{}, since: now, until: now.Add(time.Minute),
		rejected: map[types.UID]*corev1.Pod{},
		activate: func(pods map[string]*corev1.Pod) {
			for _, p := range pods {
				*woken = append(*woken, p.Name)
			}
		},
	}
	for _, node := range nodes {
		seat, err := framework.NewPodInfo(st.MakePod().Name("seat").UID("seat-" + node).Req(map[corev1.ResourceName]string{"cpu": "1"}).Obj())
		if err != nil {
			t.Fatal(err)
		}
		h.seats[node] = []fwk.PodInfo{seat}
	}
	return h
}

func TestWhomSeatsAreHeldAgainst(t *testing.T) {
	t.Parallel()
	h := NewHolds(clocktesting.NewFakeClock(time.Time{}))
	h.take(held(t, time.Time{}, "x:g", 5, nil, "a"))
	for _, test := range []struct {
		pod     *corev1.Pod
		against bool
	}{
		{pod("its member", "x:g", 5), false},
		{pod("as important", "", 5), true},
		{pod("less important", "", 4), true},
		{pod("more important", "", 6), false},
		{pod("of another gang", "x:h", 5), true},
	} {
		if got := len(h.against(nameOf(test.pod), *test.pod.Spec.Priority)) == 1; got != test.against {
			t.Errorf("against the pod %s: %v", test.pod.Name, got)
		}
	}
}

// TestTurn holds that seats are held for one gang a pool at a time, that the nodes
// rest for as long as they were held, and that who has waited longest is next.
func TestTurn(t *testing.T) {
	t.Parallel()
	c := clocktesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	h := NewHolds(c)
	on := func(nodes ...string) func(string) bool {
		return func(node string) bool { return slices.Contains(nodes, node) }
	}
	alike := func(*corev1.Pod) bool { return true }
	unlike := func(*corev1.Pod) bool { return false }
	turn := func(group string, want bool, couldBeOn func(string) bool, same func(*corev1.Pod) bool, when string) {
		t.Helper()
		if got := h.turn(groupName(group), couldBeOn, same); got != want {
			t.Errorf("%s: turn of %s is %v", when, group, got)
		}
	}
	still := func() bool { return true }
	h.failed(groupName("old"), pod("m", "old", 0), time.Minute, still)
	c.Step(time.Second)
	h.failed(groupName("young"), pod("m", "young", 0), time.Minute, still)
	if h.failed(groupName("young"), pod("m", "young", 0), time.Minute, still) {
		t.Error("overdue at once")
	}
	c.Step(time.Minute)
	for _, name := range []string{"old", "young"} {
		if !h.failed(groupName(name), pod("m", name, 0), time.Minute, still) {
			t.Errorf("%s is not overdue after its timeout", name)
		}
	}
	turn("young", false, on("a"), alike, "the older waits too")
	turn("young", true, on("a"), unlike, "the older needs other nodes")
	turn("old", true, on("a"), alike, "nothing is held")
	hold := held(t, c.Now(), "old", 0, nil, "a")
	h.take(hold)
	turn("young", false, on("a", "b"), unlike, "a node is held")
	turn("young", true, on("b"), unlike, "other nodes are held")
	c.Step(20 * time.Second)
	h.release(hold, outcomeExpired)
	h.again(groupName("old"))
	c.Step(19 * time.Second)
	turn("young", false, on("a"), unlike, "a node rests")
	c.Step(2 * time.Second)
	turn("young", true, on("a"), alike, "the node has rested, and the older had its turn")
	if h.failed(groupName("old"), pod("m", "old", 0), time.Minute, still) {
		t.Error("the older is overdue again at once")
	}
}

// TestOverdueGangIsTried holds that a gang is tried when its timeout is over, and at
// each one after that, until it does not wait any more.
func TestOverdueGangIsTried(t *testing.T) {
	t.Parallel()
	c := clocktesting.NewFakeClock(time.Time{})
	h := NewHolds(c)
	woken := make(chan bool)
	answers := make(chan bool)
	h.failed(groupName("g"), pod("m", "g", 0), time.Minute, func() bool { woken <- true; return <-answers })
	c.Step(59 * time.Second)
	select {
	case <-woken:
		t.Fatal("tried too early")
	default:
	}
	c.Step(time.Second)
	<-woken
	answers <- true
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
		return c.HasWaiters(), nil // its timer is set by another goroutine
	})
	if err != nil {
		t.Fatal(err)
	}
	c.Step(time.Minute)
	<-woken
	h.forget(groupName("g"))
	answers <- false
	if c.HasWaiters() {
		t.Error("a gang that is gone has a timer")
	}
}

// TestTurnComesByItself holds that a gang which had to wait for its turn is tried as
// soon as the nodes have rested, whatever its backoff and its next timeout are.
func TestTurnComesByItself(t *testing.T) {
	t.Parallel()
	c := clocktesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	h := NewHolds(c)
	woken := make(chan struct{}, 10)
	tried := func(when string, want int) {
		t.Helper()
		for range want {
			select {
			case <-woken:
			case <-time.After(10 * time.Second):
				t.Fatalf("%s: the gang is not tried", when)
			}
		}
		if len(woken) > 0 {
			t.Fatalf("%s: the gang is tried too often", when)
		}
	}
	h.failed(groupName("g"), pod("m", "g", 0), time.Hour, func() bool { woken <- struct{}{}; return true })
	c.Step(50 * time.Minute)
	hold := held(t, c.Now(), "other", 0, nil, "a")
	h.take(hold)
	c.Step(10 * time.Minute)
	tried("after its timeout", 1)
	c.Step(10 * time.Minute)
	h.release(hold, outcomeExpired)
	tried("while the nodes rest", 0)
	c.Step(20 * time.Minute)
	tried("when they have", 1)
}

// TestHoldsForPart holds that seats of a gang that is bound in part are held for one
// timeout of two at most, however often its binds fail.
func TestHoldsForPart(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	c := clocktesting.NewFakeClock(start)
	h := NewHolds(c)
	for _, test := range []struct {
		at, until time.Duration
		may       bool
	}{
		{0, time.Minute, true},
		{59 * time.Second, time.Minute, true},
		{time.Minute, time.Minute, false},
		{119 * time.Second, time.Minute, false},
		{2 * time.Minute, 3 * time.Minute, true},
	} {
		c.SetTime(start.Add(test.at))
		until, may := h.untilForPart(groupName("g"), time.Minute)
		if may != test.may || !until.Equal(start.Add(test.until)) {
			t.Errorf("after %s: until %s, %v", test.at, until.Sub(start), may)
		}
	}
}

func TestReleaseWakesThoseHeldOff(t *testing.T) {
	t.Parallel()
	h := NewHolds(clocktesting.NewFakeClock(time.Time{}))
	var woken []string
	hold := held(t, time.Time{}, "x:g", 5, &woken, "a")
	h.take(hold)
	hold.reject(pod("single", "", 5))
	h.release(hold, outcomeStarted)
	h.release(hold, outcomeExpired)
	if !slices.Equal(woken, []string{"single"}) || len(h.of(groupName("x:g"))) > 0 {
		t.Errorf("woken %v, held %v", woken, h.of(groupName("x:g")))
	}
}

// TestLeavingPodWakes holds that a pod which seats are held from is tried again when
// another leaves a node with seats, and for no other pod that leaves.
func TestLeavingPodWakes(t *testing.T) {
	t.Parallel()
	h := NewHolds(clocktesting.NewFakeClock(time.Time{}))
	h.take(held(t, time.Time{}, "x:g", 5, nil, "a"))
	plugin := newPlugin(&args.GangArgs{}, &handle{}, &heard{}, h)
	registered, err := plugin.EventsToRegister(t.Context())
	if err != nil || len(registered) != 2 {
		t.Fatalf("got %v, %v", registered, err)
	}
	for _, test := range []struct {
		pod  *corev1.Pod
		left string
		want fwk.QueueingHint
	}{
		{pod("single", "", 5), "a", fwk.Queue},
		{pod("single", "", 5), "b", fwk.QueueSkip},
		{pod("important", "", 6), "a", fwk.QueueSkip},
	} {
		gone := pod("gone", "", 0)
		gone.Spec.NodeName = test.left
		if got, err := registered[1].QueueingHintFn(klog.Background(), test.pod, gone, nil); got != test.want || err != nil {
			t.Errorf("%s, when a pod leaves %s: %v, %v", test.pod.Name, test.left, got, err)
		}
	}
}

// TestSinglePods holds, with the whole scheduler, that no method of the plugin runs
// for a node while no seats are held, and that seats keep single pods off a node
// exactly where those would not fit beside the members.
func TestSinglePods(t *testing.T) {
	t.Parallel()
	client := schedulertest.NewClient()
	for name, cpu := range map[string]string{"small": "1", "large": "2"} {
		node := st.MakeNode().Name(name).UID(name).Capacity(map[corev1.ResourceName]string{"cpu": cpu, "pods": "10"}).Obj()
		if _, err := client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	holds := NewHolds(clock.RealClock{})
	lab := schedulertest.Start(t, client, schedulertest.Options{
		Plugins:  []registry.Plugin{{Name: Name, New: New(&heard{}, holds)}},
		Defaults: true,
	})
	single := func(name string) *corev1.Pod {
		return st.MakePod().Name(name).UID(name).Namespace(schedulertest.Namespace).Req(map[corev1.ResourceName]string{"cpu": "1"}).Obj()
	}
	lab.Create(t, single("before"))
	if node := lab.Bound(t, "before").Spec.NodeName; node != "large" {
		t.Fatalf("before is on %s", node)
	}
	if filter, pre := lab.Calls(t, Name, "Filter"), lab.Calls(t, Name, "PreFilter"); filter != 0 || pre != 1 {
		t.Errorf("%d calls of Filter and %d of PreFilter for a pod in no gang", filter, pre)
	}
	lab.Delete(t, "before")

	hold := held(t, time.Now(), "x:g", 5, nil, "small", "large")
	hold.activate = func(pods map[string]*corev1.Pod) { lab.Framework("test").Activate(klog.Background(), pods) }
	holds.take(hold)
	lab.Create(t, single("first")) // one of the large node's two is left
	if node := lab.Bound(t, "first").Spec.NodeName; node != "large" {
		t.Errorf("first is on %s, where a seat is held", node)
	}
	lab.Create(t, single("second"))
	lab.Pending(t, "second", "Unschedulable", "2 seats are held for gang ns/g until")
	lab.Delete(t, "first") // what it leaves is no member's
	if node := lab.Bound(t, "second").Spec.NodeName; node != "large" {
		t.Errorf("second is on %s, where a seat is held", node)
	}
	lab.Create(t, single("third"))
	lab.Pending(t, "third", "Unschedulable", "seats are held for gang ns/g until")
	holds.release(hold, outcomeExpired)
	lab.Bound(t, "third")
}
