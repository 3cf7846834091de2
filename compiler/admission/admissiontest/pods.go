package admissiontest

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-sched/kubectl-sched/internal/workload"
)

// Admitted returns what the API server is asked to create for the workload: the
// first pod as the controllers make it, or the DaemonSet itself.
func Admitted(object map[string]any) (runtime.Object, error) {
	meta := object["metadata"].(map[string]any)
	kind, name, namespace := object["kind"].(string), meta["name"].(string), meta["namespace"].(string)
	if kind == "DaemonSet" {
		out := &appsv1.DaemonSet{}
		return out, runtime.DefaultUnstructuredConverter.FromUnstructured(object, out)
	}
	if kind == "Pod" {
		out := &corev1.Pod{}
		return out, runtime.DefaultUnstructuredConverter.FromUnstructured(object, out)
	}
	at := workload.Path{"spec", "template"}
	if kind == "CronJob" {
		at = workload.Path{"spec", "jobTemplate", "spec", "template"}
	}
	template, _ := workload.Lookup(object, at...)
	pod := &corev1.Pod{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(template.(map[string]any), pod); err != nil {
		return nil, fmt.Errorf("read the template of %s %s: %w", kind, name, err)
	}
	owner := metav1.OwnerReference{APIVersion: object["apiVersion"].(string), Kind: kind, Name: name, UID: types.UID("00000000-0000-0000-0000-000000000001"), Controller: new(true), BlockOwnerDeletion: new(false)}
	label := func(key, value string) {
		if pod.Labels == nil {
			pod.Labels = map[string]string{}
		}
		pod.Labels[key] = value
	}
	pod.GenerateName = name + "-"
	switch kind {
	case "Deployment":
		const hash = "5d4f8c7b9f"
		label("pod-template-hash", hash)
		owner.Kind, owner.Name = "ReplicaSet", name+"-"+hash
		pod.GenerateName = owner.Name + "-"
	case "StatefulSet":
		pod.GenerateName, pod.Name = "", name+"-0"
		label("apps.kubernetes.io/pod-index", "0")
		label("controller-revision-hash", name+"-7b9f5d4f8c")
		label("statefulset.kubernetes.io/pod-name", pod.Name)
	case "CronJob":
		owner.Kind, owner.Name = "Job", name+"-29939040"
		pod.GenerateName = owner.Name + "-"
	}
	if owner.Kind == "Job" {
		label("batch.kubernetes.io/controller-uid", string(owner.UID))
		label("batch.kubernetes.io/job-name", owner.Name)
		label("controller-uid", string(owner.UID))
		label("job-name", owner.Name)
	}
	pod.Namespace, pod.OwnerReferences = namespace, []metav1.OwnerReference{owner}
	return pod, nil
}

// SpecOf returns the pod spec of a pod or of a DaemonSet's template.
func SpecOf(object runtime.Object) *corev1.PodSpec {
	if d, ok := object.(*appsv1.DaemonSet); ok {
		return &d.Spec.Template.Spec
	}
	return &object.(*corev1.Pod).Spec
}
