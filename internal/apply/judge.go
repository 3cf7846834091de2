package apply

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	"github.com/kubectl-sched/kubectl-sched/internal/workload"
)

// misplaced says why a pod with the placement must not be on the node; empty if
// it may. Only what is required counts, judged by the scheduler's own helpers.
func misplaced(fields workload.PodFields, node *corev1.Node) string {
	pod := &corev1.Pod{Spec: corev1.PodSpec{NodeSelector: fields.NodeSelector, Affinity: fields.Affinity, Tolerations: fields.Tolerations}}
	if ok, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node); err != nil {
		return fmt.Sprintf("its node affinity cannot be judged: %v", err)
	} else if !ok {
		return "the node does not match its required node affinity"
	}
	var untolerated []string
	for i := range node.Spec.Taints {
		taint := &node.Spec.Taints[i]
		if taint.Effect == corev1.TaintEffectPreferNoSchedule || systemTaint(taint.Key) {
			continue
		}
		if !helpers.TolerationsTolerateTaint(klog.Background(), pod.Spec.Tolerations, taint, true) {
			untolerated = append(untolerated, taint.ToString())
		}
	}
	if len(untolerated) > 0 {
		return "it does not tolerate the node's taint " + strings.Join(untolerated, ", ")
	}
	return ""
}

// systemTaint reports whether the taint says how a node fares, not what it is
// for: such a taint comes and goes, and no policy is broken by it.
func systemTaint(key string) bool {
	return strings.HasPrefix(key, "node.kubernetes.io/") || strings.HasPrefix(key, "node.cloudprovider.kubernetes.io/")
}
