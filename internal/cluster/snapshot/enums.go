package snapshot

import (
	"reflect"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// enums are the words that may stand in text for a value of a type: a misspelt one
// would mean something else, or nothing, to a scheduler.
var enums = sync.OnceValue(func() map[reflect.Type][]string {
	all := map[reflect.Type][]string{}
	enum(all, corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute)
	enum(all, corev1.TolerationOpEqual, corev1.TolerationOpExists, corev1.TolerationOpLt, corev1.TolerationOpGt)
	enum(all, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist, corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt)
	enum(all, metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist)
	enum(all, corev1.DoNotSchedule, corev1.ScheduleAnyway)
	enum(all, corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore)
	enum(all, corev1.PreemptNever, corev1.PreemptLowerPriority)
	enum(all, corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever)
	enum(all, corev1.ContainerRestartPolicyAlways, corev1.ContainerRestartPolicyOnFailure, corev1.ContainerRestartPolicyNever)
	enum(all, corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP)
	enum(all, corev1.PodPending, corev1.PodRunning, corev1.PodSucceeded, corev1.PodFailed, corev1.PodUnknown)
	enum(all, corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown)
	enum(all, corev1.ReadWriteOnce, corev1.ReadOnlyMany, corev1.ReadWriteMany, corev1.ReadWriteOncePod)
	enum(all, corev1.ClaimPending, corev1.ClaimBound, corev1.ClaimLost)
	enum(all, corev1.VolumePending, corev1.VolumeAvailable, corev1.VolumeBound, corev1.VolumeReleased, corev1.VolumeFailed)
	enum(all, corev1.PersistentVolumeBlock, corev1.PersistentVolumeFilesystem)
	enum(all, storagev1.VolumeBindingImmediate, storagev1.VolumeBindingWaitForFirstConsumer)
	enum(all, appsv1.RecreateDeploymentStrategyType, appsv1.RollingUpdateDeploymentStrategyType)
	enum(all, appsv1.OnDeleteStatefulSetStrategyType, appsv1.RollingUpdateStatefulSetStrategyType)
	enum(all, appsv1.OnDeleteDaemonSetStrategyType, appsv1.RollingUpdateDaemonSetStrategyType)
	enum(all, appsv1.OrderedReadyPodManagement, appsv1.ParallelPodManagement)
	enum(all, batchv1.IndexedCompletion, batchv1.NonIndexedCompletion)
	enum(all, schedulingv1beta1.PreemptNever, schedulingv1beta1.PreemptLowerPriority)
	return all
})

func enum[T ~string](all map[reflect.Type][]string, values ...T) {
	for _, v := range values {
		all[reflect.TypeFor[T]()] = append(all[reflect.TypeFor[T]()], string(v))
	}
}
