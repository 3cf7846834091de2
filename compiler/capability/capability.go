// Package capability says what one cluster can express and what is known of it.
//
// Capabilities is a plain value: it comes from a live cluster, a snapshot or
// the policy's own clusters block, and the compiler treats all alike. The
// vocabulary (pools, topology keys) is the policy's and not part of it. The
// package must not know how the facts were found.
package capability

import corev1 "k8s.io/api/core/v1"

// Capabilities is what is known of one cluster.
type Capabilities struct {
	// Cluster is the name in the policy's clusters block, or empty.
	Cluster string
	// Minor is the Kubernetes minor version: 37 for 1.37; 0 if not known (then
	// the version that we are built against is assumed).
	Minor int
	// NodesKnown says that Nodes is the whole truth, and not merely empty.
	NodesKnown bool
	// Nodes are the cluster's nodes, sorted by name.
	Nodes []Node
	// NamespacesKnown says that Namespaces is the whole truth.
	NamespacesKnown bool
	// Namespaces maps the name of each namespace to its labels.
	Namespaces map[string]map[string]string
	// Volumes maps "namespace/claim" to the node affinity of the bound
	// PersistentVolume, for the claims that are bound.
	Volumes map[string]Volume
	// PriorityClasses maps the names of the existing classes to their values;
	// nil if not known.
	PriorityClasses map[string]int32
	// DefaultPriorityClass is the class that pods get which name none; empty if
	// there is none, or it is not known.
	DefaultPriorityClass string
	// NodePoolsKnown says that NodePools is the whole truth: the cluster serves
	// them and they were read, or the manifests have them.
	NodePoolsKnown bool
	// NodePools are Karpenter's, sorted by name.
	NodePools []NodePool
	// SchedulersKnown says that Schedulers has the bundled scheduler if it runs
	// there; others cannot be told through the API.
	SchedulersKnown bool
	// Schedulers are those that are known to run there.
	Schedulers []Scheduler
}

// Node is what placement needs to know of a node.
type Node struct {
	Name          string
	Labels        map[string]string
	Taints        []corev1.Taint
	Unschedulable bool
}

// Volume is a bound PersistentVolume.
type Volume struct {
	Name string
	// Affinity is nil where the volume may be used from every node.
	Affinity *corev1.VolumeNodeAffinity
}
