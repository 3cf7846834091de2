package scheduler_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/podgroup"
)

// TestMembersBeyondTheMinimum holds what a gated member does to a gang: it is not one
// of those that are needed. Beyond them, the pod-group cycle does not try a gang that
// has one, and says so; member by member the others start without it. Members that come
// later get nodes by themselves.
func TestMembersBeyondTheMinimum(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, p *plane) {
		l := newLab(t, p, 4)
		l.podGroup("more", 2)
		gated := l.member("more", 0)
		gated.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/later"}}
		l.create(gated)
		l.create(l.member("more", 1))
		// The gated member exists, and is not one that can be placed.
		l.untilEvent("PodGroup", "more", podgroup.ReasonWaiting, "gang more: 2 of 2 members exist, 1 of them gated, needs 2")
		l.untilEvent("Pod", "more-1", podgroup.ReasonWaiting, "1 of them gated")
		if bound := l.bound(""); len(bound) > 0 {
			t.Errorf("bound with a gated member: %v", bound)
		}
		l.create(l.member("more", 2))
		if p == withoutCycle {
			l.untilBound("more", 2)
		} else {
			l.untilEvent("PodGroup", "more", podgroup.ReasonWaiting, "3 of 2 members exist, 1 of them gated, needs 2; a gated member keeps the others from being tried")
			if bound := l.bound(""); len(bound) > 0 {
				t.Errorf("bound in spite of a gated member, which is better; then its message and the docs must go: %v", bound)
			}
		}
		_, err := l.client.CoreV1().Pods(l.namespace).Patch(t.Context(), "more-0", types.StrategicMergePatchType,
			[]byte(`{"spec":{"schedulingGates":[{"$patch":"delete","name":"example.com/later"}]}}`), metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		l.untilBound("more", 3)
		l.create(l.member("more", 3))
		l.untilBound("more", 4)
	})
}

// TestChangedMinimum holds that a gang that waits takes another minMember for its own:
// with a higher one it waits for more members, with a lower one it starts with those
// that are there.
func TestChangedMinimum(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, p *plane) {
		l := newLab(t, p, 4)
		set := func(minMember int) {
			t.Helper()
			patch := fmt.Appendf(nil, `{"spec":{"minMember":%d}}`, minMember)
			if _, err := l.dynamic.Resource(podGroups).Namespace(l.namespace).Patch(t.Context(), "changed", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		l.podGroup("changed", 2)
		l.create(l.member("changed", 0))
		l.untilEvent("PodGroup", "changed", podgroup.ReasonWaiting, "1 of 2 members exist")
		set(4)
		l.untilEvent("PodGroup", "changed", podgroup.ReasonWaiting, "1 of 4 members exist")
		l.create(l.member("changed", 1))
		l.create(l.member("changed", 2))
		l.untilEvent("PodGroup", "changed", podgroup.ReasonWaiting, "3 of 4 members exist")
		if bound := l.bound(""); len(bound) > 0 {
			t.Errorf("bound below the minimum: %v", bound)
		}
		set(3)
		l.untilBound("changed", 3)
	})
}
