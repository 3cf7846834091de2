// Package nodelabel knows who may give a node which label and taint.
//
// It maps the key of a label, and whoever makes nodes, to whether that one may
// set it, and who else may. Its rules are the published ones of Kubernetes,
// Karpenter and the providers, each said beside its source. The package must
// not know policies, pools or clusters.
package nodelabel

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Maker is whoever makes nodes, or registers them, and gives them labels.
type Maker string

// The makers of nodes.
const (
	Karpenter  Maker = "Karpenter"
	EKS        Maker = "EKS"
	GKE        Maker = "GKE"
	AKS        Maker = "AKS"
	ClusterAPI Maker = "Cluster API"
	Kubelet    Maker = "the kubelet"
)

// machine are labels that say what a node is, or where. The kubelet or the cloud
// provider sets them, and nobody else may (k8s.io/kubelet/pkg/apis).
var machine = []string{
	corev1.LabelHostname, corev1.LabelArchStable, corev1.LabelOSStable, corev1.LabelWindowsBuild,
	corev1.LabelTopologyZone, corev1.LabelTopologyRegion, corev1.LabelInstanceTypeStable,
	corev1.LabelFailureDomainBetaZone, corev1.LabelFailureDomainBetaRegion, corev1.LabelInstanceType,
	"beta.kubernetes.io/arch", "beta.kubernetes.io/os", "topology.k8s.aws/zone-id",
}

// groups are the labels that tell the group that a node is of.
var groups = map[string]Maker{
	"karpenter.sh/nodepool":          Karpenter,
	"eks.amazonaws.com/nodegroup":    EKS,
	"cloud.google.com/gke-nodepool":  GKE,
	"kubernetes.azure.com/agentpool": AKS,
	"agentpool":                      AKS,
}

// givenDomains are the domains of labels that Karpenter, its providers and the
// managed services keep for themselves.
var givenDomains = []string{
	"karpenter.sh", "karpenter.k8s.aws", "karpenter.azure.com", "karpenter.k8s.gcp", "eks.amazonaws.com", "cloud.google.com", "kubernetes.azure.com",
}

// IsGiven reports whether nodes come with the label by themselves, because of
// what they are or who made them: it can be asked for, but not set.
func IsGiven(key string) bool {
	_, group := groups[key]
	return group || slices.Contains(machine, key) || in(key, givenDomains...)
}

// Group returns which maker's label the key is, of those that hold the name of
// the group (NodePool, node group, node pool) that a node is of.
func Group(key string) (Maker, bool) {
	m, ok := groups[key]
	return m, ok
}

// GroupOf returns who made the node with the labels, and the name of its group
// there; false if they do not tell. A node made by Karpenter is Karpenter's also
// where it runs on a managed service.
func GroupOf(labels map[string]string) (Maker, string, bool) {
	for _, key := range []string{"karpenter.sh/nodepool", "eks.amazonaws.com/nodegroup", "cloud.google.com/gke-nodepool", "kubernetes.azure.com/agentpool", "agentpool"} {
		if name, ok := labels[key]; ok {
			return groups[key], name, true
		}
	}
	return "", "", false
}

// KarpenterChooses reports whether Karpenter knows the label by itself, so that
// a NodePool offers every value that it does not rule out
// (sigs.k8s.io/karpenter/pkg/apis/v1, WellKnownLabels, and the providers').
func KarpenterChooses(key string) bool {
	switch Normal(key) {
	case corev1.LabelArchStable, corev1.LabelOSStable, corev1.LabelWindowsBuild, corev1.LabelTopologyZone,
		corev1.LabelTopologyRegion, corev1.LabelInstanceTypeStable, "karpenter.sh/capacity-type", "karpenter.sh/nodepool",
		"topology.k8s.aws/zone-id":
		return true
	}
	// Auto Mode has its instance labels in the service's own domain.
	return in(key, "karpenter.k8s.aws", "karpenter.azure.com", "karpenter.k8s.gcp") || strings.HasPrefix(key, "eks.amazonaws.com/instance-")
}

// Normal returns the label that an old name stands for (the same file,
// NormalizedLabels).
func Normal(key string) string {
	switch key {
	case "beta.kubernetes.io/arch":
		return corev1.LabelArchStable
	case "beta.kubernetes.io/os":
		return corev1.LabelOSStable
	case corev1.LabelFailureDomainBetaZone:
		return corev1.LabelTopologyZone
	case corev1.LabelFailureDomainBetaRegion:
		return corev1.LabelTopologyRegion
	case corev1.LabelInstanceType:
		return corev1.LabelInstanceTypeStable
	}
	return key
}

// Restricted reports whether the label is of the domain that a kubelet may
// never set on its own node, and whoever breaks into a node can therefore not
// forge (the NodeRestriction admission plugin).
func Restricted(key string) bool { return in(key, corev1.LabelNamespaceNodeRestriction) }

// Refusal returns why the maker cannot give nodes the label; empty if it can.
func (m Maker) Refusal(key string) string {
	switch m {
	case Karpenter:
		// sigs.k8s.io/karpenter/pkg/apis/v1, RestrictedLabelDomains and
		// LabelDomainExceptions: it labels through the API, not the kubelet.
		if key == corev1.LabelHostname || in(key, "kubernetes.io", "k8s.io", "karpenter.sh") && !in(key, "kops.k8s.io", corev1.LabelNamespaceSuffixNode, corev1.LabelNamespaceNodeRestriction) {
			return "a NodePool may not set labels of kubernetes.io, k8s.io and karpenter.sh, but for node.kubernetes.io and node-restriction.kubernetes.io"
		}
	case EKS:
		// The EKS API refuses these prefixes (aws/containers-roadmap, issue 1451).
		if in(key, "kubernetes.io", "k8s.io", "eks.amazonaws.com") {
			return "EKS keeps the prefixes kubernetes.io, k8s.io and eks.amazonaws.com for itself"
		}
	case AKS:
		// Azure's documentation, "Use labels in AKS", reserved prefixes.
		if in(key, "kubernetes.io", "kubernetes.azure.com") || slices.Contains([]string{"agentpool", "storageprofile", "storagetier", "accelerator"}, key) {
			return "AKS keeps the prefixes kubernetes.io and kubernetes.azure.com for itself"
		}
	case GKE:
		if in(key, "cloud.google.com") {
			return "GKE keeps the prefix cloud.google.com for itself"
		}
		// Google's documentation isolates workloads by node-restriction labels of a
		// node pool; other labels of these domains go through the kubelet.
		if !Restricted(key) {
			return Kubelet.Refusal(key)
		}
	case ClusterAPI:
		if !SyncedByClusterAPI(key) {
			return Kubelet.Refusal(key)
		}
	case Kubelet:
		// k8s.io/kubelet/pkg/apis, IsKubeletLabel; the kubelet does not start with
		// others of these domains among --node-labels.
		if in(key, "kubernetes.io", "k8s.io") && !in(key, "kubelet.kubernetes.io", corev1.LabelNamespaceSuffixNode) && !slices.Contains(machine, key) {
			return "a kubelet may not set labels of kubernetes.io and k8s.io on its own node, but for kubelet.kubernetes.io and node.kubernetes.io"
		}
	}
	return ""
}

// SyncedByClusterAPI reports whether Cluster API itself keeps the label of a
// Machine on its node (its book, metadata propagation); others have to go
// through the kubelet.
func SyncedByClusterAPI(key string) bool {
	return in(key, "node-role.kubernetes.io", corev1.LabelNamespaceNodeRestriction, "node.cluster.x-k8s.io")
}

// TaintRefusal is Refusal for a taint's key.
func (m Maker) TaintRefusal(key string) string {
	switch {
	case m == EKS && in(key, "kubernetes.io", "k8s.io", "eks.amazonaws.com"):
		return "EKS keeps the prefixes kubernetes.io, k8s.io and eks.amazonaws.com for itself"
	case m == AKS && in(key, "kubernetes.azure.com"):
		return "AKS keeps the prefix kubernetes.azure.com for itself"
	}
	return ""
}

// Setters names those who can give nodes the label on any cloud.
func Setters(key string) string {
	var can []string
	for _, m := range []Maker{Karpenter, ClusterAPI} {
		if m.Refusal(key) == "" {
			can = append(can, string(m))
		}
	}
	can = append(can, "kubectl sched apply (managedBy: \"live\")")
	if len(can) == 1 {
		return can[0]
	}
	return strings.Join(can[:len(can)-1], ", ") + " and " + can[len(can)-1]
}

// in reports whether the key's prefix is one of the domains, or below one.
func in(key string, domains ...string) bool {
	prefix, _, ok := strings.Cut(key, "/")
	return ok && slices.ContainsFunc(domains, func(d string) bool { return prefix == d || strings.HasSuffix(prefix, "."+d) })
}
