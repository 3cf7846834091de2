package engine

import (
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/parallelize"
)

// thin is the nodes of a cluster with none but the pods that are relevant for a
// class. Plugins that look across nodes come to the same over it as over all pods,
// in a fraction of the time.
type thin struct {
	nodes []fwk.NodeInfo
	// The nodes with pods that have terms of their own, of each kind. They are stale
	// after such a node has changed.
	affinity, antiAffinity, wideAntiAffinity []fwk.NodeInfo
	stale                                    bool
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

// update brings node i up to date.
func (t *thin) update(i int, node fwk.NodeInfo, shared bare, kinds *kinds, r *relevance) error {
	t.stale = t.stale || hasTerms(t.nodes[i])
	var kept *framework.NodeInfo
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
		kept.AddPodInfo(pod)
	}
	if kept == nil {
		t.nodes[i] = shared.of(i, node)
		return nil
	}
	t.nodes[i] = kept
	t.stale = t.stale || hasTerms(kept)
	return nil
}

// hasTerms reports whether a pod on the thin node has terms of its own.
func hasTerms(node fwk.NodeInfo) bool {
	return node != nil && len(node.GetPodsWithAffinity())+len(node.GetPodsWithRequiredAntiAffinity())+len(node.GetPodsWithRequiredNonHostScopedAntiAffinity()) > 0
}

// refresh finds the nodes with pods that have terms of their own.
func (t *thin) refresh() {
	if !t.stale {
		return
	}
	t.stale = false
	t.affinity, t.antiAffinity, t.wideAntiAffinity = t.affinity[:0], t.antiAffinity[:0], t.wideAntiAffinity[:0]
	for _, node := range t.nodes {
		if len(node.GetPodsWithAffinity()) > 0 {
			t.affinity = append(t.affinity, node)
		}
		if len(node.GetPodsWithRequiredAntiAffinity()) > 0 {
			t.antiAffinity = append(t.antiAffinity, node)
		}
		if len(node.GetPodsWithRequiredNonHostScopedAntiAffinity()) > 0 {
			t.wideAntiAffinity = append(t.wideAntiAffinity, node)
		}
	}
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

// List returns all nodes.
func (n *thinNodes) List() ([]fwk.NodeInfo, error) { return n.handle.now.nodes, nil }

// HavePodsWithAffinityList returns the nodes with pods that have affinity.
func (n *thinNodes) HavePodsWithAffinityList() ([]fwk.NodeInfo, error) {
	return n.handle.now.affinity, nil
}

// HavePodsWithRequiredAntiAffinityList returns the nodes with pods that keep
// others away.
func (n *thinNodes) HavePodsWithRequiredAntiAffinityList() ([]fwk.NodeInfo, error) {
	return n.handle.now.antiAffinity, nil
}

// HavePodsWithRequiredNonHostScopedAntiAffinityList returns those of them whose
// terms are about more than the node itself.
func (n *thinNodes) HavePodsWithRequiredNonHostScopedAntiAffinityList() ([]fwk.NodeInfo, error) {
	return n.handle.now.wideAntiAffinity, nil
}
