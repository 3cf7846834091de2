package recording

import (
	"fmt"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
)

// objects returns what lists the objects that plugins read from informers, by the
// default plugins' own: those that have no scheduler's snapshot, apart from devices.
func objects(factory informers.SharedInformerFactory) func() ([]Object, error) {
	core, storage, apps := factory.Core().V1(), factory.Storage().V1(), factory.Apps().V1()
	kinds := []func() ([]Object, error){
		listed("Namespace", core.Namespaces().Lister().List),
		listed("Service", core.Services().Lister().List),
		listed("ReplicationController", core.ReplicationControllers().Lister().List),
		listed("ReplicaSet", apps.ReplicaSets().Lister().List),
		listed("StatefulSet", apps.StatefulSets().Lister().List),
		listed("PodDisruptionBudget", factory.Policy().V1().PodDisruptionBudgets().Lister().List),
		listed("StorageClass", storage.StorageClasses().Lister().List),
		listed("CSIDriver", storage.CSIDrivers().Lister().List),
		listed("CSINode", storage.CSINodes().Lister().List),
		listed("CSIStorageCapacity", storage.CSIStorageCapacities().Lister().List),
		listed("PersistentVolume", core.PersistentVolumes().Lister().List),
		listed("PersistentVolumeClaim", core.PersistentVolumeClaims().Lister().List),
	}
	return func() ([]Object, error) {
		var all []Object
		for _, list := range kinds {
			of, err := list()
			if err != nil {
				return nil, err
			}
			all = append(all, of...)
		}
		return all, nil
	}
}

// listed returns what lists the objects of a kind.
func listed[T metav1.Object](kind string, list func(labels.Selector) ([]T, error)) func() ([]Object, error) {
	return func() ([]Object, error) {
		found, err := list(labels.Everything())
		if err != nil {
			return nil, fmt.Errorf("record objects of the kind %s: %w", kind, err)
		}
		objects := make([]Object, len(found))
		for i, o := range found {
			objects[i] = Object{Key: kind + "/" + o.GetNamespace() + "/" + o.GetName(), Kind: kind, of: o}
		}
		return objects, nil
	}
}

// groupSize is the number of members that a PodGroup needs at the start.
func groupSize(object metav1.Object) int32 {
	group, ok := object.(*schedulingv1beta1.PodGroup)
	if !ok || group.Spec.SchedulingPolicy.Gang == nil {
		return 0
	}
	return group.Spec.SchedulingPolicy.Gang.MinCount
}
