package scheduler_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/podgroup"
)

// TestMembersBeyondTheMinimum holds that a member behind a scheduling gate is not one of
// those that are needed, and keeps no others from starting when they are enough. Such a
// member, when its gate has opened, and one that comes later get nodes by themselves.
func TestMembersBeyondTheMinimum(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, p *plane) {
		l := newLab(t, p, 4)
		l.podGroup("more", 2)
		l.create(behindGate(l.member("more", 0)))
		l.create(l.member("more", 1))
		// The gated member exists, and is not one that can be placed.
		l.untilEvent("PodGroup", "more", podgroup.ReasonWaiting, "gang more: 2 of 2 members exist, 1 of them behind a scheduling gate, needs 2")
		l.untilEvent("Pod", "more-1", podgroup.ReasonWaiting, "1 of them behind a scheduling gate")
		if bound := l.bound(""); len(bound) > 0 {
			t.Errorf("bound with a gated member: %v", bound)
		}
		l.create(l.member("more", 2))
		l.untilBound("more", 2)
		if bound := l.bound(""); slices.Contains(bound, "more-0") {
			t.Errorf("bound behind a gate: %v", bound)
		}
		l.openGate("more-0")
		l.untilSoonBound("more", 3)
		l.create(l.member("more", 3))
		l.untilSoonBound("more", 4)
	})
}

// TestGatesOfAWholeGang holds that a gang whose members are all behind gates starts when
// enough of them have opened, as a whole, and that it counts for nothing that one was
// behind a gate which is gone by then.
func TestGatesOfAWholeGang(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, p *plane) {
		l := newLab(t, p, 5)
		l.podGroup("held", 3)
		for i := range 5 {
			l.create(behindGate(l.member("held", i)))
		}
		l.untilEvent("PodGroup", "held", podgroup.ReasonWaiting, "gang held: 5 of 3 members exist, 5 of them behind a scheduling gate, needs 3")
		l.delete("held-0")
		l.openGate("held-1")
		l.openGate("held-2")
		l.untilEvent("PodGroup", "held", podgroup.ReasonWaiting, "gang held: 4 of 3 members exist, 2 of them behind a scheduling gate, needs 3")
		if bound := l.bound(""); len(bound) > 0 {
			t.Errorf("bound while too few gates are open: %v", bound)
		}
		l.openGate("held-3")
		l.untilSoonBound("held", 3)
		l.openGate("held-4")
		l.untilSoonBound("held", 4)
	})
}

// TestGatedMemberOfTheAPI holds the same of a gang of the API's own PodGroup.
func TestGatedMemberOfTheAPI(t *testing.T) {
	t.Parallel()
	withAPI.start(t)
	l := newLab(t, withAPI, 3)
	l.ownGroup("own", 2)
	for i := range 3 {
		member := l.pod(fmt.Sprintf("api-%d", i), nil)
		member.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To("own")}
		if i == 0 {
			behindGate(member)
		}
		l.create(member)
	}
	l.untilBound("api", 2)
	if bound := l.bound(""); slices.Contains(bound, "api-0") {
		t.Errorf("bound behind a gate: %v", bound)
	}
	l.openGate("api-0")
	l.untilSoonBound("api", 3)
}

// behindGate puts pod behind a gate that openGate opens.
func behindGate(pod *corev1.Pod) *corev1.Pod {
	pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/later"}}
	return pod
}

// openGate opens the gate of the pod called name.
func (l *lab) openGate(name string) {
	l.Helper()
	_, err := l.client.CoreV1().Pods(l.namespace).Patch(l.Context(), name, types.StrategicMergePatchType,
		[]byte(`{"spec":{"schedulingGates":[{"$patch":"delete","name":"example.com/later"}]}}`), metav1.PatchOptions{})
	if err != nil {
		l.Fatal(err)
	}
}

// soon is how long a member at most may wait for which there is room: longer than a busy
// machine takes, and shorter than the queue's next look at what nothing has woken.
const soon = 20 * time.Second

// untilSoonBound is untilBound, without the wait for something that looks again by itself.
func (l *lab) untilSoonBound(prefix string, n int) {
	l.Helper()
	begun := time.Now()
	l.untilBound(prefix, n)
	if took := time.Since(begun); took > soon {
		l.Errorf("%d members of %q have nodes after %s only", n, prefix, took)
	}
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
