package nodelabel

import "testing"

func TestRefusal(t *testing.T) {
	t.Parallel()
	const (
		restricted = "node-restriction.kubernetes.io/class"
		node       = "node.kubernetes.io/class"
		role       = "node-role.kubernetes.io/worker"
		plain      = "example.com/class"
		bare       = "class"
		zone       = "topology.kubernetes.io/zone"
	)
	for _, test := range []struct {
		maker Maker
		key   string
		can   bool
	}{
		{Kubelet, restricted, false},
		{Kubelet, node, true},
		{Kubelet, role, false},
		{Kubelet, plain, true},
		{Kubelet, bare, true},
		{Kubelet, zone, true},
		{Kubelet, "x.kubelet.kubernetes.io/a", true},
		{Kubelet, "notkubernetes.io/a", true},
		{Karpenter, restricted, true},
		{Karpenter, node, true},
		{Karpenter, role, false},
		{Karpenter, "karpenter.sh/capacity-type", false},
		{Karpenter, "kubernetes.io/hostname", false},
		{Karpenter, plain, true},
		{EKS, restricted, false},
		{EKS, plain, true},
		{EKS, "eks.amazonaws.com/nodegroup", false},
		{AKS, restricted, false},
		{AKS, "kubernetes.azure.com/mode", false},
		{AKS, bare, true},
		{GKE, restricted, true},
		{GKE, role, false},
		{GKE, "cloud.google.com/x", false},
		{ClusterAPI, restricted, true},
		{ClusterAPI, role, true},
		{ClusterAPI, "kubernetes.io/x", false},
		{ClusterAPI, plain, true},
	} {
		if got := test.maker.Refusal(test.key); (got == "") != test.can {
			t.Errorf("%s may set %s: %v, because %q", test.maker, test.key, !test.can, got)
		}
	}
	for _, test := range []struct {
		maker Maker
		key   string
		can   bool
	}{{EKS, "k8s.io/x", false}, {EKS, "x", true}, {AKS, "kubernetes.azure.com/x", false}, {AKS, "kubernetes.io/x", true}, {Kubelet, "k8s.io/x", true}} {
		if got := test.maker.TaintRefusal(test.key); (got == "") != test.can {
			t.Errorf("%s may taint with %s: %v, because %q", test.maker, test.key, !test.can, got)
		}
	}
}

func TestWhoGivesALabel(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]struct{ given, chosen bool }{
		"topology.kubernetes.io/zone":              {true, true},
		"failure-domain.beta.kubernetes.io/zone":   {true, true},
		"kubernetes.io/hostname":                   {true, false},
		"karpenter.sh/capacity-type":               {true, true},
		"karpenter.sh/registered":                  {true, false},
		"karpenter.k8s.aws/instance-family":        {true, true},
		"eks.amazonaws.com/instance-category":      {true, true},
		"eks.amazonaws.com/nodegroup":              {true, false},
		"agentpool":                                {true, false},
		"node-restriction.kubernetes.io/class":     {false, false},
		"class":                                    {false, false},
		"kubernetes.azure.com/scalesetpriority":    {true, false},
		"cloud.google.com/gke-spot":                {true, false},
		"example.com/karpenter.sh":                 {false, false},
		"karpenter.sh.example.com/capacity-type":   {false, false},
		"x.karpenter.azure.com/sku-name":           {true, true},
		"node.kubernetes.io/instance-type":         {true, true},
		"beta.kubernetes.io/instance-type":         {true, true},
		"node.kubernetes.io/exclude-from-external": {false, false},
	} {
		if IsGiven(key) != want.given || KarpenterChooses(key) != want.chosen {
			t.Errorf("%s: given %v, chosen %v", key, IsGiven(key), KarpenterChooses(key))
		}
	}
	if maker, name, ok := GroupOf(map[string]string{"eks.amazonaws.com/nodegroup": "a", "karpenter.sh/nodepool": "b"}); maker != Karpenter || name != "b" || !ok {
		t.Errorf("group is %s %s, %v", maker, name, ok)
	}
	if _, _, ok := GroupOf(map[string]string{"a": "b"}); ok {
		t.Error("a label of nobody tells a group")
	}
	if got := Setters("node-restriction.kubernetes.io/class"); got != `Karpenter, Cluster API and kubectl sched apply (managedBy: "live")` {
		t.Error(got)
	}
}
