package cluster

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
)

// nodePools returns Karpenter's NodePools, sorted by name, and whether the
// cluster serves that kind at all.
func (c *Client) nodePools(ctx context.Context) ([]capability.NodePool, bool, error) {
	mapping, err := c.Resource(schema.GroupKind{Group: capability.NodePoolGroup, Kind: capability.NodePoolKind}, capability.NodePoolVersion)
	if meta.IsNoMatchError(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	var pools []capability.NodePool
	err = eachPaged(ctx, c.Interface(mapping, "").List, func(o runtime.Object) error {
		u := o.(*unstructured.Unstructured)
		pool, err := capability.ReadNodePool(u.Object)
		if err != nil {
			return fmt.Errorf("NodePool %q: %w", u.GetName(), err)
		}
		pools = append(pools, pool)
		return nil
	})
	return capability.WithNodePools(nil, pools), true, err
}
