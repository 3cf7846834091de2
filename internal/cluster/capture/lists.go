package capture

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
)

// list makes a lister of a client's method.
func list[L runtime.Object](do func(context.Context, metav1.ListOptions) (L, error)) lister {
	return func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return do(ctx, o) }
}

func dynamicList(r dynamic.ResourceInterface) lister {
	return list(func(ctx context.Context, o metav1.ListOptions) (*unstructured.UnstructuredList, error) {
		return r.List(ctx, o)
	})
}

// typedLists are the listers of the kinds that have Go types.
func typedLists(k kubernetes.Interface) map[schema.GroupKind]lister {
	const all = metav1.NamespaceAll
	core, apps, batch, storage, devices := k.CoreV1(), k.AppsV1(), k.BatchV1(), k.StorageV1(), k.ResourceV1()
	in := func(group, kind string) schema.GroupKind { return schema.GroupKind{Group: group, Kind: kind} }
	return map[schema.GroupKind]lister{
		in("", "Node"):                  list(core.Nodes().List),
		in("", "Pod"):                   list(core.Pods(all).List),
		in("", "Namespace"):             list(core.Namespaces().List),
		in("", "Service"):               list(core.Services(all).List),
		in("", "PersistentVolume"):      list(core.PersistentVolumes().List),
		in("", "PersistentVolumeClaim"): list(core.PersistentVolumeClaims(all).List),
		in("", "ResourceQuota"):         list(core.ResourceQuotas(all).List),
		in("", "ReplicationController"): list(core.ReplicationControllers(all).List),

		in("storage.k8s.io", "StorageClass"):       list(storage.StorageClasses().List),
		in("storage.k8s.io", "CSIDriver"):          list(storage.CSIDrivers().List),
		in("storage.k8s.io", "CSINode"):            list(storage.CSINodes().List),
		in("storage.k8s.io", "CSIStorageCapacity"): list(storage.CSIStorageCapacities(all).List),
		in("storage.k8s.io", "VolumeAttachment"):   list(storage.VolumeAttachments().List),

		in("scheduling.k8s.io", "PriorityClass"): list(k.SchedulingV1().PriorityClasses().List),
		in("scheduling.k8s.io", "PodGroup"):      list(k.SchedulingV1beta1().PodGroups(all).List),
		in("policy", "PodDisruptionBudget"):      list(k.PolicyV1().PodDisruptionBudgets(all).List),

		in("apps", "Deployment"):  list(apps.Deployments(all).List),
		in("apps", "ReplicaSet"):  list(apps.ReplicaSets(all).List),
		in("apps", "StatefulSet"): list(apps.StatefulSets(all).List),
		in("apps", "DaemonSet"):   list(apps.DaemonSets(all).List),
		in("batch", "Job"):        list(batch.Jobs(all).List),
		in("batch", "CronJob"):    list(batch.CronJobs(all).List),

		in("resource.k8s.io", "ResourceSlice"):         list(devices.ResourceSlices().List),
		in("resource.k8s.io", "ResourceClaim"):         list(devices.ResourceClaims(all).List),
		in("resource.k8s.io", "ResourceClaimTemplate"): list(devices.ResourceClaimTemplates(all).List),
		in("resource.k8s.io", "DeviceClass"):           list(devices.DeviceClasses().List),
	}
}
