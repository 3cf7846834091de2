package podgroup

import (
	"context"
	"encoding/json"
	"fmt"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	clientv1beta1 "k8s.io/client-go/kubernetes/typed/scheduling/v1beta1"
)

// virtualClient is a client for the scheduler: what it writes on the status of a
// virtual PodGroup goes to record, everything else to the API server.
type virtualClient struct {
	kubernetes.Interface
	record func(namespace, key string, conditions []metav1.Condition)
}

// SchedulingV1beta1 returns the client of the group that PodGroups are in.
func (c *virtualClient) SchedulingV1beta1() clientv1beta1.SchedulingV1beta1Interface {
	return &virtualGroup{SchedulingV1beta1Interface: c.Interface.SchedulingV1beta1(), client: c}
}

type virtualGroup struct {
	clientv1beta1.SchedulingV1beta1Interface
	client *virtualClient
}

// PodGroups returns the client of the PodGroups of namespace.
func (g *virtualGroup) PodGroups(namespace string) clientv1beta1.PodGroupInterface {
	return &virtualPodGroups{PodGroupInterface: g.SchedulingV1beta1Interface.PodGroups(namespace), namespace: namespace, client: g.client}
}

type virtualPodGroups struct {
	clientv1beta1.PodGroupInterface
	namespace string
	client    *virtualClient
}

// Patch patches a PodGroup. Of a virtual one, only the status can be patched. The
// scheduler is not told of the change: any event on a PodGroup wakes those that
// have failed.
func (p *virtualPodGroups) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, options metav1.PatchOptions, subresources ...string) (*schedulingv1beta1.PodGroup, error) {
	if !IsVirtual(name) {
		return p.PodGroupInterface.Patch(ctx, name, kind, data, options, subresources...)
	}
	if len(subresources) != 1 || subresources[0] != "status" {
		return nil, fmt.Errorf("patch pod group %s/%s: it exists in the scheduler alone, and only its status can be patched", p.namespace, name)
	}
	group := &schedulingv1beta1.PodGroup{}
	// A patch of conditions has the changed ones whole: their list is merged by type.
	if err := json.Unmarshal(data, group); err != nil {
		return nil, fmt.Errorf("patch pod group %s/%s: %w", p.namespace, name, err)
	}
	p.client.record(p.namespace, name, group.Status.Conditions)
	group.Namespace, group.Name = p.namespace, name
	return group, nil
}
