package scheduler_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestPreemptionIsWhole holds that a gang makes room for itself as a whole and that
// one that is in the way goes as a whole, and that single pods are preempted as
// before: no more of them than needed.
func TestPreemptionIsWhole(t *testing.T) {
	t.Parallel()
	gang := func(l *lab, name string, n int) (members []*corev1.Pod) {
		l.podGroup(name, n)
		for i := range n {
			members = append(members, l.member(name, i))
		}
		return members
	}
	for name, test := range map[string]preemptionCase{
		"a gang by a gang": {
			4, func(l *lab) []*corev1.Pod { return gang(l, "victim", 4) }, func(l *lab) []*corev1.Pod { return gang(l, "winner", 4) }, 0,
		},
		"a gang by a smaller gang": {
			4, func(l *lab) []*corev1.Pod { return gang(l, "victim", 4) }, func(l *lab) []*corev1.Pod { return gang(l, "winner", 2) }, 0,
		},
		"a gang by a pod": {
			3, func(l *lab) []*corev1.Pod { return gang(l, "victim", 3) }, func(l *lab) []*corev1.Pod { return []*corev1.Pod{l.pod("winner", nil)} }, 0,
		},
		"pods by a gang": {
			3, func(l *lab) []*corev1.Pod {
				return []*corev1.Pod{l.pod("victim-0", nil), l.pod("victim-1", nil), l.pod("victim-2", nil)}
			}, func(l *lab) []*corev1.Pod { return gang(l, "winner", 2) }, 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.run(t)
		})
	}
}

// A single pod preempts no more than it needs. Nothing else happens meanwhile: upstream
// tries the pod again when any pod goes, and where it has not heard yet that its first
// victim is gone, it takes a second one.
func TestPodPreemption(t *testing.T) { //nolint:paralleltest // nothing else may happen meanwhile
	preemptionCase{
		2, func(l *lab) []*corev1.Pod { return []*corev1.Pod{l.pod("victim-0", nil), l.pod("victim-1", nil)} },
		func(l *lab) []*corev1.Pod { return []*corev1.Pod{l.pod("winner", nil)} }, 1,
	}.run(t)
}

// preemptionCase is who is in whose way.
type preemptionCase struct {
	nodes  int
	victim func(*lab) []*corev1.Pod
	pods   func(*lab) []*corev1.Pod
	left   int // victims that stay
}

func (c preemptionCase) run(t *testing.T) {
	t.Helper()
	eachPlane(t, func(t *testing.T, p *plane) {
		l := newLab(t, p, c.nodes)
		class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: l.namespace}, Value: 5}
		if _, err := p.client.SchedulingV1().PriorityClasses().Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		victims := c.victim(l)
		for _, pod := range victims {
			l.create(pod)
		}
		l.untilBound("victim", len(victims))
		winners := c.pods(l)
		for _, pod := range winners {
			pod.Spec.PriorityClassName = class.Name
			l.create(pod)
		}
		l.untilBound("winner", len(winners))
		l.until("the victims gone", func(context.Context) (bool, string) {
			left := l.bound("victim")
			return len(left) == c.left, fmt.Sprint(left)
		})
	})
}
