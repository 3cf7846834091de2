package cluster

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// PodsByOwner reads the pods of the namespaces and groups them by each object
// that controls them, directly or through ReplicaSets and Jobs: a Deployment's
// pods are found under its UID as well as under the ReplicaSet's. A pod is found
// under its own UID too.
func (c *Client) PodsByOwner(ctx context.Context, namespaces []string) (map[types.UID][]*corev1.Pod, error) {
	return c.podsByOwner(ctx, namespaces, "")
}

// UnplacedByOwner is PodsByOwner for the pods alone that have no node yet; where
// there are none it takes one short answer a namespace.
func (c *Client) UnplacedByOwner(ctx context.Context, namespaces []string) (map[types.UID][]*corev1.Pod, error) {
	return c.podsByOwner(ctx, namespaces, "spec.nodeName=,status.phase="+string(corev1.PodPending))
}

func (c *Client) podsByOwner(ctx context.Context, namespaces []string, fieldSelector string) (map[types.UID][]*corev1.Pod, error) {
	byOwner := map[types.UID][]*corev1.Pod{}
	for _, namespace := range namespaces {
		var pods []*corev1.Pod
		list := func(ctx context.Context, o metav1.ListOptions) (*corev1.PodList, error) {
			o.FieldSelector = fieldSelector
			return c.Kube.CoreV1().Pods(namespace).List(ctx, o)
		}
		err := eachPaged(ctx, list, func(o runtime.Object) error {
			pods = append(pods, o.(*corev1.Pod))
			return nil
		})
		if err != nil {
			return nil, err
		}
		if len(pods) == 0 {
			continue
		}
		parents, err := c.parents(ctx, namespace)
		if err != nil {
			return nil, err
		}
		for _, pod := range pods {
			byOwner[pod.UID] = append(byOwner[pod.UID], pod)
			owner := controllerUID(pod)
			for steps := 0; owner != "" && steps < maxOwnerDepth; steps++ {
				byOwner[owner] = append(byOwner[owner], pod)
				owner = parents[owner]
			}
		}
	}
	return byOwner, nil
}

// RunningPods calls visit with each pod of the namespace (of all, if it is empty)
// that has not come to its end and is not being deleted, and with the UIDs of the
// objects that control it, the nearest first. Of a pod only the metadata is read,
// page by page, so that many thousands are no burden.
func (c *Client) RunningPods(ctx context.Context, namespace string, visit func(pod *metav1.PartialObjectMetadata, owners []types.UID) error) error {
	parents, err := c.parents(ctx, namespace)
	if err != nil {
		return err
	}
	list := func(ctx context.Context, o metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
		o.FieldSelector = "status.phase!=Succeeded,status.phase!=Failed"
		return c.Metadata.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace(namespace).List(ctx, o)
	}
	return eachPaged(ctx, list, func(o runtime.Object) error {
		pod, ok := o.(*metav1.PartialObjectMetadata)
		if !ok || pod.DeletionTimestamp != nil {
			return nil
		}
		var owners []types.UID
		for owner := controllerUID(pod); owner != "" && len(owners) < maxOwnerDepth; owner = parents[owner] {
			owners = append(owners, owner)
		}
		return visit(pod, owners)
	})
}

// maxOwnerDepth ends the walk up owners that own each other.
const maxOwnerDepth = 8

// intermediate are the kinds that stand between a workload and its pods.
var intermediate = []schema.GroupVersionResource{
	{Group: "apps", Version: "v1", Resource: "replicasets"},
	{Group: "batch", Version: "v1", Resource: "jobs"},
}

// parents maps the UIDs of the intermediate objects to those of their owners.
func (c *Client) parents(ctx context.Context, namespace string) (map[types.UID]types.UID, error) {
	parents := map[types.UID]types.UID{}
	for _, resource := range intermediate {
		err := eachPaged(ctx, c.Metadata.Resource(resource).Namespace(namespace).List, func(o runtime.Object) error {
			m := o.(*metav1.PartialObjectMetadata)
			if owner := controllerUID(m); owner != "" {
				parents[m.UID] = owner
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return parents, nil
}

func controllerUID(o metav1.Object) types.UID {
	if owner := metav1.GetControllerOf(o); owner != nil {
		return owner.UID
	}
	return ""
}
