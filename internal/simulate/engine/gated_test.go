package engine

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-sched/kubectl-sched/internal/simulate/store"
)

// behindGate has somebody hold the pod back.
func behindGate(p *corev1.Pod) {
	p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/later"}}
}

// TestGatedMembers holds that a member behind a gate counts for nothing until that
// opens, and then like any other: the others start if they are enough, and wait if not.
func TestGatedMembers(t *testing.T) {
	t.Parallel()
	type turn struct {
		put    []string // names of members; of those in gated the gates are closed
		gated  []string
		remove []string
		placed []string // in the turn, all in one cycle
	}
	for name, test := range map[string]struct {
		least   int64
		running []string // they have nodes from the start
		turns   []turn
	}{
		"a surplus one":       {2, nil, []turn{{put: []string{"a", "b", "c"}, gated: []string{"c"}, placed: []string{"a", "b"}}, {put: []string{"c"}, placed: []string{"c"}}}},
		"a surplus one first": {2, nil, []turn{{put: []string{"a", "b", "c"}, gated: []string{"a"}, placed: []string{"b", "c"}}, {put: []string{"a"}, placed: []string{"a"}}}},
		"one that is needed":  {3, nil, []turn{{put: []string{"a", "b", "c"}, gated: []string{"c"}}, {put: []string{"c"}, placed: []string{"a", "b", "c"}}}},
		"all, opened one by one": {3, nil, []turn{
			{put: []string{"a", "b", "c", "d"}, gated: []string{"a", "b", "c", "d"}},
			{put: []string{"a"}},
			{put: []string{"b"}},
			{put: []string{"c"}, placed: []string{"a", "b", "c"}},
			{put: []string{"d"}, placed: []string{"d"}},
		}},
		"all, opened at once": {3, nil, []turn{
			{put: []string{"a", "b", "c"}, gated: []string{"a", "b", "c"}}, {put: []string{"a", "b", "c"}, placed: []string{"a", "b", "c"}},
		}},
		"one that is deleted": {2, nil, []turn{
			{put: []string{"a", "b"}, gated: []string{"b"}}, {remove: []string{"b"}}, {put: []string{"c"}, placed: []string{"a", "c"}},
		}},
		"one that is made anew": {2, nil, []turn{
			{put: []string{"a", "b"}, gated: []string{"b"}}, {remove: []string{"b"}, put: []string{"b"}, gated: []string{"b"}}, {put: []string{"b"}, placed: []string{"a", "b"}},
		}},
		"one of a gang that runs": {2, []string{"a", "b"}, []turn{{put: []string{"c"}, gated: []string{"c"}}, {put: []string{"c"}, placed: []string{"c"}}}},
		"one of a gang that ran in part": {3, []string{"a"}, []turn{
			{put: []string{"b", "c"}, gated: []string{"c"}}, {put: []string{"c"}, placed: []string{"b", "c"}},
		}},
	} {
		for kind, of := range map[string]struct {
			group  store.Object
			member func(*corev1.Pod)
		}{
			"of an object": {podGroup("g", test.least), inGroup("g")},
			"of the API": {
				&schedulingv1beta1.PodGroup{
					ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "g", UID: "g"},
					Spec: schedulingv1beta1.PodGroupSpec{SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{
						Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: int32(test.least)},
					}},
				},
				func(p *corev1.Pod) { p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To("g")} },
			},
		} {
			t.Run(name+" "+kind, func(t *testing.T) {
				t.Parallel()
				e := start(t, Options{Profiles: ganged(t)}, node("n", "z", "8"), of.group)
				for _, name := range test.running {
					put(t, e, pod(name, "1", of.member, on("n")))
				}
				settle(t, e)
				for i, turn := range test.turns {
					for _, name := range turn.remove {
						if err := e.Remove(pod(name, "1")); err != nil {
							t.Fatal(err)
						}
					}
					for _, name := range turn.put {
						p := pod(name, "1", of.member)
						if slices.Contains(turn.gated, name) {
							behindGate(p)
						}
						put(t, e, p)
					}
					settle(t, e)
					var placed []string
					cycles := map[int]bool{}
					for _, a := range e.Attempts() {
						cycles[a.Cycle] = true
						if placed = append(placed, a.Pod.Name); a.Node == "" {
							t.Errorf("turn %d: %s is tried and not placed: %s", i, a.Pod.Name, a.Message)
						}
					}
					slices.Sort(placed)
					if diff := cmp.Diff(turn.placed, placed); diff != "" || len(cycles) > 1 {
						t.Errorf("turn %d: placed in %d cycles (-want +got):\n%s", i, len(cycles), diff)
					}
				}
			})
		}
	}
}

// TestGatedMemberIsKnown holds that the group of a pod is known that the scheduler does
// not see in it yet.
func TestGatedMemberIsKnown(t *testing.T) {
	t.Parallel()
	held := pod("a", "1", inGroup("g"), behindGate)
	e := start(t, Options{Profiles: ganged(t)}, node("n", "z", "8"), podGroup("g", 2), held, pod("single", "1", behindGate))
	settle(t, e)
	stored, ok := e.Pod(key(held))
	if !ok || stored.Spec.SchedulingGroup != nil {
		t.Fatalf("the scheduler sees %v in group %v, want in none", ok, stored.Spec.SchedulingGroup)
	}
	if got := e.GroupOf(stored); got != "x-k8s.io:g" {
		t.Errorf("it is known to be in %q", got)
	}
	if got := e.GroupOf(pod("single", "1")); got != "" {
		t.Errorf("a pod in no gang is known to be in %q", got)
	}
}
