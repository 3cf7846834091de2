package engine

import (
	fwk "k8s.io/kube-scheduler/framework"
)

// scratch is memory that is used again for each pod. With thousands of nodes it would
// otherwise be most of the garbage.
type scratch struct {
	statuses       []*fwk.Status
	totals, points []int64
	list           fwk.NodeScoreList
	raw            []int64
	// answers are what plugins say of the nodes in asked; as has for each node the
	// place of its answer, and first for each group.
	answers   []*fwk.Status
	asked, as []int
	first     []int
	across    map[string]*[]int64
}

// resized returns the memory with n elements, which hold anything.
func resized[S ~[]E, E any](memory *S, n int) S {
	if cap(*memory) < n {
		*memory = make(S, n)
	}
	*memory = (*memory)[:n]
	return *memory
}

// statusesOf returns a copy of the statuses, until the next call.
func (c *chooser) statusesOf(from []*fwk.Status) []*fwk.Status {
	to := resized(&c.scratch.statuses, len(from))
	copy(to, from)
	return to
}

// pointsOf returns the memory for n points of the plugin.
func (s *scratch) pointsOf(plugin string, n int) []int64 {
	if s.across == nil {
		s.across = map[string]*[]int64{}
	}
	memory, ok := s.across[plugin]
	if !ok {
		memory = new([]int64)
		s.across[plugin] = memory
	}
	return resized(memory, n)
}

// apart picks, of n nodes, those that a plugin must be asked about so that its
// answers are known for all: one of each group, and each node that has pods which
// count. Of tells the place of a node in the layout, and whether it matters; as is
// the place of each node's answer, or -1.
func (s *scratch) apart(n int, cl *class, of func(int) (place int, matters bool)) (asked, as []int) {
	s.asked, as = s.asked[:0], resized(&s.as, n)
	first := resized(&s.first, len(cl.nodes))
	clear(first)
	for k := range n {
		place, matters := of(k)
		if !matters {
			as[k] = -1
			continue
		}
		if cl.alike && len(cl.thin.nodes[place].GetPods()) == 0 {
			if known := first[cl.groups[place]]; known > 0 {
				as[k] = known - 1
				continue
			}
			first[cl.groups[place]] = len(s.asked) + 1
		}
		as[k] = len(s.asked)
		s.asked = append(s.asked, k)
	}
	resized(&s.answers, len(s.asked))
	return s.asked, as
}
