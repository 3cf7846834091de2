package podgroup

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

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
	if id, ok := f.pin(p); !ok || id.Name != "first" {
		t.Fatalf("pin: %v %v", id, ok)
	}
	p.Labels[gangkey.Label] = "second"
	if id, _ := f.pin(p); id.Name != "first" {
		t.Errorf("a changed label moved the pod to %v", id)
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
				f.endCycle(key)
			}
			if diff := cmp.Diff(test.want, f.notes(test.after)); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}
