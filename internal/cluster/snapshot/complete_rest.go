package snapshot

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// or sets the pointer to the value where it is nil.
func or[T any](p **T, value T) {
	if *p == nil {
		*p = &value
	}
}

// orWord sets a word where it is empty.
func orWord[T ~string](p *T, value T) {
	if *p == "" {
		*p = value
	}
}

func completeWorkloads(s *Snapshot) {
	for _, d := range s.Deployments {
		or(&d.Spec.Replicas, 1)
		orWord(&d.Spec.Strategy.Type, appsv1.RollingUpdateDeploymentStrategyType)
		if d.Spec.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType {
			or(&d.Spec.Strategy.RollingUpdate, appsv1.RollingUpdateDeployment{})
			or(&d.Spec.Strategy.RollingUpdate.MaxUnavailable, intstr.FromString("25%"))
			or(&d.Spec.Strategy.RollingUpdate.MaxSurge, intstr.FromString("25%"))
		}
		completePodSpec(&d.Spec.Template.Spec)
	}
	for _, r := range s.ReplicaSets {
		or(&r.Spec.Replicas, 1)
		completePodSpec(&r.Spec.Template.Spec)
	}
	for _, st := range s.StatefulSets {
		or(&st.Spec.Replicas, 1)
		orWord(&st.Spec.PodManagementPolicy, appsv1.OrderedReadyPodManagement)
		orWord(&st.Spec.UpdateStrategy.Type, appsv1.RollingUpdateStatefulSetStrategyType)
		if st.Spec.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType {
			or(&st.Spec.UpdateStrategy.RollingUpdate, appsv1.RollingUpdateStatefulSetStrategy{})
			or(&st.Spec.UpdateStrategy.RollingUpdate.Partition, 0)
		}
		completePodSpec(&st.Spec.Template.Spec)
		for i := range st.Spec.VolumeClaimTemplates {
			or(&st.Spec.VolumeClaimTemplates[i].Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
		}
	}
	for _, d := range s.DaemonSets {
		orWord(&d.Spec.UpdateStrategy.Type, appsv1.RollingUpdateDaemonSetStrategyType)
		if d.Spec.UpdateStrategy.Type == appsv1.RollingUpdateDaemonSetStrategyType {
			or(&d.Spec.UpdateStrategy.RollingUpdate, appsv1.RollingUpdateDaemonSet{})
			or(&d.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable, intstr.FromInt32(1))
			or(&d.Spec.UpdateStrategy.RollingUpdate.MaxSurge, intstr.FromInt32(0))
		}
		completePodSpec(&d.Spec.Template.Spec)
	}
	for _, j := range s.Jobs {
		completeJob(&j.Spec)
	}
	for _, c := range s.CronJobs {
		orWord(&c.Spec.ConcurrencyPolicy, batchv1.AllowConcurrent)
		or(&c.Spec.Suspend, false)
		// The rest of the job gets its defaults when it is made.
		completePodSpec(&c.Spec.JobTemplate.Spec.Template.Spec)
	}
	for _, rc := range s.ReplicationControllers {
		or(&rc.Spec.Replicas, 1)
		if rc.Spec.Template != nil {
			completePodSpec(&rc.Spec.Template.Spec)
			if len(rc.Spec.Selector) == 0 {
				rc.Spec.Selector = rc.Spec.Template.Labels
			}
		}
	}
}

func completeJob(s *batchv1.JobSpec) {
	if s.Completions == nil && s.Parallelism == nil {
		or(&s.Completions, 1)
	}
	or(&s.Parallelism, 1)
	or(&s.CompletionMode, batchv1.NonIndexedCompletion)
	or(&s.Suspend, false)
	or(&s.BackoffLimit, 6)
	or(&s.PodReplacementPolicy, batchv1.TerminatingOrFailed)
	completePodSpec(&s.Template.Spec)
}

// completeVolumes fills in the defaults, and binds what says that it is bound: a
// claim that names a volume, as the controller of volumes does.
func completeVolumes(s *Snapshot) {
	byDefault := DefaultStorageClass(s.StorageClasses)
	for _, c := range s.StorageClasses {
		or(&c.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete)
		or(&c.VolumeBindingMode, storagev1.VolumeBindingImmediate)
	}
	for _, d := range s.CSIDrivers {
		or(&d.Spec.AttachRequired, true)
		or(&d.Spec.StorageCapacity, false)
	}
	volumes := map[string]*corev1.PersistentVolume{}
	for _, v := range s.PersistentVolumes {
		orWord(&v.Spec.PersistentVolumeReclaimPolicy, corev1.PersistentVolumeReclaimRetain)
		or(&v.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
		volumes[v.Name] = v
	}
	claims := map[string]*corev1.PersistentVolumeClaim{}
	for _, c := range s.PersistentVolumeClaims {
		claims[c.Namespace+"/"+c.Name] = c
	}
	for _, v := range s.PersistentVolumes {
		if ref := v.Spec.ClaimRef; ref != nil {
			if c := claims[ref.Namespace+"/"+ref.Name]; c != nil && c.Spec.VolumeName == "" {
				c.Spec.VolumeName = v.Name
			}
		}
	}
	for _, c := range s.PersistentVolumeClaims {
		or(&c.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
		if c.Spec.StorageClassName == nil && byDefault != nil && c.Spec.VolumeName == "" {
			c.Spec.StorageClassName = new(byDefault.Name)
		}
		if v := volumes[c.Spec.VolumeName]; v != nil {
			bind(c, v)
		}
		orWord(&c.Status.Phase, corev1.ClaimPending)
	}
	for _, v := range s.PersistentVolumes {
		orWord(&v.Status.Phase, corev1.VolumeAvailable)
	}
}

// bind completes a claim and its volume, unless they say that they are not bound.
func bind(c *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) {
	if v.Spec.ClaimRef == nil {
		v.Spec.ClaimRef = &corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: c.Namespace, Name: c.Name}
	}
	if v.Spec.ClaimRef.Namespace != c.Namespace || v.Spec.ClaimRef.Name != c.Name {
		return
	}
	if c.Status.Phase == "" || c.Status.Phase == corev1.ClaimBound {
		c.Status.Phase = corev1.ClaimBound
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, "pv.kubernetes.io/bind-completed", "yes")
	}
	orWord(&v.Status.Phase, corev1.VolumeBound)
	if c.Spec.StorageClassName == nil {
		c.Spec.StorageClassName = new(v.Spec.StorageClassName)
	}
}

// completeDevices fills in how many devices a request is for.
func completeDevices(s *Snapshot) {
	for _, c := range s.ResourceClaims {
		completeRequests(c.Spec.Devices.Requests)
	}
	for _, c := range s.ResourceClaimTemplates {
		completeRequests(c.Spec.Spec.Devices.Requests)
	}
}

func completeRequests(requests []resourcev1.DeviceRequest) {
	count := func(mode *resourcev1.DeviceAllocationMode, n *int64) {
		orWord(mode, resourcev1.DeviceAllocationModeExactCount)
		if *mode == resourcev1.DeviceAllocationModeExactCount && *n == 0 {
			*n = 1
		}
	}
	for i := range requests {
		if e := requests[i].Exactly; e != nil {
			count(&e.AllocationMode, &e.Count)
		}
		for j := range requests[i].FirstAvailable {
			sub := &requests[i].FirstAvailable[j]
			count(&sub.AllocationMode, &sub.Count)
		}
	}
}
