package replay

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-sched/kubectl-sched/internal/simulate/store"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gangkey"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/podgroup"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/recording"
)

// empty returns an object of the kind.
func empty(kind string) (store.Object, error) {
	switch kind {
	case "Node":
		return &corev1.Node{}, nil
	case "Pod":
		return &corev1.Pod{}, nil
	case "Namespace":
		return &corev1.Namespace{}, nil
	case "Service":
		return &corev1.Service{}, nil
	case "ReplicationController":
		return &corev1.ReplicationController{}, nil
	case "ReplicaSet":
		return &appsv1.ReplicaSet{}, nil
	case "StatefulSet":
		return &appsv1.StatefulSet{}, nil
	case "PodDisruptionBudget":
		return &policyv1.PodDisruptionBudget{}, nil
	case "StorageClass":
		return &storagev1.StorageClass{}, nil
	case "CSIDriver":
		return &storagev1.CSIDriver{}, nil
	case "CSINode":
		return &storagev1.CSINode{}, nil
	case "CSIStorageCapacity":
		return &storagev1.CSIStorageCapacity{}, nil
	case "PersistentVolume":
		return &corev1.PersistentVolume{}, nil
	case "PersistentVolumeClaim":
		return &corev1.PersistentVolumeClaim{}, nil
	case "PodGroup":
		return &schedulingv1beta1.PodGroup{}, nil
	}
	return nil, fmt.Errorf("the recording has a %s, which is of no kind that is replayed", kind)
}

// decode returns the object of the recording.
func decode(o recording.Object) (store.Object, error) {
	object, err := empty(o.Kind)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(o.Object, object); err != nil {
		return nil, fmt.Errorf("read %s of the recording: %w", o.Key, err)
	}
	return object, nil
}

// sourceOf returns what a group that the scheduler made up was made from, and false
// if that is the labels of its pods alone. The simulator makes the group up again.
func sourceOf(group *schedulingv1beta1.PodGroup) (*unstructured.Unstructured, bool) {
	var version string
	switch family, _, _ := strings.Cut(group.Name, ":"); gangkey.Family(family) {
	case gangkey.FamilyX:
		version = "scheduling.x-k8s.io/v1alpha1"
	case gangkey.FamilyOlder:
		version = "scheduling.sigs.k8s.io/v1alpha1"
	default:
		return nil, false
	}
	spec := map[string]any{}
	if gang := group.Spec.SchedulingPolicy.Gang; gang != nil {
		spec["minMember"] = int64(gang.MinCount)
	}
	if timeout, ok := podgroup.OwnTimeout(group); ok {
		spec["scheduleTimeoutSeconds"] = int64(timeout / time.Second)
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": version, "kind": "PodGroup",
		"metadata": map[string]any{"namespace": group.Namespace, "name": podgroup.GangName(group.Name), "uid": "source-of-" + string(group.UID)},
		"spec":     spec,
	}}, true
}
