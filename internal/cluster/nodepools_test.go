package cluster

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// nodePoolCRD is as much of Karpenter's as reading NodePools needs.
const nodePoolCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: nodepools.karpenter.sh}
spec:
  group: karpenter.sh
  scope: Cluster
  names: {kind: NodePool, listKind: NodePoolList, plural: nodepools, singular: nodepool}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [template]
            properties:
              weight: {type: integer}
              template:
                type: object
                properties:
                  metadata:
                    type: object
                    properties:
                      labels: {type: object, additionalProperties: {type: string}}
                  spec:
                    type: object
                    required: [requirements]
                    properties:
                      taints: {type: array, items: {type: object, x-kubernetes-preserve-unknown-fields: true}}
                      startupTaints: {type: array, items: {type: object, x-kubernetes-preserve-unknown-fields: true}}
                      requirements: {type: array, items: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

func fromYAML(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: object}
}

// TestNodePools reads NodePools once the cluster serves them, and lets the
// compiler judge a pool by them.
func TestNodePools(t *testing.T) {
	t.Parallel()
	c := connect(t)
	if pools, served, err := c.nodePools(t.Context()); served || err != nil || pools != nil {
		t.Errorf("before there is the kind: %v, %v, %v", pools, served, err)
	}
	crds := c.Dynamic.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	if _, err := crds.Create(t.Context(), fromYAML(t, nodePoolCRD), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	nodePools := c.Dynamic.Resource(schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodepools"})
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, err := nodePools.List(ctx, metav1.ListOptions{})
		return err == nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{`
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: gpu}
spec:
  template:
    metadata: {labels: {class: gpu}}
    spec:
      taints: [{key: example.com/gpu, value: "no", effect: NoSchedule}]
      requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [spot]}]
`, `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: arm}
spec: {template: {spec: {requirements: [{key: kubernetes.io/arch, operator: In, values: [arm64]}]}}}
`} {
		if _, err := nodePools.Create(t.Context(), fromYAML(t, text), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}

	// A client made before the kind was served finds it, too.
	meta.MaybeResetRESTMapper(c.Mapper)
	caps, findings := c.Capabilities(t.Context())
	if len(findings) > 0 || !caps.NodePoolsKnown {
		t.Fatal(findings, caps.NodePoolsKnown)
	}
	var names []string
	for _, np := range caps.NodePools {
		names = append(names, np.Name)
		if _, ok := np.Object["metadata"].(map[string]any)["uid"]; ok {
			t.Errorf("NodePool %s has what only a server writes", np.Name)
		}
	}
	if d := cmp.Diff([]string{"arm", "gpu"}, names); d != "" {
		t.Errorf("names (-want +got):\n%s", d)
	}

	at := policy.Positions{"": diag.At(diag.Pos{File: "p.cue", Line: 1, Column: 1})}
	yes := "yes"
	_, found := compiler.Compile(compiler.Request{Capabilities: caps, Surface: policy.SurfaceLive, Placement: &policy.Placement{Pools: []policy.Pool{
		{
			Name: "gpu", ManagedBy: policy.ManagedKarpenter, Positions: at, Nodes: policy.NodeTerm{Labels: map[string]policy.Values{"class": {"gpu"}}},
			Dedicated: &policy.Dedicated{Taint: &policy.Taint{Key: "example.com/gpu", Value: &yes, Effect: "NoSchedule"}},
		},
		{Name: "rack", ManagedBy: policy.ManagedKarpenter, Positions: at, Nodes: policy.NodeTerm{Labels: map[string]policy.Values{"rack": {"7"}}}},
	}}})
	var rules []string
	for _, f := range found {
		rules = append(rules, f.Rule+" "+f.Subject)
	}
	want := []string{"nodes/empty-pool pool gpu", "nodes/empty-pool pool rack", "nodes/nodepool-differs pool gpu", "nodes/unmakeable pool rack"}
	if d := cmp.Diff(want, rules); d != "" {
		t.Errorf("findings (-want +got):\n%s", d)
	}
}
