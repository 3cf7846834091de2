package simulate

import (
	corev1 "k8s.io/api/core/v1"
	apicorev1 "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/utils/ptr"
)

// notReadySeconds is how long pods stay on a node that is not ready or not reached
// where they do not say: the default of the admission plugin
// DefaultTolerationSeconds.
const notReadySeconds = 300

// admit fills in what the API server would: defaults, the priority of the class,
// and the tolerations of the admission plugin DefaultTolerationSeconds.
func (w *World) admit(pod *corev1.Pod) {
	apicorev1.SetObjectDefaults_Pod(pod)
	class := w.usual
	if pod.Spec.PriorityClassName != "" {
		class = w.classes[pod.Spec.PriorityClassName]
		if class == nil {
			w.assume("PriorityClass %q is not in the snapshot: its pods have the priority 0", pod.Spec.PriorityClassName)
		}
	}
	pod.Spec.Priority = ptr.To(int32(0))
	if class != nil {
		pod.Spec.PriorityClassName, pod.Spec.Priority = class.Name, ptr.To(class.Value)
		if pod.Spec.PreemptionPolicy == nil {
			pod.Spec.PreemptionPolicy = class.PreemptionPolicy
		}
	}
	if pod.Spec.PreemptionPolicy == nil {
		pod.Spec.PreemptionPolicy = ptr.To(corev1.PreemptLowerPriority)
	}
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		if !toleratesKey(pod, key) {
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{
				Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](notReadySeconds),
			})
		}
	}
}

// toleratesKey reports whether the pod says something of the NoExecute taint.
func toleratesKey(pod *corev1.Pod, key string) bool {
	for _, t := range pod.Spec.Tolerations {
		if (t.Key == key || t.Key == "") && (t.Effect == corev1.TaintEffectNoExecute || t.Effect == "") {
			return true
		}
	}
	return false
}
