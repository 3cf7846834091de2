package snapshot

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/kubectl-sched/kubectl-sched/internal/cluster/trim"
)

// Summary is a snapshot in a few numbers.
type Summary struct {
	// Counts are how many objects there are of each kind, in the order of Kinds; kinds
	// without any are left out.
	Counts []Count `json:"counts"`
	// Pending is how many pods have no node.
	Pending int `json:"pending"`
	// Groups are the nodes by pool and zone, sorted.
	Groups []Group `json:"groups"`
}

// Count is how many objects there are of a kind.
type Count struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
}

// Group is the nodes of one pool in one zone, and how full they are.
type Group struct {
	// Pool and Zone are empty where the nodes do not say.
	Pool string `json:"pool,omitempty"`
	Zone string `json:"zone,omitempty"`
	// Nodes is how many there are, Unschedulable how many of them are cordoned.
	Nodes         int `json:"nodes"`
	Unschedulable int `json:"unschedulable,omitempty"`
	Pods          int `json:"pods"`
	// Requested is what their pods ask for, Allocatable what they have.
	Requested   corev1.ResourceList `json:"requested"`
	Allocatable corev1.ResourceList `json:"allocatable"`
}

// Share is how much of the resource the pods ask for, from 0; false where the nodes
// have none of it.
func (g Group) Share(name corev1.ResourceName) (float64, bool) {
	have, asked := g.Allocatable[name], g.Requested[name]
	if have.IsZero() {
		return 0, false
	}
	return asked.AsApproximateFloat64() / have.AsApproximateFloat64(), true
}

// poolLabels are the labels by which those who make nodes say of which pool one is.
var poolLabels = []string{
	"karpenter.sh/nodepool", "eks.amazonaws.com/nodegroup", "cloud.google.com/gke-nodepool", "kubernetes.azure.com/agentpool",
	"node.cluster.x-k8s.io/pool", "kops.k8s.io/instancegroup",
}

// PoolOf returns the pool that the node is of, as who made it says; empty if nobody
// does.
func PoolOf(n *corev1.Node) string {
	for _, label := range poolLabels {
		if pool := n.Labels[label]; pool != "" {
			return pool
		}
	}
	return ""
}

// Summarize counts what is in the snapshot.
func Summarize(s *Snapshot) Summary {
	sum := Summary{Counts: []Count{}}
	for _, k := range allKinds() {
		if n := k.Len(s); n > 0 {
			sum.Counts = append(sum.Counts, Count{k.Name, n})
		}
	}
	type place struct{ pool, zone string }
	groups, byNode := map[place]*Group{}, map[string]*Group{}
	for _, n := range s.Nodes {
		at := place{PoolOf(n), n.Labels[corev1.LabelTopologyZone]}
		g := groups[at]
		if g == nil {
			g = &Group{Pool: at.pool, Zone: at.zone, Requested: corev1.ResourceList{}, Allocatable: corev1.ResourceList{}}
			groups[at] = g
		}
		byNode[n.Name] = g
		g.Nodes++
		if n.Spec.Unschedulable {
			g.Unschedulable++
		}
		addResources(g.Allocatable, n.Status.Allocatable)
	}
	ask := requests{}
	for _, p := range s.Pods {
		switch g := byNode[p.Spec.NodeName]; {
		case trim.Ended(p):
		case p.Spec.NodeName == "":
			sum.Pending++
		case g != nil:
			g.Pods++
			addResources(g.Requested, ask.of(p))
		}
	}
	sum.Groups = make([]Group, 0, len(groups))
	for _, g := range slices.SortedFunc(maps.Values(groups), func(a, b *Group) int {
		return cmp.Or(cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.Zone, b.Zone))
	}) {
		sum.Groups = append(sum.Groups, *g)
	}
	return sum
}

// requests remembers what pods ask for, of which many share their containers.
type requests map[sharedContainers]corev1.ResourceList

// sharedContainers are the first containers of each sort, and how many there are.
type sharedContainers struct {
	first, firstInit *corev1.Container
	count, initCount int
}

// of returns what the pod asks for.
func (r requests) of(p *corev1.Pod) corev1.ResourceList {
	s, options := &p.Spec, resourcehelper.PodResourcesOptions{UseStatusResources: true}
	resized := len(p.Status.ContainerStatuses)+len(p.Status.InitContainerStatuses) > 0 || resourcehelper.IsPodResizeInfeasible(p)
	if len(s.Containers) == 0 || s.Resources != nil || s.Overhead != nil || resized {
		return resourcehelper.PodRequests(p, options)
	}
	key := sharedContainers{first: &s.Containers[0], count: len(s.Containers), initCount: len(s.InitContainers)}
	if key.initCount > 0 {
		key.firstInit = &s.InitContainers[0]
	}
	known, ok := r[key]
	if !ok {
		known = resourcehelper.PodRequests(p, options)
		r[key] = known
	}
	return known
}

// addResources adds CPU and memory, and what else the nodes have that counts.
func addResources(sum, more corev1.ResourceList) {
	for name, quantity := range more {
		total, ok := sum[name]
		if !ok {
			total = *resource.NewQuantity(0, quantity.Format)
		}
		total.Add(quantity)
		sum[name] = total
	}
}
