package cachelocality

import (
	"sync"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	fwk "k8s.io/kube-scheduler/framework"
)

// heat counts for each node the pods with datasets that were placed there since
// what the node says it has warm last changed. It counts pods, not time: a node
// that nobody is sent to does not cool down, and one whose agent has caught up
// says so by the label.
type heat struct {
	keys []string

	mu    sync.RWMutex
	nodes map[string]*counter
}

// counter is the count of one node until the next change. A change replaces it,
// so that an Unreserve afterwards does not touch the new one.
type counter struct{ pods atomic.Int64 }

// Clone returns c itself: a copied cycle state speaks of the same counter.
func (c *counter) Clone() fwk.StateData { return c }

func newHeat(keys []string) *heat { return &heat{keys: keys, nodes: map[string]*counter{}} }

// place counts one pod, and returns the counter that was raised.
func (h *heat) place(node string) *counter {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.nodes[node]
	if c == nil {
		c = &counter{}
		h.nodes[node] = c
	}
	c.pods.Add(1)
	return c
}

// placed returns the count.
func (h *heat) placed(node string) int64 {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if c := h.nodes[node]; c != nil {
		return c.pods.Load()
	}
	return 0
}

// forget starts the node's count anew.
func (h *heat) forget(node string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.nodes, node)
}

// handler watches the nodes for changes of what they have warm.
func (h *heat) handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(before, after any) {
			was, ok := before.(*v1.Node)
			is, also := after.(*v1.Node)
			if ok && also && says(was, h.keys) != says(is, h.keys) {
				h.forget(is.Name)
			}
		},
		DeleteFunc: func(object any) {
			if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = gone.Obj
			}
			if node, ok := object.(*v1.Node); ok {
				h.forget(node.Name)
			}
		},
	}
}

// says is all that the node's labels and annotations have at the keys.
func says(node *v1.Node, keys []string) string {
	all := ""
	for _, key := range keys {
		all += node.Labels[key] + "\n" + node.Annotations[key] + "\n"
	}
	return all
}
