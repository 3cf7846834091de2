package simulate

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/storage/ephemeral"
	volumehelper "k8s.io/component-helpers/storage/volume"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	apicorev1 "k8s.io/kubernetes/pkg/apis/core/v1"
	apiresourcev1 "k8s.io/kubernetes/pkg/apis/resource/v1"

	"github.com/kubectl-sched/kubectl-sched/internal/simulate/engine"
)

// equip makes what controllers make for a pod that is new, and that no scheduler
// looks at without: the claims of its own volumes, those that its StatefulSet gives
// it, and those for devices.
func (w *World) equip(pod *corev1.Pod) error {
	if o := w.ownerOf(pod); o != nil {
		if sts, ok := o.object.(*appsv1.StatefulSet); ok {
			for _, template := range sts.Spec.VolumeClaimTemplates {
				if err := w.claimVolume(sts.Namespace, template.Name+"-"+pod.Name, template.ObjectMeta, template.Spec, nil); err != nil {
					return err
				}
			}
		}
	}
	for i, v := range pod.Spec.Volumes {
		if v.Ephemeral == nil || v.Ephemeral.VolumeClaimTemplate == nil {
			continue
		}
		template, owner := v.Ephemeral.VolumeClaimTemplate, metav1.NewControllerRef(pod, corev1.SchemeGroupVersion.WithKind("Pod"))
		if err := w.claimVolume(pod.Namespace, ephemeral.VolumeClaimName(pod, &pod.Spec.Volumes[i]), template.ObjectMeta, template.Spec, owner); err != nil {
			return err
		}
	}
	for i := range pod.Spec.ResourceClaims {
		if err := w.claimDevices(pod, &pod.Spec.ResourceClaims[i]); err != nil {
			return err
		}
	}
	return nil
}

// claimVolume makes a claim unless there is one of the name. One that does not wait
// for its first pod gets its volume at once.
func (w *World) claimVolume(namespace, name string, like metav1.ObjectMeta, spec corev1.PersistentVolumeClaimSpec, owner *metav1.OwnerReference) error {
	if _, there := engine.Find(w.engine, &corev1.PersistentVolumeClaim{}, namespace, name); there {
		return nil
	}
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, UID: types.UID(fmt.Sprintf("simulated/%s/%s/%d", namespace, name, w.made)),
			Labels: like.Labels, Annotations: like.Annotations, CreationTimestamp: metav1.NewTime(w.now),
		},
		Spec: *spec.DeepCopy(),
	}
	w.made++
	if owner != nil {
		claim.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	if !volumehelper.PersistentVolumeClaimHasClass(claim) && w.volumeClass != nil {
		claim.Spec.StorageClassName = &w.volumeClass.Name
	}
	apicorev1.SetObjectDefaults_PersistentVolumeClaim(claim)
	class, ok := engine.Find(w.engine, &storagev1.StorageClass{}, "", volumehelper.GetPersistentVolumeClaimClass(claim))
	if ok && (class.VolumeBindingMode == nil || *class.VolumeBindingMode == storagev1.VolumeBindingImmediate) && class.Provisioner != noProvisioner {
		return w.engine.ProvisionNow(claim)
	}
	return w.engine.Put(claim)
}

// noProvisioner is the provisioner of classes whose volumes somebody makes by hand
// (k8s.io/kubernetes/pkg/volume/util, NotSupportedProvisioner).
const noProvisioner = "kubernetes.io/no-provisioner"

// claimDevices makes the pod's claim of a template, as the controller of resource
// claims does, and writes its name into the pod's status.
func (w *World) claimDevices(pod *corev1.Pod, claim *corev1.PodResourceClaim) error {
	if claim.ResourceClaimTemplateName == nil {
		return nil
	}
	if name, _, err := resourceclaim.Name(pod, claim); err == nil {
		if name == nil {
			return nil // the controller has found that none is needed
		}
		if _, there := engine.Find(w.engine, &resourcev1.ResourceClaim{}, pod.Namespace, *name); there {
			return nil
		}
	}
	template, ok := w.claimTemplates[podName{Namespace: pod.Namespace, Name: *claim.ResourceClaimTemplateName}]
	if !ok {
		w.assume("ResourceClaimTemplate %s/%s is not in the snapshot: pods that need it wait for their claims", pod.Namespace, *claim.ResourceClaimTemplateName)
		return nil
	}
	made := &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: w.claimName(pod, claim.Name), UID: types.UID(fmt.Sprintf("simulated/claim/%s/%s/%s/%d", pod.Namespace, pod.Name, claim.Name, w.made)),
			Labels: template.Spec.Labels, Annotations: map[string]string{resourcev1.PodResourceClaimAnnotation: claim.Name}, CreationTimestamp: metav1.NewTime(w.now),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(pod, corev1.SchemeGroupVersion.WithKind("Pod"))},
		},
		Spec: *template.Spec.Spec.DeepCopy(),
	}
	w.made++
	apiresourcev1.SetObjectDefaults_ResourceClaim(made)
	statuses := slices.DeleteFunc(slices.Clone(pod.Status.ResourceClaimStatuses), func(s corev1.PodResourceClaimStatus) bool { return s.Name == claim.Name })
	pod.Status.ResourceClaimStatuses = append(statuses, corev1.PodResourceClaimStatus{Name: claim.Name, ResourceClaimName: &made.Name})
	return w.engine.Put(made)
}

// claimName makes up the name of a pod's claim for devices.
func (w *World) claimName(pod *corev1.Pod, claim string) string {
	for n := 0; ; n++ {
		name := strings.Join([]string{pod.Name, claim, fmt.Sprint(n)}, "-")
		if _, taken := engine.Find(w.engine, &resourcev1.ResourceClaim{}, pod.Namespace, name); !taken {
			return name
		}
	}
}

// release does what controllers do when a pod is gone: the claims that were made for
// it go too, and devices that nobody else uses are free.
func (w *World) release(pod *corev1.Pod) error {
	for i, v := range pod.Spec.Volumes {
		if v.Ephemeral == nil {
			continue
		}
		claim, ok := engine.Find(w.engine, &corev1.PersistentVolumeClaim{}, pod.Namespace, ephemeral.VolumeClaimName(pod, &pod.Spec.Volumes[i]))
		if ok && metav1.IsControlledBy(claim, pod) {
			if err := w.engine.Remove(claim); err != nil {
				return err
			}
		}
	}
	for name, made := range resourceclaim.PodClaims(pod) {
		claim, ok := engine.Find(w.engine, &resourcev1.ResourceClaim{}, pod.Namespace, name)
		if !ok {
			continue
		}
		if made && metav1.IsControlledBy(claim, pod) {
			if err := w.engine.Remove(claim); err != nil {
				return err
			}
			continue
		}
		if err := w.unreserve(claim, pod); err != nil {
			return err
		}
	}
	return nil
}

// unreserve takes the pod off those for whom the claim is reserved. The last one
// takes the allocation with it.
func (w *World) unreserve(claim *resourcev1.ResourceClaim, pod *corev1.Pod) error {
	left := claim.DeepCopy()
	left.Status.ReservedFor = slices.DeleteFunc(left.Status.ReservedFor, func(r resourcev1.ResourceClaimConsumerReference) bool { return r.UID == pod.UID })
	if len(left.Status.ReservedFor) == len(claim.Status.ReservedFor) {
		return nil
	}
	if len(left.Status.ReservedFor) == 0 {
		left.Status.Allocation = nil
	}
	return w.engine.Put(left)
}

// noteProvisions says on what the outcome rests where volumes were made.
func (w *World) noteProvisions() {
	for _, p := range w.engine.Provisions() {
		keys := strings.Join(p.Keys, " and ")
		switch p.From {
		case engine.FromDriver:
			if keys == "" {
				w.assume("volumes that StorageClass %q provisions can be reached from every node: its driver has no topology", p.Class)
				break
			}
			w.assume("volumes that StorageClass %q provisions are made for the node of their first pod, and reached from nodes with the same %s, as its driver has registered", p.Class, keys)
		case engine.FromClass:
			w.assume("volumes that StorageClass %q provisions are made for the node of their first pod, and reached from nodes with the same %s, as its allowed topologies say", p.Class, keys)
		case engine.FromZone:
			if keys == "" {
				w.assume("volumes that StorageClass %q provisions can be reached from every node: neither its driver's topology nor zones are known", p.Class)
				break
			}
			w.assume("volumes that StorageClass %q provisions are made for the node of their first pod, and reached from nodes with the same %s: the topology of its driver is not known", p.Class, keys)
		case engine.FromNothing:
			w.assume("volumes that StorageClass %q provisions at once can be reached from every node: where they will be is not known", p.Class)
		}
	}
}
