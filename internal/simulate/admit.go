package simulate

import (
	corev1 "k8s.io/api/core/v1"
	apicorev1 "k8s.io/kubernetes/pkg/apis/core/v1"

	"github.com/kubectl-sched/kubectl-sched/internal/cluster/snapshot"
)

// admit fills in what the API server would: defaults, the priority of the class,
// and tolerations.
func (w *World) admit(pod *corev1.Pod) {
	apicorev1.SetObjectDefaults_Pod(pod)
	class := w.usual
	if pod.Spec.PriorityClassName != "" {
		class = w.classes[pod.Spec.PriorityClassName]
		if class == nil {
			w.assume("PriorityClass %q is not in the snapshot: its pods have the priority 0", pod.Spec.PriorityClassName)
		}
	}
	if class != nil {
		pod.Spec.PriorityClassName = class.Name
	}
	pod.Spec.Priority = nil // the class alone says it
	snapshot.Prioritise(&pod.Spec, class)
	snapshot.TolerateForAWhile(&pod.Spec)
}
