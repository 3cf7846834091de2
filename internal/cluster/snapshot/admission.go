package snapshot

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// What the API server's admission writes into pods that scheduling reads.

// notReadySeconds is how long pods stay on a node that is not ready, or not
// reached, where they do not say.
const notReadySeconds = 300

// DefaultPriorityClass returns the class of pods that name none: of several
// defaults the one of the lowest value; nil if there is none
// (plugin/pkg/admission/priority).
func DefaultPriorityClass(classes []*schedulingv1.PriorityClass) *schedulingv1.PriorityClass {
	var byDefault *schedulingv1.PriorityClass
	for _, c := range classes {
		if c.GlobalDefault && (byDefault == nil || c.Value < byDefault.Value) {
			byDefault = c
		}
	}
	return byDefault
}

// DefaultClassAnnotation is "true" on a StorageClass for claims that name none.
const DefaultClassAnnotation = "storageclass.kubernetes.io/is-default-class"

// DefaultStorageClass returns the class of claims that name none: of several defaults
// the newest, then the first by name; nil if there is none
// (plugin/pkg/admission/storage/storageclass/setdefault).
func DefaultStorageClass(classes []*storagev1.StorageClass) *storagev1.StorageClass {
	var byDefault *storagev1.StorageClass
	for _, c := range classes {
		if c.Annotations[DefaultClassAnnotation] != "true" {
			continue
		}
		if byDefault == nil || byDefault.CreationTimestamp.Before(&c.CreationTimestamp) ||
			byDefault.CreationTimestamp.Equal(&c.CreationTimestamp) && c.Name < byDefault.Name {
			byDefault = c
		}
	}
	return byDefault
}

// Prioritise sets the priority and the preemption policy that the spec lacks to
// those of the class; nil stands for no class.
func Prioritise(s *corev1.PodSpec, class *schedulingv1.PriorityClass) {
	if class == nil {
		class = &schedulingv1.PriorityClass{}
	}
	if s.Priority == nil {
		s.Priority = new(class.Value)
	}
	if s.PreemptionPolicy == nil {
		s.PreemptionPolicy = new(corev1.PreemptLowerPriority)
		if class.PreemptionPolicy != nil {
			*s.PreemptionPolicy = *class.PreemptionPolicy
		}
	}
}

// TolerateForAWhile adds the tolerations that admission adds to every pod
// (plugin/pkg/admission/defaulttolerationseconds).
func TolerateForAWhile(s *corev1.PodSpec) {
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		covered := slices.ContainsFunc(s.Tolerations, func(t corev1.Toleration) bool {
			return (t.Key == key || t.Key == "") && (t.Effect == corev1.TaintEffectNoExecute || t.Effect == "")
		})
		if !covered {
			s.Tolerations = append(s.Tolerations, corev1.Toleration{
				Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(notReadySeconds)),
			})
		}
	}
}
