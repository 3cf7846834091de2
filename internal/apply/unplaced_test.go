package apply

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

func TestStuckPods(t *testing.T) {
	t.Parallel()
	pod := func(node string, scheduled corev1.ConditionStatus, message string) *corev1.Pod {
		return &corev1.Pod{
			Spec:   corev1.PodSpec{NodeName: node},
			Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: scheduled, Message: message}}},
		}
	}
	spread := "0/6 nodes are available: 2 node(s) didn't match pod topology spread constraints, 4 Insufficient cpu. no new claims to deallocate, preemption: 0/6 nodes are available: 2 Preemption is not helpful for scheduling, 4 No preemption victims found for incoming pod."
	affinity := "0/6 nodes are available: 6 node(s) didn't match Pod's node affinity/selector. preemption: 0/6 nodes are available: 6 Preemption is not helpful for scheduling."
	stuck := stuckIn([]*corev1.Pod{
		pod("", corev1.ConditionFalse, affinity),
		pod("", corev1.ConditionFalse, spread),
		pod("", corev1.ConditionFalse, spread),
		pod("n1", corev1.ConditionTrue, ""),
		{}, // the scheduler has not looked at it
	})
	want := "2 pods have no node, because the scheduler says: 0/6 nodes are available: 2 node(s) didn't match pod topology spread constraints, 4 Insufficient cpu; " +
		"1 pod has no node, because the scheduler says: 0/6 nodes are available: 6 node(s) didn't match Pod's node affinity/selector"
	if d := cmp.Diff(want, stuck.String()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	at := func(line int) compiler.Origin {
		return compiler.Origin{Policy: fmt.Sprint(line), Range: diag.At(diag.Pos{File: "p.cue", Line: line, Column: 1})}
	}
	got := stuck.origins(map[string][]compiler.Origin{
		"/spec/template/spec/topologySpreadConstraints":                                               {at(1)},
		"/spec/template/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution":    {at(2), at(1)},
		"/spec/template/spec/affinity/nodeAffinity/preferredDuringSchedulingIgnoredDuringExecution":   {at(3)},
		"/spec/template/spec/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution": {at(4)},
		"/spec/template/spec/nodeSelector":                                                            {at(5)},
		"/spec/template/spec/priorityClassName":                                                       {at(6)},
	})
	if d := cmp.Diff([]compiler.Origin{at(1), at(2), at(5)}, got); d != "" {
		t.Errorf("policies' lines (-want +got):\n%s", d)
	}
	if got := stuckIn([]*corev1.Pod{pod("n1", corev1.ConditionTrue, "")}); got != nil {
		t.Errorf("with all pods placed it says %s", got)
	}
}

func TestRolloutText(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]string{
		"Waiting for deployment \"web\" rollout to finish: 1 out of 3 new replicas have been updated...\n": "1 out of 3 new replicas have been updated",
		"Waiting for daemon set \"web\" rollout to finish: 1 of 3 updated pods are available...\n":         "1 of 3 updated pods are available",
		"Waiting for 2 pods to be ready...\n":                                                       "2 pods to be ready",
		"waiting for statefulset rolling update to complete 1 pods at revision web-6d4cf56db6...\n": "statefulset rolling update to complete 1 pods at revision web-6d4cf56db6",
		"Waiting for deployment spec update to be observed...\n":                                    "deployment spec update to be observed",
		"deployment \"web\" exceeded its progress deadline":                                         "exceeded its progress deadline",
	} {
		if got := rolloutText(message, "web"); got != want {
			t.Errorf("%q becomes %q, want %q", message, got, want)
		}
	}
}
