package engine

import (
	"slices"

	fwk "k8s.io/kube-scheduler/framework"
)

// layout is the nodes of a snapshot, the place of each, and a log of what became of
// them, which classes read at their own pace.
type layout struct {
	nodes []fwk.NodeInfo
	// list is the snapshot's own list. Upstream makes another one for other nodes.
	list  []fwk.NodeInfo
	at    map[string]int
	names []string
	// numbers are what the seed gives the nodes.
	numbers []uint64
	groups  []int
	// unique are the keys of labels that tell nodes of a group apart, and onAll those
	// that all nodes have.
	unique, onAll map[string]bool
	// ownHostnames says that no two nodes have the same hostname in their labels.
	ownHostnames bool
	bare         bare
	// empty is one node of each group, without pods.
	empty []fwk.NodeInfo

	// generations are those of the nodes when they were last looked at, and log has
	// the places of those that had changed, in order.
	generations []int64
	log         []int

	// marks and mark tell the places apart that a reading of the log has met.
	marks []int
	mark  int
}

func newLayout(nodes []fwk.NodeInfo, number func(string) uint64) *layout {
	n := len(nodes)
	l := &layout{
		nodes: slices.Clone(nodes), list: nodes, at: make(map[string]int, n), names: make([]string, n), numbers: make([]uint64, n), bare: make(bare, n),
		generations: make([]int64, n), marks: make([]int, n),
	}
	l.groups, l.unique = groups(nodes)
	l.onAll, l.ownHostnames = keysOnAll(nodes), ownHostnames(nodes)
	for i, node := range nodes {
		if l.groups[i] == len(l.empty) {
			l.empty = append(l.empty, l.bare.of(i, node))
		}
		name := node.Node().Name
		l.at[name], l.names[i], l.numbers[i], l.generations[i] = i, name, number(name), node.GetGeneration()
	}
	return l
}

// isOf reports whether the layout is that of the nodes.
func (l *layout) isOf(nodes []fwk.NodeInfo) bool {
	if len(nodes) == len(l.list) && (len(nodes) == 0 || &nodes[0] == &l.list[0]) {
		return true
	}
	return slices.Equal(l.nodes, nodes)
}

// look writes into the log which nodes have changed since.
func (l *layout) look() {
	for i, node := range l.nodes {
		if g := node.GetGeneration(); g != l.generations[i] {
			l.generations[i] = g
			l.log = append(l.log, i)
		}
	}
}

// tried writes into the log that a group was tried on the node, or its seat given up
// again. Its generation does not tell: upstream keeps it, because the cache has not
// changed.
func (l *layout) tried(node string) {
	if i, ok := l.at[node]; ok {
		l.log = append(l.log, i)
	}
}

// changedSince returns the places that are in the log from seen on, each once.
func (l *layout) changedSince(seen int) []int {
	l.mark++
	var places []int
	for _, i := range l.log[seen:] {
		if l.marks[i] != l.mark {
			l.marks[i] = l.mark
			places = append(places, i)
		}
	}
	return places
}

// everywhere returns all places.
func (l *layout) everywhere() []int {
	places := make([]int, len(l.nodes))
	for i := range places {
		places[i] = i
	}
	return places
}
