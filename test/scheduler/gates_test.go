package scheduler_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gates"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gates/condition"
)

// TestGatesOpen holds that the scheduler itself opens gates: members of a gang that
// wait for each other to exist are placed once they do, and a stranger's gate keeps
// its pod waiting.
func TestGatesOpen(t *testing.T) {
	t.Parallel()
	eachPlane(t, func(t *testing.T, p *plane) {
		l := newLab(t, p, 4)
		l.podGroup("train", 3)
		text, err := condition.Encode(&condition.Condition{Peers: &condition.Peers{Selector: "scheduling.x-k8s.io/pod-group=train", Min: 2}})
		if err != nil {
			t.Fatal(err)
		}
		gated := func(pod *corev1.Pod) *corev1.Pod {
			const gate = condition.Prefix + "others"
			pod.Annotations = map[string]string{gate: text}
			pod.Spec.SchedulingGates = append(pod.Spec.SchedulingGates, corev1.PodSchedulingGate{Name: gate})
			return pod
		}
		l.create(gated(l.member("train", 0)))
		l.create(gated(l.member("train", 1)))
		l.untilEvent("Pod", "train-1", gates.ReasonPeers, "1 of 2")
		l.create(gated(l.member("train", 2)))
		l.untilBound("train", 3)

		foreign := gated(l.pod("foreign", nil))
		foreign.Spec.SchedulingGates = append(foreign.Spec.SchedulingGates, corev1.PodSchedulingGate{Name: "example.com/other"})
		l.create(foreign)
		l.until("our gate is open and the stranger's is not", func(ctx context.Context) (bool, string) {
			pod, err := l.client.CoreV1().Pods(l.namespace).Get(ctx, foreign.Name, metav1.GetOptions{})
			if err != nil {
				return false, err.Error()
			}
			left := pod.Spec.SchedulingGates
			return len(left) == 1 && left[0].Name == "example.com/other" && pod.Spec.NodeName == "", fmt.Sprint(left)
		})
	})
}
