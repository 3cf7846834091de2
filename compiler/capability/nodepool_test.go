package capability

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

func TestReadNodePool(t *testing.T) {
	t.Parallel()
	var object map[string]any
	if err := yaml.Unmarshal([]byte(`
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: gpu, uid: x, resourceVersion: "3", annotations: {a: b}}
spec:
  weight: 10
  template:
    metadata: {labels: {class: gpu}}
    spec:
      taints: [{key: gpu, value: "yes", effect: NoSchedule}]
      startupTaints: [{key: agent, effect: NoExecute}]
      requirements:
      - {key: karpenter.k8s.aws/instance-family, operator: In, values: [g5, g6], minValues: 2}
      - {key: karpenter.k8s.aws/instance-cpu, operator: Gte, values: ["8"]}
      - {key: karpenter.k8s.aws/instance-memory, operator: Lte, values: ["64"]}
status: {nodes: 3}
`), &object); err != nil {
		t.Fatal(err)
	}
	p, err := ReadNodePool(object)
	if err != nil {
		t.Fatal(err)
	}
	two := 2
	want := NodePool{
		Name: "gpu", Labels: map[string]string{"class": "gpu"},
		Taints:        []corev1.Taint{{Key: "gpu", Value: "yes", Effect: "NoSchedule"}},
		StartupTaints: []corev1.Taint{{Key: "agent", Effect: "NoExecute"}},
		Requirements: []NodePoolRequirement{
			{NodeSelectorRequirement: corev1.NodeSelectorRequirement{Key: "karpenter.k8s.aws/instance-family", Operator: "In", Values: []string{"g5", "g6"}}, MinValues: &two},
			{NodeSelectorRequirement: corev1.NodeSelectorRequirement{Key: "karpenter.k8s.aws/instance-cpu", Operator: "Gte", Values: []string{"8"}}},
			{NodeSelectorRequirement: corev1.NodeSelectorRequirement{Key: "karpenter.k8s.aws/instance-memory", Operator: "Lte", Values: []string{"64"}}},
		},
		Object: map[string]any{
			"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "spec": object["spec"],
			"metadata": map[string]any{"name": "gpu", "annotations": map[string]any{"a": "b"}},
		},
	}
	if d := cmp.Diff(want, p); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if object["status"] == nil {
		t.Error("the object given was changed")
	}
	if got := p.Requirements[1].Normal(); got.Operator != "Gt" || got.Values[0] != "7" {
		t.Errorf("Gte 8 is %v", got)
	}
	if got := p.Requirements[2].Normal(); got.Operator != "Lt" || got.Values[0] != "65" {
		t.Errorf("Lte 64 is %v", got)
	}
	if _, err := ReadNodePool(map[string]any{"spec": map[string]any{"template": []any{}}}); err == nil {
		t.Error("a list for a template is no error")
	}
}
