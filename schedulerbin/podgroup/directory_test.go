package podgroup

import (
	"fmt"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/args"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gangkey"
)

// fixture is a directory with one profile, at a time that the test moves.
type fixture struct {
	*testing.T
	*directory
	clock *clocktesting.FakePassiveClock
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	c := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	serial := 0
	d := newDirectory(c, func() types.UID { serial++; return types.UID(fmt.Sprint("uid-", serial)) }, newFeed())
	d.policies["ours"] = policy{timeout: time.Minute, onPartial: args.Report}
	return &fixture{T: t, directory: d, clock: c}
}

// spec says the size of the gang called name.
func (f *fixture) spec(name string, uid types.UID, minMember int32) {
	f.setSpec(object{gangkey.FamilyX, "ns", name}, &spec{uid: uid, minMember: minMember})
}

// group returns the virtual group with key as the scheduler sees it, or nil.
func (f *fixture) group(key string) *schedulingv1beta1.PodGroup {
	f.feed.mu.Lock()
	defer f.feed.mu.Unlock()
	return f.feed.objects[types.NamespacedName{Namespace: "ns", Name: key}]
}

// minCount returns the minCount of the group with key, or 0 if there is none.
func (f *fixture) minCount(key string) int32 {
	group := f.group(key)
	if group == nil {
		return 0
	}
	return group.Spec.SchedulingPolicy.Gang.MinCount
}

// notes returns what there is to say after a while.
func (f *fixture) notes(after time.Duration) []string {
	var notes []string
	for _, found := range f.findings(f.clock.Now().Add(after)) {
		notes = append(notes, found.reason+": "+found.note+found.left())
	}
	return notes
}

func pod(name, gang string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: types.UID(name), Labels: map[string]string{gangkey.Label: gang}},
		Spec:       corev1.PodSpec{SchedulerName: "ours", Priority: ptr.To[int32](7)},
	}
}

func bound(p *corev1.Pod) *corev1.Pod {
	p.Spec.NodeName = "node"
	return p
}

func by(controller types.UID, p *corev1.Pod) *corev1.Pod {
	p.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: "job", UID: controller, Controller: ptr.To(true)}}
	return p
}

func TestVirtualGroup(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.spec("train", "object", 2)
	if f.group("x-k8s.io:train") != nil {
		t.Error("a gang without members is a group")
	}
	f.setPod(pod("a", "train"))
	want := &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "x-k8s.io:train", UID: "uid-1", ResourceVersion: "2", Annotations: map[string]string{}},
		Spec: schedulingv1beta1.PodGroupSpec{
			SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: 2}},
			DisruptionMode:   &schedulingv1beta1.DisruptionMode{All: &schedulingv1beta1.AllDisruptionMode{}},
			Priority:         ptr.To[int32](7),
		},
	}
	if diff := cmp.Diff(want, f.group("x-k8s.io:train")); diff != "" {
		t.Errorf("group (-want +got):\n%s", diff)
	}
	f.setPod(pod("b", "train"))
	if got := f.group("x-k8s.io:train").ResourceVersion; got != "2" {
		t.Errorf("a second member like the first is an event, version %s", got)
	}
	f.spec("train", "object", 3)
	if got := f.group("x-k8s.io:train"); got.UID != "uid-1" || f.minCount("x-k8s.io:train") != 3 {
		t.Errorf("changed minMember: got %v", got)
	}
	f.spec("train", "object made anew", 3)
	if got := f.group("x-k8s.io:train").UID; got != "uid-2" {
		t.Errorf("an object made anew has the group's old UID %s", got)
	}
	f.setSpec(object{gangkey.FamilyX, "ns", "train"}, nil)
	if f.group("x-k8s.io:train") != nil {
		t.Error("the group outlives its object")
	}
}

func TestPinnedGang(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	p := pod("a", "first")
	if key, ok := f.pin(p); !ok || key != "x-k8s.io:first" {
		t.Fatalf("pin: %v %v", key, ok)
	}
	p.Labels[gangkey.Label] = "second"
	if key, _ := f.pin(p); key != "x-k8s.io:first" {
		t.Errorf("a changed label moved the pod to %v", key)
	}
	plain := pod("b", "")
	if _, ok := f.pin(plain); ok {
		t.Error("a pod without a label is in a gang")
	}
	plain.Labels[gangkey.Label] = "first"
	if _, ok := f.pin(plain); ok {
		t.Error("a label that came later put the pod into a gang")
	}
	f.removePod(plain)
	if _, ok := f.pin(plain); !ok {
		t.Error("the pod is still pinned after it was deleted")
	}
}

func TestMinCountOfARun(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		members  []*corev1.Pod
		finished []*corev1.Pod
		want     int32
	}{
		{"none has finished", []*corev1.Pod{by("run", pod("a", "g"))}, nil, 4},
		{"two of this run have", []*corev1.Pod{by("run", pod("a", "g"))}, []*corev1.Pod{by("run", pod("b", "g")), by("run", pod("c", "g"))}, 2},
		{"all but the retry, and one more", []*corev1.Pod{by("run", pod("a", "g"))}, []*corev1.Pod{
			by("run", pod("b", "g")), by("run", pod("c", "g")), by("run", pod("d", "g")), by("run", pod("e", "g")),
		}, 1},
		{"those of an earlier run", []*corev1.Pod{by("new", pod("a", "g"))}, []*corev1.Pod{by("old", pod("b", "g"))}, 4},
		{"plain pods while another runs", []*corev1.Pod{pod("a", "g"), bound(pod("x", "g"))}, []*corev1.Pod{pod("b", "g")}, 3},
		{"plain pods that all start anew", []*corev1.Pod{pod("a", "g")}, []*corev1.Pod{pod("b", "g")}, 4},
		{"still known as a member", []*corev1.Pod{by("run", pod("a", "g"))}, []*corev1.Pod{by("run", pod("a", "g"))}, 4},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.spec("g", "object", 4)
			for _, p := range test.members {
				f.setPod(p)
			}
			for _, p := range test.finished {
				f.setFinished(p, false)
			}
			if got := f.minCount("x-k8s.io:g"); got != test.want {
				t.Errorf("minCount %d, want %d", got, test.want)
			}
		})
	}
}

func TestFindings(t *testing.T) {
	t.Parallel()
	other := pod("b", "g")
	other.Spec.Priority = ptr.To[int32](1)
	foreign := pod("a", "g")
	foreign.Spec.SchedulerName = "theirs"
	tests := []struct {
		name  string
		size  int32 // -1: there is no object
		pods  []*corev1.Pod
		fits  int // -1: not tried
		after time.Duration
		want  []string
	}{
		{"too early to say", -1, []*corev1.Pod{pod("a", "g")}, -1, time.Second, nil},
		{"no object", -1, []*corev1.Pod{pod("a", "g")}, -1, 5 * time.Second, []string{
			"GangMissing: gang g: 1 members wait for its size; create the PodGroup ns/g (scheduling.x-k8s.io/v1alpha1), or set the label pod-group.scheduling.sigs.k8s.io/min-available",
		}},
		{"no size", 0, []*corev1.Pod{pod("a", "g")}, -1, 5 * time.Second, []string{
			"GangInvalid: gang g: minMember of its PodGroup is 0; set it to how many members must start together",
		}},
		{"contradiction", 2, []*corev1.Pod{pod("a", "g"), other}, -1, 5 * time.Second, []string{
			"GangMixed: gang g: members must have one priority, but a has 7 and b has 1; make them equal",
		}},
		{"too few", 3, []*corev1.Pod{pod("a", "g"), pod("c", "g")}, -1, 5 * time.Second, []string{
			"GangWaiting: gang g: 2 of 3 members exist, needs 3; 55s left",
		}},
		{"complete but for a gate", 2, []*corev1.Pod{gated(pod("a", "g")), pod("c", "g")}, -1, 5 * time.Second, []string{
			"GangWaiting: gang g: 2 of 2 members exist, 1 of them behind a scheduling gate, needs 2; 55s left",
		}},
		{"all are behind gates", 2, []*corev1.Pod{gated(pod("a", "g")), gated(pod("c", "g"))}, -1, 5 * time.Second, []string{
			"GangWaiting: gang g: 2 of 2 members exist, 2 of them behind a scheduling gate, needs 2; 55s left",
		}},
		{"a surplus member is behind a gate", 1, []*corev1.Pod{gated(pod("a", "g")), pod("c", "g")}, -1, 5 * time.Second, nil},
		{"no room, and a surplus member is behind a gate", 1, []*corev1.Pod{gated(pod("a", "g")), pod("c", "g")}, 0, 5 * time.Second, []string{
			"GangWaiting: gang g: 2 of 1 members exist, 1 of them behind a scheduling gate, at least 0 more fit, needs 1; 55s left",
		}},
		{"started with its minimum, and one is behind a gate", 1, []*corev1.Pod{gated(pod("a", "g")), bound(pod("c", "g"))}, -1, time.Hour, nil},
		{"complete and not tried", 1, []*corev1.Pod{pod("a", "g")}, -1, 5 * time.Second, nil},
		{"no room", 2, []*corev1.Pod{pod("a", "g"), pod("c", "g")}, 1, 5 * time.Second, []string{
			"GangWaiting: gang g: 2 of 2 members exist, at least 1 more fit, needs 2; 55s left",
		}},
		{"bound in part", 2, []*corev1.Pod{pod("a", "g"), bound(pod("c", "g"))}, 0, 5 * time.Second, []string{
			"GangWaiting: gang g: 2 of 2 members exist, 1 have a node, at least 0 more fit, needs 2; 55s left",
		}},
		{"bound in part for too long", 2, []*corev1.Pod{pod("a", "g"), bound(pod("c", "g"))}, 0, time.Hour, []string{
			"GangPartial: gang g is bound in part after 1m0s: 2 of 2 members exist, 1 have a node, at least 0 more fit, needs 2",
		}},
		{"all bound", 1, []*corev1.Pod{bound(pod("a", "g"))}, -1, time.Hour, nil},
		{"another scheduler's", -1, []*corev1.Pod{foreign}, -1, time.Hour, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			if test.size >= 0 {
				f.spec("g", "object", test.size)
			}
			for _, p := range test.pods {
				f.setPod(p.DeepCopy())
			}
			if test.fits >= 0 {
				key := types.NamespacedName{Namespace: "ns", Name: "x-k8s.io:g"}
				f.tried(key, "the trial", test.fits)
				f.tried(key, "a trial without victims", 99)
				f.endCycle(key, false)
			}
			if diff := cmp.Diff(test.want, f.notes(test.after)); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOneNameForAllMembers holds that the names of a gang's members are in one place: the
// scheduler compares them very often.
func TestOneNameForAllMembers(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.spec("g", "object", 2)
	a, _ := f.pin(pod("a", "g"))
	f.setPod(pod("b", "g"))
	b, _ := f.pin(pod("b", "g"))
	c, _ := f.pin(pod("c", "other"))
	if unsafe.StringData(a) != unsafe.StringData(b) || unsafe.StringData(a) != unsafe.StringData(f.group(a).Name) {
		t.Errorf("%q of two members and of their group is in several places", a)
	}
	if a == c {
		t.Errorf("two gangs are called %q", a)
	}
}

// TestFitsAndIsBound holds that nothing is said of a gang that fits while its members are
// being bound, however long that takes, until it is bound in part after its timeout or
// does not fit again.
func TestFitsAndIsBound(t *testing.T) {
	t.Parallel()
	key := types.NamespacedName{Namespace: "ns", Name: "x-k8s.io:g"}
	for name, says := range map[string]struct{ fits, fails func(*fixture) }{
		"a cycle of the group": {
			fits:  func(f *fixture) { f.tried(key, "a trial", 2); f.endCycle(key, true) },
			fails: func(f *fixture) { f.endCycle(key, false) },
		},
		"a try in mode permit": {
			fits:  func(f *fixture) { f.fits(key) },
			fails: func(f *fixture) { f.failed(key, 0) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.spec("g", "object", 2)
			f.setPod(pod("a", "g"))
			f.setPod(pod("b", "g"))
			says.fails(f)
			says.fits(f)
			if got := f.notes(30 * time.Second); got != nil {
				t.Errorf("said while no member is bound yet: %q", got)
			}
			f.setPod(bound(pod("a", "g")))
			if got := f.notes(30 * time.Second); got != nil {
				t.Errorf("said while one member is bound: %q", got)
			}
			want := []string{"GangPartial: gang g is bound in part after 1m0s: 2 of 2 members exist, 1 have a node, needs 2"}
			if diff := cmp.Diff(want, f.notes(2*time.Minute)); diff != "" {
				t.Errorf("bound in part after the timeout (-want +got):\n%s", diff)
			}
			says.fails(f)
			want = []string{"GangWaiting: gang g: 2 of 2 members exist, 1 have a node, at least 0 more fit, needs 2; 30s left"}
			if diff := cmp.Diff(want, f.notes(30*time.Second)); diff != "" {
				t.Errorf("the rest does not fit (-want +got):\n%s", diff)
			}
		})
	}
}

// TestBoundAfterALongWait holds that a gang which waited for longer than its timeout has
// all of that once more to become whole: it is not called partial, and so not evicted,
// while its members are being bound; and that the time begins anew when it falls below its
// minimum later.
func TestBoundAfterALongWait(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.spec("g", "object", 2)
	f.setPod(pod("a", "g"))
	f.setPod(pod("b", "g"))
	expect := func(when string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, f.notes(0)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	f.clock.SetTime(f.clock.Now().Add(10 * time.Minute))
	f.setPod(bound(pod("a", "g")))
	expect("one of two is bound")
	f.clock.SetTime(f.clock.Now().Add(59 * time.Second))
	expect("nearly the timeout later")
	f.clock.SetTime(f.clock.Now().Add(time.Second))
	expect("the timeout later", "GangPartial: gang g is bound in part after 1m0s: 2 of 2 members exist, 1 have a node, needs 2")
	f.setPod(bound(pod("b", "g")))
	expect("whole")
	f.clock.SetTime(f.clock.Now().Add(10 * time.Minute))
	f.removePod(bound(pod("b", "g")))
	f.setPod(pod("c", "g"))
	f.clock.SetTime(f.clock.Now().Add(30 * time.Second))
	expect("a member is made anew")
	f.clock.SetTime(f.clock.Now().Add(30 * time.Second))
	expect("and has no node for the timeout", "GangPartial: gang g is bound in part after 1m0s: 2 of 2 members exist, 1 have a node, needs 2")
}

// TestCountedKinds holds that what the scheduler is told of gangs whose members come,
// change and go is what it is told of those that are there in the end.
func TestCountedKinds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		drawn := rapid.Custom(func(t *rapid.T) *corev1.Pod {
			p := pod(rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "name"), "g")
			p.Spec.Priority = ptr.To(rapid.Int32Range(1, 2).Draw(t, "priority"))
			p.Spec.SchedulerName = rapid.SampledFrom([]string{"ours", "theirs"}).Draw(t, "scheduler")
			if rapid.Bool().Draw(t, "never preempts") {
				p.Spec.PreemptionPolicy = ptr.To(corev1.PreemptNever)
			}
			if rapid.Bool().Draw(t, "says a size") {
				p.Labels[gangkey.LabelMinAvailable] = fmt.Sprint(rapid.IntRange(1, 5).Draw(t, "size"))
			}
			if rapid.Bool().Draw(t, "has a node") {
				p = bound(p)
			}
			return by(types.UID(rapid.SampledFrom([]string{"one run", "another"}).Draw(t, "run")), p)
		})
		directoryOf := func() *directory {
			d := newDirectory(clocktesting.NewFakePassiveClock(time.Time{}), func() types.UID { return "uid" }, newFeed())
			d.setFinished(by("one run", pod("gone", "g")), false)
			return d
		}
		d, left := directoryOf(), map[types.UID]*corev1.Pod{}
		for range rapid.IntRange(1, 12).Draw(t, "changes") {
			p := drawn.Draw(t, "pod")
			if rapid.IntRange(0, 3).Draw(t, "goes") == 0 {
				d.removePod(p)
				delete(left, p.UID)
			} else {
				d.setPod(p)
				left[p.UID] = p
			}
		}
		anew := directoryOf()
		for _, p := range left {
			anew.setPod(p)
		}
		id := gangkey.Gang{Family: gangkey.FamilyX, Namespace: "ns", Name: "g"}
		got, want := d.gangs[id], anew.gangs[id]
		if diff := cmp.Diff(want.shown, got.shown, cmp.AllowUnexported(published{})); diff != "" {
			t.Fatalf("shown (-of those left +of all changes):\n%s", diff)
		}
		if diff := cmp.Diff(want.kinds, got.kinds, cmp.AllowUnexported(kind{}, traits{})); diff != "" {
			t.Fatalf("kinds (-of those left +of all changes):\n%s", diff)
		}
		if want.waiting.IsZero() != got.waiting.IsZero() {
			t.Fatalf("waiting: %v of those left, %v of all changes", want.waiting, got.waiting)
		}
	})
}

// TestSchedulerSaysFits holds that what the scheduler writes on a group's status says
// whether the gang fits.
func TestSchedulerSaysFits(t *testing.T) {
	t.Parallel()
	for status, want := range map[metav1.ConditionStatus][]string{
		metav1.ConditionTrue:  nil,
		metav1.ConditionFalse: {"GangWaiting: gang g: 1 of 1 members exist, at least 0 more fit, needs 1; 55s left"},
	} {
		f := newFixture(t)
		f.spec("g", "object", 1)
		f.setPod(pod("a", "g"))
		e := &Engine{directory: f.directory}
		patch := fmt.Appendf(nil, `{"status": {"conditions": [{"type": %q, "status": %q}]}}`, schedulingv1beta1.PodGroupInitiallyScheduled, status)
		groups := e.Client(fake.NewClientset()).SchedulingV1beta1().PodGroups("ns")
		if _, err := groups.Patch(t.Context(), "x-k8s.io:g", types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, f.notes(5*time.Second)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", status, diff)
		}
	}
}
