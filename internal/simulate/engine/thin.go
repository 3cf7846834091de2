package engine

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/parallelize"
)

// thin is the nodes of a cluster with none but the pods that are relevant for a
// class, in each place the one that stands for its kind. Plugins that look across
// nodes come to the same over it as over all pods, in a fraction of the time.
type thin struct {
	nodes []fwk.NodeInfo // by place
	// counting are a node without pods of each group, and those that have pods: what
	// is counted over them is what is counted over all, and the domains are the same
	// but for those of labels that tell nodes of a group apart.
	counting nodeList
	// The nodes with pods that have terms of their own, of each kind.
	affinity, antiAffinity, wideAntiAffinity nodeList
}

func newThin(l *layout) *thin {
	n := len(l.nodes)
	return &thin{
		nodes: make([]fwk.NodeInfo, n), counting: newNodeList(n, l.empty...),
		affinity: newNodeList(n), antiAffinity: newNodeList(n), wideAntiAffinity: newNodeList(n),
	}
}

// nodeList is some of the nodes, in an order that follows from what was done to it.
type nodeList struct {
	nodes  []fwk.NodeInfo
	always int     // how many stay at the beginning
	places []int32 // of the nodes after those
	at     []int32 // by place: where in nodes it is, or 0 and one before it
}

func newNodeList(n int, always ...fwk.NodeInfo) nodeList {
	return nodeList{nodes: slices.Clone(always), always: len(always), at: make([]int32, n)}
}

// set puts the node of the place in, or takes it out.
func (l *nodeList) set(place int, node fwk.NodeInfo, in bool) {
	at := int(l.at[place]) - 1
	switch {
	case in && at >= 0:
		l.nodes[l.always+at] = node
	case in:
		l.nodes, l.places = append(l.nodes, node), append(l.places, int32(place)) //nolint:gosec // clusters have fewer nodes
		l.at[place] = int32(len(l.places))                                        //nolint:gosec // see above
	case at >= 0:
		last := len(l.places) - 1
		moved := l.places[last]
		l.nodes[l.always+at], l.places[at], l.at[moved] = l.nodes[l.always+last], moved, l.at[place]
		l.nodes, l.places, l.at[place] = l.nodes[:l.always+last], l.places[:last], 0
	}
}

// bare are NodeInfos without pods, which all classes share.
type bare []fwk.NodeInfo

// of returns the node without its pods.
func (b bare) of(i int, node fwk.NodeInfo) fwk.NodeInfo {
	if b[i] == nil || b[i].Node() != node.Node() {
		info := framework.NewNodeInfo()
		info.SetNode(node.Node())
		b[i] = info
	}
	return b[i]
}

// update brings the node at place i up to date.
func (t *thin) update(i int, node fwk.NodeInfo, shared bare, kinds *kinds, r *relevance) error {
	var kept *framework.NodeInfo
	wide := false
	for _, pod := range node.GetPods() {
		k, err := kinds.of(pod)
		if err != nil {
			return err
		}
		if !r.of(k) {
			continue
		}
		if kept == nil {
			kept = framework.NewNodeInfo()
			kept.SetNode(node.Node())
		}
		kept.AddPodInfo(k.PodInfo)
		// A NodeInfo itself knows this only where upstream's gate for it is on.
		wide = wide || slices.ContainsFunc(k.GetRequiredAntiAffinityTerms(), func(t fwk.AffinityTerm) bool { return t.TopologyKey != corev1.LabelHostname })
	}
	var made fwk.NodeInfo = kept
	if kept == nil {
		made = shared.of(i, node)
	}
	t.nodes[i] = made
	t.counting.set(i, made, kept != nil)
	t.affinity.set(i, made, len(made.GetPodsWithAffinity()) > 0)
	t.antiAffinity.set(i, made, len(made.GetPodsWithRequiredAntiAffinity()) > 0)
	t.wideAntiAffinity.set(i, made, wide)
	return nil
}

// thinHandle is a framework whose shared lister gives the thin nodes of now. Its
// plugins may use several processors: what they count does not depend on the order.
type thinHandle struct {
	framework.Framework
	now          *thin
	parallelizer parallelize.Parallelizer
}

// Parallelizer returns the plugins' own.
func (h *thinHandle) Parallelizer() fwk.Parallelizer { return h.parallelizer }

// SnapshotSharedLister returns the lister.
func (h *thinHandle) SnapshotSharedLister() fwk.SharedLister {
	return &thinLister{SharedLister: h.Framework.SnapshotSharedLister(), handle: h}
}

type thinLister struct {
	fwk.SharedLister
	handle *thinHandle
}

// NodeInfos returns the thin nodes.
func (l *thinLister) NodeInfos() fwk.NodeInfoLister {
	return &thinNodes{NodeInfoLister: l.SharedLister.NodeInfos(), handle: l.handle}
}

type thinNodes struct {
	fwk.NodeInfoLister
	handle *thinHandle
}

// List returns the nodes that something can be counted on.
func (n *thinNodes) List() ([]fwk.NodeInfo, error) { return n.handle.now.counting.nodes, nil }

// HavePodsWithAffinityList returns the nodes with pods that have affinity.
func (n *thinNodes) HavePodsWithAffinityList() ([]fwk.NodeInfo, error) {
	return n.handle.now.affinity.nodes, nil
}

// HavePodsWithRequiredAntiAffinityList returns the nodes with pods that keep
// others away.
func (n *thinNodes) HavePodsWithRequiredAntiAffinityList() ([]fwk.NodeInfo, error) {
	return n.handle.now.antiAffinity.nodes, nil
}

// HavePodsWithRequiredNonHostScopedAntiAffinityList returns those of them whose
// terms are about more than the node itself.
func (n *thinNodes) HavePodsWithRequiredNonHostScopedAntiAffinityList() ([]fwk.NodeInfo, error) {
	return n.handle.now.wideAntiAffinity.nodes, nil
}
