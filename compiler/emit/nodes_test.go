package emit

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// gpuPool is a pool with something of everything.
func gpuPool(managed policy.ManagedBy, makers ...string) compiler.NodeEffect {
	taint := corev1.Taint{Key: "example.com/gpu", Value: "yes", Effect: corev1.TaintEffectNoSchedule}
	return compiler.NodeEffect{
		Pool: "gpu", ManagedBy: managed, Makers: makers, Taint: &taint,
		Taints: []corev1.Taint{taint, {Key: "example.com/slow", Effect: corev1.TaintEffectPreferNoSchedule}},
		Labels: map[string]string{"class": "gpu", "node-restriction.kubernetes.io/class": "gpu"},
		Selector: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: "class", Operator: corev1.NodeSelectorOpIn, Values: []string{"gpu"}},
		}}},
		Requirements: []corev1.NodeSelectorRequirement{{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{"a", "b"}}},
		Origins:      []compiler.Origin{{Range: diag.At(diag.Pos{File: "placement/gpu.cue", Line: 7, Column: 3})}},
	}
}

func nodePoolOf(t *testing.T, text string) capability.NodePool {
	t.Helper()
	var object map[string]any
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	np, err := capability.ReadNodePool(object)
	if err != nil {
		t.Fatal(err)
	}
	return np
}

const knownNodePool = `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: gpu}
spec:
  weight: 10
  template:
    metadata: {labels: {team: ml}}
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      taints:
      - {key: example.com/gpu, value: "no", effect: NoSchedule}
      - {key: theirs, effect: NoExecute}
      requirements:
      - {key: karpenter.k8s.aws/instance-family, operator: In, values: [g5, g6], minValues: 2}
      - {key: topology.kubernetes.io/zone, operator: In, values: [b, c], minValues: 2}
`

// TestNodes holds what each maker of nodes is told; UPDATE=1 writes it anew.
func TestNodes(t *testing.T) {
	t.Parallel()
	known := gpuPool(policy.ManagedKarpenter, "gpu")
	known.NodePools = []capability.NodePool{nodePoolOf(t, knownNodePool)}
	shared := gpuPool(policy.ManagedKarpenter, "gpu", "other")
	shared.Pool, shared.Taints, shared.Labels = "all", []corev1.Taint{{Key: "example.com/gpu", Value: "all", Effect: corev1.TaintEffectNoSchedule}}, map[string]string{"class": "all", "tier": "x", "node-role.kubernetes.io/gpu": ""}
	shared.Selector = append(shared.Selector, corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"n1"}}}})
	shared.Requirements = []corev1.NodeSelectorRequirement{
		{Key: "kubernetes.io/hostname", Operator: corev1.NodeSelectorOpIn, Values: []string{"n1", "n2"}},
		{Key: "beta.kubernetes.io/arch", Operator: corev1.NodeSelectorOpIn, Values: []string{"arm64"}},
	}
	provider := func(p policy.Provider, makers ...string) compiler.NodeEffect {
		n := gpuPool(policy.ManagedNodeGroup, makers...)
		n.Provider = p
		return n
	}
	live := gpuPool(policy.ManagedLive)
	live.Taints = nil
	for name, effects := range map[string][]compiler.NodeEffect{
		"karpenter_unknown": {gpuPool(policy.ManagedKarpenter, "gpu")},
		"karpenter_known":   {known},
		"karpenter_shared":  {shared, known},
		"eks":               {provider(policy.ProviderEKS, "gpu-a", "gpu-b")},
		"gke":               {provider(policy.ProviderGKE, "gpu")},
		"aks":               {provider(policy.ProviderAKS, "gpu", "gpu-nodes")},
		"cluster_api":       {provider(policy.ProviderClusterAPI, "gpu")},
		"kubelet":           {gpuPool(policy.ManagedKubelet)},
		"live":              {live},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files, err := Nodes(&compiler.Plan{Nodes: effects})
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range files {
				if strings.HasSuffix(f.Name, ".yaml") && yaml.Unmarshal(f.After, new(any)) != nil {
					t.Errorf("%s is no YAML", f.Name)
				}
			}
			golden := filepath.Join("testdata", "nodes_"+name+".txt")
			got := string(NodesText(files))
			if os.Getenv("UPDATE") != "" {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), got); d != "" {
				t.Errorf("(-want +got), UPDATE=1 rewrites it:\n%s", d)
			}
		})
	}
}

// Where nobody knows whose node groups they are, each provider's are emitted.
func TestNodesOfAnyProvider(t *testing.T) {
	t.Parallel()
	files, err := Nodes(&compiler.Plan{Nodes: []compiler.NodeEffect{gpuPool(policy.ManagedNodeGroup, "gpu")}})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		names = append(names, f.Name)
	}
	want := []string{"aks/gpu.sh", "aks/gpu.tf", "cluster-api/gpu.yaml", "eks/gpu.eksctl.yaml", "eks/gpu.sh", "eks/gpu.tf", "gke/gpu.sh", "gke/gpu.tf"}
	if d := cmp.Diff(want, names); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// What kustomize makes of the patch and the NodePool is the whole that is emitted.
func TestNodePoolPatchThroughKustomize(t *testing.T) {
	t.Parallel()
	known := gpuPool(policy.ManagedKarpenter, "gpu")
	known.NodePools = []capability.NodePool{nodePoolOf(t, knownNodePool)}
	plan := &compiler.Plan{Nodes: []compiler.NodeEffect{known}}
	files, err := Nodes(plan)
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]string{}
	for _, f := range files {
		byName[f.Name] = string(f.After)
	}
	want := read(t, []byte(byName["karpenter/gpu.nodepool.yaml"])).Others[0].Object
	check := func(how string, files map[string]string) {
		t.Helper()
		got := build(t, files)
		if len(got.Others) != 1 {
			t.Fatalf("%s: there are %d objects", how, len(got.Others))
		}
		if d := cmp.Diff(want, got.Others[0].Object); d != "" {
			t.Errorf("%s (-want +got):\n%s", how, d)
		}
	}
	check("the patch file", map[string]string{
		"kustomization.yaml": "resources: [np.yaml]\npatches: [{path: patch.yaml}]\n", "np.yaml": knownNodePool, "patch.yaml": byName["karpenter/gpu.patch.yaml"],
	})

	component, findings := Component(context.Background(), plan, read(t, []byte(knownNodePool)))
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	over := map[string]string{"kustomization.yaml": overlay, "base.yaml": knownNodePool}
	for _, f := range component {
		over["placement/"+f.Name] = string(f.After)
	}
	check("the Component", over)

	// A NodePool that is not among the manifests is no target.
	component, _ = Component(context.Background(), plan, read(t, []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n")))
	if strings.Contains(string(component[0].After), "NodePool") {
		t.Errorf("the Component speaks of a NodePool that is not there:\n%s", component[0].After)
	}
}
