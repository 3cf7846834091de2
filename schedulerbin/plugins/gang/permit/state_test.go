package permit

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	schedulinglisters "k8s.io/client-go/listers/scheduling/v1beta1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/args"
)

// handle is what the state uses of the framework.
type handle struct {
	fwk.Handle
	waiting   []*waitingPod
	activated []string
}

func (h *handle) IterateOverWaitingPods(callback func(fwk.WaitingPod)) {
	for _, w := range h.waiting {
		callback(w)
	}
}

func (h *handle) Activate(_ klog.Logger, pods map[string]*corev1.Pod) {
	for name := range pods {
		h.activated = append(h.activated, name)
	}
	slices.Sort(h.activated)
}

// waitingPod notes what becomes of a pod that waits.
type waitingPod struct {
	fwk.WaitingPod
	pod  *corev1.Pod
	said string
}

func (w *waitingPod) GetPod() *corev1.Pod         { return w.pod }
func (w *waitingPod) GetPendingPlugins() []string { return []string{Name} }
func (w *waitingPod) Allow(string)                { w.said = "allowed" }
func (w *waitingPod) Reject(_, why string) bool   { w.said = why; return true }

// rig is a plugin with a gang of three members, all of which its turn has a node for.
type rig struct {
	*Plugin
	clock  *clocktesting.FakeClock
	handle *handle
	pods   []*corev1.Pod
}

var gangName = types.NamespacedName{Namespace: "ns", Name: "x-k8s.io:g"}

type silent struct{}

func (silent) Configure(string, *args.GangArgs) {}
func (silent) Failed(string, string, int)       {}
func (silent) Fits(string, string)              {}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{clock: clocktesting.NewFakeClock(time.Unix(1000, 0)), handle: &handle{}}
	s := NewState(silent{}, r.clock)
	s.handle = r.handle
	s.pods = cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{byGang: indexByGang})
	groups := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	s.lister = schedulinglisters.NewPodGroupLister(groups)
	group := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: gangName.Namespace, Name: gangName.Name}}
	group.Spec.Priority = ptr.To[int32](0)
	group.Spec.SchedulingPolicy.Gang = &schedulingv1beta1.GangSchedulingPolicy{MinCount: 3}
	if err := groups.Add(group); err != nil {
		t.Fatal(err)
	}
	r.Plugin = &Plugin{args: &args.GangArgs{Timeout: metav1.Duration{Duration: time.Minute}}, handle: r.handle, state: s}
	g := s.of(gangName)
	g.turn = &turn{plan: map[types.UID]string{}, nodes: sets.New("n"), until: r.clock.Now().Add(time.Minute), timeout: time.Minute}
	for i := range 3 {
		pod := memberPod(fmt.Sprint("m", i))
		r.pods = append(r.pods, pod)
		if err := s.pods.Add(pod); err != nil {
			t.Fatal(err)
		}
		g.turn.plan[pod.UID] = "n"
	}
	return r
}

func memberPod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: gangName.Namespace, Name: name, UID: types.UID(name)},
		Spec:       corev1.PodSpec{SchedulingGroup: &corev1.PodSchedulingGroup{PodGroupName: ptr.To(gangName.Name)}},
	}
}

// triedAgain holds that those were woken.
func (r *rig) triedAgain(t *testing.T, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, r.handle.activated); diff != "" {
		t.Errorf("tried again (-want +got):\n%s", diff)
	}
}

// arrive has a member get its node, and returns what Permit says. It waits as the
// framework has it wait: only after its Permit.
func (r *rig) arrive(t *testing.T, i int) fwk.Code {
	t.Helper()
	if status := r.Reserve(t.Context(), framework.NewCycleState(), r.pods[i], "n"); !status.IsSuccess() {
		t.Fatal(status)
	}
	status, wait := r.Permit(t.Context(), framework.NewCycleState(), r.pods[i], "n")
	if status.IsWait() {
		if wait < r.state.gangs[gangName].turn.until.Sub(r.clock.Now()) {
			t.Errorf("the framework ends the wait after %s, before the turn ends", wait)
		}
		r.handle.waiting = append(r.handle.waiting, &waitingPod{pod: r.pods[i]})
	}
	return status.Code()
}

// said returns what those that wait were told.
func (r *rig) said() (all []string) {
	for _, w := range r.handle.waiting {
		all = append(all, w.said)
	}
	return all
}

// TestLastOneLetsAllGo holds that members wait until enough of them have a node, and
// that the last is told to go with those.
func TestLastOneLetsAllGo(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	got := []fwk.Code{r.arrive(t, 0), r.arrive(t, 1), r.arrive(t, 2)}
	if diff := cmp.Diff([]fwk.Code{fwk.Wait, fwk.Wait, fwk.Success}, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"allowed", "allowed"}, r.said()); diff != "" {
		t.Error(diff)
	}
	if r.state.gangs[gangName].turn != nil {
		t.Error("the turn is not over")
	}
}

// TestLateOneIsNotTheLast holds that a member which comes when the turn has lasted
// its time does not make the gang complete: the framework may have let the others go
// by then.
func TestLateOneIsNotTheLast(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.arrive(t, 0)
	r.arrive(t, 1)
	r.clock.Step(time.Minute)
	if code := r.arrive(t, 2); code != fwk.Unschedulable {
		t.Errorf("the late one gets %v", code)
	}
	r.state.sweep()
	why := "the gang was not complete after 1m0s"
	if diff := cmp.Diff([]string{why, why}, r.said()); diff != "" {
		t.Error(diff)
	}
	// Others get a try before it.
	for _, pod := range r.pods {
		r.Unreserve(t.Context(), framework.NewCycleState(), pod, "n")
	}
	if _, status := r.admit(t.Context(), gangName, r.pods[0]); status.Code() != fwk.UnschedulableAndUnresolvable {
		t.Errorf("it has another turn at once: %v", status)
	}
	r.clock.Step(longestBackoff)
	r.state.sweep()
	r.triedAgain(t, "ns/m0", "ns/m1", "ns/m2")
}

// TestThoseLetGoDoNotCount holds that a member which comes between the rejection of
// the others and their Unreserve is not bound alone.
func TestThoseLetGoDoNotCount(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.arrive(t, 0)
	r.arrive(t, 1)
	gone := memberPod("m0")
	gone.DeletionTimestamp = ptr.To(metav1.NewTime(r.clock.Now()))
	if err := r.state.pods.Update(gone); err != nil {
		t.Fatal(err)
	}
	r.state.podChanged(r.pods[0], gone)
	why := "member m0 of the gang is lost"
	if diff := cmp.Diff([]string{why, why}, r.said()); diff != "" {
		t.Error(diff)
	}
	// Another takes its place, so that there would be three.
	if err := r.state.pods.Add(memberPod("m3")); err != nil {
		t.Fatal(err)
	}
	if node, status := r.admit(t.Context(), gangName, r.pods[2]); node != "" || status.IsSuccess() {
		t.Errorf("it may be on %q: %v", node, status)
	}
	if code := r.arrive(t, 2); code != fwk.Unschedulable {
		t.Errorf("it gets %v", code)
	}
	for _, pod := range r.pods {
		r.Unreserve(t.Context(), framework.NewCycleState(), pod, "n")
		r.Unreserve(t.Context(), framework.NewCycleState(), pod, "n") // as often as it likes
	}
	r.handle.activated = nil
	r.clock.Step(firstBackoff)
	r.state.sweep()
	r.triedAgain(t, "ns/m1", "ns/m2", "ns/m3")
}

// TestSmallerGangIsTriedAgain holds that what came of a trial does not count for the
// gang without one of its members.
func TestSmallerGangIsTriedAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	g := r.state.gangs[gangName]
	g.turn, g.refused, g.retry = nil, &refusal{by: "m1"}, r.clock.Now().Add(retryPeriod)
	if err := r.state.pods.Delete(r.pods[1]); err != nil {
		t.Fatal(err)
	}
	r.state.podGone(r.pods[1])
	r.triedAgain(t, "ns/m0", "ns/m2")
	if g.refused != nil || g.isResting(r.clock.Now()) {
		t.Error("it is not tried for a while")
	}
}

// TestRefusedMembersSayWhy holds that members which were told to wait for their turn
// are tried again when the gang had it and did not fit: what their condition says is
// not so any more.
func TestRefusedMembersSayWhy(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	other := r.state.of(types.NamespacedName{Namespace: "ns", Name: "x-k8s.io:other"})
	g := r.state.gangs[gangName]
	other.turn, g.turn = g.turn, nil
	for _, pod := range r.pods {
		if _, waits := r.state.waitsForTurn(gangName, pod, sets.New("n")); !waits {
			t.Errorf("%s does not wait for its turn", pod.Name)
		}
	}
	var a after
	r.state.next(&a)
	r.state.do(a)
	if diff := cmp.Diff([]string{"ns/m2"}, r.handle.activated); diff != "" {
		t.Errorf("tried when its turn may be (-want +got):\n%s", diff)
	}
	r.handle.activated = nil
	r.refused(gangName, r.pods[2], "no room", 1)
	if diff := cmp.Diff([]string{"ns/m0", "ns/m1"}, r.handle.activated); diff != "" {
		t.Errorf("tried to say why (-want +got):\n%s", diff)
	}
}

// TestMissedIsLetGoLater holds that a member which was in its Permit, and not yet
// among those that wait, when the others were let go is let go soon.
func TestMissedIsLetGoLater(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.arrive(t, 0)
	missed := r.handle.waiting
	r.handle.waiting = nil
	r.Unreserve(t.Context(), framework.NewCycleState(), r.pods[1], "n") // its Reserve did not run
	r.handle.waiting = missed
	r.state.sweep()
	if diff := cmp.Diff([]string{reasonLost}, r.said()); diff != "" {
		t.Error(diff)
	}
}

// TestHints holds that a member is queued for what may make room for its gang, and
// of a gang that did not fit one member alone.
func TestHints(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	node := func(name string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pool": name}}}
	}
	for _, pod := range r.pods {
		pod.Spec.NodeSelector = map[string]string{"pool": "a"}
	}
	ask := func(pod *corev1.Pod, name string) fwk.QueueingHint {
		t.Helper()
		hint, err := r.afterNode(klog.Background(), pod, nil, node(name))
		if err != nil {
			t.Fatal(err)
		}
		return hint
	}
	g := r.state.gangs[gangName]
	g.turn, g.refused = nil, &refusal{by: "m1"}
	got := []fwk.QueueingHint{ask(r.pods[0], "a"), ask(r.pods[1], "a"), ask(r.pods[1], "b")}
	if diff := cmp.Diff([]fwk.QueueingHint{fwk.QueueSkip, fwk.Queue, fwk.QueueSkip}, got); diff != "" {
		t.Error(diff)
	}
	g.blocked = r.pods[1]
	if ask(r.pods[1], "a") != fwk.QueueSkip {
		t.Error("one that waits for its turn is queued for a node")
	}
	g.blocked, g.refused = nil, nil
	single := memberPod("single")
	single.Spec.SchedulingGroup = nil
	if ask(single, "a") != fwk.QueueSkip {
		t.Error("a pod in no gang is queued")
	}
	if _, err := r.afterNode(klog.Background(), single, nil, "no node"); err == nil {
		t.Error("something else than a node is taken for one")
	}
}

// TestLess holds the order of the queue: the higher priority, then who was there
// first, a member with the first of its gang.
func TestLess(t *testing.T) {
	t.Parallel()
	c := clocktesting.NewFakeClock(time.Unix(1000, 0))
	sort := &Sort{state: NewState(silent{}, c)}
	entry := func(name, gang string, priority int32, at int64) fwk.QueuedEntityInfo {
		pod := memberPod(name)
		pod.Spec.Priority = &priority
		pod.Spec.SchedulingGroup = nil
		if gang != "" {
			pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To(gang)}
		}
		info, err := framework.NewPodInfo(pod)
		if err != nil {
			t.Fatal(err)
		}
		return &framework.QueuedPodInfo{PodInfo: info, QueueingParams: framework.QueueingParams{Timestamp: time.Unix(at, 0)}}
	}
	// In the order in which they belong: gang a was there at 1000, b at 1001.
	want := []fwk.QueuedEntityInfo{
		entry("important", "", 5, 2000),
		entry("early", "", 0, 999),
		entry("a0", "x-k8s.io:a", 0, 1000), entry("a1", "x-k8s.io:a", 0, 3000),
		entry("own", "of-the-api", 0, 1000+1), // no gang of ours: its own time
		entry("b0", "x-k8s.io:b", 0, 1001), entry("b1", "x-k8s.io:b", 0, 1500),
		entry("late", "", 0, 1002),
		entry("lowest", "x-k8s.io:c", -1, 1),
	}
	sort.state.births.at(types.NamespacedName{Namespace: "ns", Name: "x-k8s.io:a"}, c.Now())
	c.Step(time.Second)
	sort.state.births.at(types.NamespacedName{Namespace: "ns", Name: "x-k8s.io:b"}, c.Now())
	c.Step(time.Second)
	for i := range want {
		for j := range want {
			if got := sort.Less(want[i], want[j]); got != (i < j) {
				t.Errorf("Less(%d, %d) is %v", i, j, got)
			}
		}
	}
}
