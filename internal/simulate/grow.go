package simulate

import (
	"context"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Pool is where a cluster can get more nodes.
type Pool struct {
	Name string
	// Template is what a new node is like.
	Template *corev1.Node
	// Limit is how many more nodes there may be; 0 for no limit.
	Limit int
	// Full says that there may be none.
	Full bool
}

// Growth is how many nodes of a pool the pods that wait need.
type Growth struct {
	Pool  string
	Nodes int
}

// mostNewNodes is how many nodes Grow adds in all.
const mostNewNodes = 1000

// Grow adds nodes, one at a time, as long as one lets a pod be placed that waits.
// The first pool whose nodes do is taken. Those pods are NeedsNodes in the outcome.
func (w *World) Grow(ctx context.Context, pools []Pool) error {
	if len(pools) == 0 {
		return nil
	}
	w.begin("add nodes for what waits")
	hopeless := map[*owner]bool{}
	for _, name := range w.waiting() {
		if o := w.pods[name]; o != nil && hopeless[o] || len(w.grown) >= mostNewNodes {
			continue
		}
		if pod, ok := w.engine.Pod(name); !ok || pod.Spec.NodeName != "" {
			continue // it has come to a node that another needed
		}
		helped, err := w.growFor(ctx, name, pools)
		if err != nil {
			return err
		}
		if o := w.pods[name]; !helped && o != nil {
			hopeless[o] = true
		}
	}
	return nil
}

// waiting returns the pods that a scheduler has tried and not placed, by name.
func (w *World) waiting() []podName {
	var names []podName
	for name := range w.pods {
		if pod, ok := w.engine.Pod(name); ok && w.pod(name, pod).Verdict == Waiting {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b podName) int { return strings.Compare(a.String(), b.String()) })
	return names
}

// growFor adds a node of the first pool that lets the pod be placed.
func (w *World) growFor(ctx context.Context, name podName, pools []Pool) (bool, error) {
	for _, pool := range pools {
		if pool.Full || pool.Limit > 0 && w.growthOf(pool.Name) >= pool.Limit {
			continue
		}
		before := maps.Clone(w.last)
		node, err := w.addNode(pool.Template)
		if err != nil {
			return false, err
		}
		if err := w.settle(ctx); err != nil {
			return false, err
		}
		if pod, ok := w.engine.Pod(name); ok && pod.Spec.NodeName != "" {
			w.grown[node] = pool.Name
			return true, nil
		}
		kept, err := w.takeBack(node)
		if err != nil {
			return false, err
		}
		if kept {
			w.grown[node] = pool.Name
			continue
		}
		w.last = before // what was said of a node that is not there does not count
	}
	return false, nil
}

// takeBack removes a node that has not helped, with the pods that came with it.
// It reports whether the node stays, because another pod has come to it.
func (w *World) takeBack(node string) (kept bool, err error) {
	var daemons []*corev1.Pod
	for _, pod := range w.on(node) {
		if o := w.pods[keyOf(pod)]; o == nil || o.kind != "DaemonSet" {
			return true, nil
		}
		daemons = append(daemons, pod)
	}
	for _, pod := range daemons {
		if err := w.remove(pod); err != nil {
			return false, err
		}
	}
	gone := w.nodes[node]
	delete(w.nodes, node)
	return false, w.engine.Remove(gone)
}

func (w *World) growthOf(pool string) int {
	n := 0
	for _, p := range w.grown {
		if p == pool {
			n++
		}
	}
	return n
}

// growth returns how many nodes of each pool were added.
func (w *World) growth() []Growth {
	count := map[string]int{}
	for _, pool := range w.grown {
		count[pool]++
	}
	var list []Growth
	for _, pool := range slices.Sorted(maps.Keys(count)) {
		list = append(list, Growth{Pool: pool, Nodes: count[pool]})
	}
	return list
}
