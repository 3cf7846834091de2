package admissiontest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
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

// metadataOf returns the metadata that pods of the object have: a pod's own, or
// that of a DaemonSet's template.
func metadataOf(object runtime.Object) *metav1.ObjectMeta {
	if d, ok := object.(*appsv1.DaemonSet); ok {
		return &d.Spec.Template.ObjectMeta
	}
	return &object.(*corev1.Pod).ObjectMeta
}

// Place writes a compiled placement into the pod spec of a pod or of a
// DaemonSet's template, as a rendered template has it.
func Place(object runtime.Object, after workload.PodFields) error {
	spec := SpecOf(object)
	spec.NodeSelector, spec.Affinity, spec.Tolerations, spec.TopologySpreadConstraints = after.NodeSelector, after.Affinity, after.Tolerations, after.TopologySpreadConstraints
	spec.PriorityClassName, spec.PreemptionPolicy, spec.SchedulerName = after.PriorityClassName, after.PreemptionPolicy, after.SchedulerName
	spec.SchedulingGates, spec.SchedulingGroup = after.SchedulingGates, after.SchedulingGroup
	metadata := metadataOf(object)
	for _, m := range []struct {
		to   *map[string]string
		from map[string]string
	}{{&metadata.Labels, after.Labels}, {&metadata.Annotations, after.Annotations}} {
		for k, v := range m.from {
			if *m.to == nil {
				*m.to = map[string]string{}
			}
			(*m.to)[k] = v
		}
	}
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			c := &list[i]
			for _, v := range after.Env[c.Name] {
				if !slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == v.Name }) {
					c.Env = append(c.Env, v)
				}
			}
		}
	}
	raw, err := json.Marshal(after.Raw)
	if err != nil {
		return fmt.Errorf("write the raw fields: %w", err)
	}
	if err := json.Unmarshal(raw, spec); err != nil {
		return fmt.Errorf("write the raw fields: %w", err)
	}
	return nil
}

// Comparable returns what counts of the pod spec of an object as JSON values, with
// the labels and annotations of its pods: tolerations in order, because other
// parts of the API server append some, and no token volumes, whose names are
// random, nor marks of ours; nil if it has no JSON form.
func Comparable(object runtime.Object) map[string]any {
	spec := SpecOf(object).DeepCopy()
	slices.SortFunc(spec.Tolerations, func(a, b corev1.Toleration) int { return strings.Compare(a.String(), b.String()) })
	token := func(name string) bool { return strings.HasPrefix(name, "kube-api-access-") }
	spec.Volumes = slices.DeleteFunc(spec.Volumes, func(v corev1.Volume) bool { return token(v.Name) })
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			mounts := &containers[i].VolumeMounts
			*mounts = slices.DeleteFunc(*mounts, func(m corev1.VolumeMount) bool { return token(m.Name) })
		}
	}
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(spec)
	if err != nil {
		return nil
	}
	annotations := map[string]any{}
	for k, v := range metadataOf(object).Annotations {
		if !strings.HasPrefix(k, "admission.kubectl-sched.github.io/") {
			annotations[k] = v
		}
	}
	labels := map[string]any{}
	for k, v := range metadataOf(object).Labels {
		labels[k] = v
	}
	out["metadata"] = map[string]any{"labels": labels, "annotations": annotations}
	return out
}

// Unfinished returns the subjects for which findings say that the plan is not
// complete; the empty one if that is so for all. Errors that judge a complete
// plan are left out.
func Unfinished(findings diag.Findings) map[string]bool {
	out := map[string]bool{}
	for _, f := range findings {
		if f.Severity == diag.Error && f.Rule != "compile/untolerated-taint" && f.Rule != "compile/topology-missing" {
			out[f.Subject] = true
		}
	}
	return out
}
