package trim

import (
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// afters are run on values of a type once their fields are trimmed.
var afters = map[reflect.Type]func(reflect.Value, Keep){
	reflect.TypeFor[corev1.PodSpec](): func(v reflect.Value, _ Keep) { tidyPodSpec(v.Addr().Interface().(*corev1.PodSpec)) },
	reflect.TypeFor[corev1.Pod]():     func(v reflect.Value, _ Keep) { tidyPod(v.Addr().Interface().(*corev1.Pod)) },
	reflect.TypeFor[corev1.PodTemplateSpec](): func(v reflect.Value, keep Keep) {
		t := v.Addr().Interface().(*corev1.PodTemplateSpec)
		t.Annotations = keep.annotations(t.Annotations)
	},
}

// tidyPodSpec drops the volumes and mounts of which nothing is left that anybody
// reads: the token of the service account, configuration, scratch space.
func tidyPodSpec(s *corev1.PodSpec) {
	s.Volumes = filtered(s.Volumes, func(v corev1.Volume) bool { return v.VolumeSource != corev1.VolumeSource{} })
	for _, containers := range [][]corev1.Container{s.InitContainers, s.Containers} {
		for i := range containers {
			c := &containers[i]
			c.VolumeMounts = filtered(c.VolumeMounts, func(m corev1.VolumeMount) bool { return len(m.BindMountOptions) > 0 })
			c.RestartPolicyRules = filtered(c.RestartPolicyRules, func(r corev1.ContainerRestartRule) bool { return r.Action != "" })
		}
	}
}

// readConditions are the conditions of pods that somebody reads: the scheduler, the
// resource helpers (a resize that is under way), preemption, and the controllers
// that choose which pods to end.
var readConditions = []corev1.PodConditionType{
	corev1.PodScheduled, corev1.PodReady, corev1.DisruptionTarget, corev1.PodResizePending, corev1.PodResizeInProgress,
}

// tidyPod drops conditions that nobody reads, and the resources in the status where
// they only repeat the spec: then the scheduler counts the spec alone.
func tidyPod(p *corev1.Pod) {
	p.Status.Conditions = filtered(p.Status.Conditions, func(c corev1.PodCondition) bool { return slices.Contains(readConditions, c.Type) })
	p.Status.ContainerStatuses = resized(p.Spec.Containers, p.Status.ContainerStatuses)
	p.Status.InitContainerStatuses = resized(p.Spec.InitContainers, p.Status.InitContainerStatuses)
}

func resized(containers []corev1.Container, statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	return filtered(statuses, func(s corev1.ContainerStatus) bool {
		i := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == s.Name })
		if i < 0 {
			return false
		}
		spec := containers[i].Resources
		return s.AllocatedResources != nil && !equalResources(s.AllocatedResources, spec.Requests) ||
			s.Resources != nil && (!equalResources(s.Resources.Requests, spec.Requests) || !equalResources(s.Resources.Limits, spec.Limits))
	})
}

func equalResources(a, b corev1.ResourceList) bool {
	if len(a) != len(b) {
		return false
	}
	for name, quantity := range a {
		if other, ok := b[name]; !ok || quantity.Cmp(other) != 0 {
			return false
		}
	}
	return true
}

// filtered returns what is kept of the list, in memory of its own size; nil for
// nothing.
func filtered[T any](list []T, keep func(T) bool) []T {
	n := 0
	for _, e := range list {
		if keep(e) {
			n++
		}
	}
	switch n {
	case 0:
		return nil
	case len(list):
		return list
	}
	kept := make([]T, 0, n)
	for _, e := range list {
		if keep(e) {
			kept = append(kept, e)
		}
	}
	return kept
}

// Finished reports whether the pod has come to its end and something else made it:
// then nobody counts it any more.
func Finished(p *corev1.Pod) bool {
	return Ended(p) && controller(p) != ""
}

// Ended reports whether the pod has come to its end: it takes nothing any more.
func Ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

func controller(o metav1.Object) types.UID {
	if owner := metav1.GetControllerOfNoCopy(o); owner != nil {
		return owner.UID
	}
	return ""
}
