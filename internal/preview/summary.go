package preview

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/kubectl-sched/kubectl-sched/internal/cluster/snapshot"
	"github.com/kubectl-sched/kubectl-sched/internal/simulate"
)

// Pools maps nodes to the names of their pools.
type Pools map[string]string

// Of returns the pool of the node: the one that it is mapped to, else what who made
// it says; empty if nobody does.
func (p Pools) Of(n *corev1.Node) string { return cmp.Or(p[n.Name], snapshot.PoolOf(n)) }

// Place returns the group of nodes that the node is in.
func (p Pools) Place(n *corev1.Node) Place {
	return Place{Pool: p.Of(n), Zone: n.Labels[corev1.LabelTopologyZone]}
}

// Place is a group of nodes: a pool in a zone. Either may be empty.
type Place struct {
	Pool string `json:"pool,omitempty"`
	Zone string `json:"zone,omitempty"`
}

// Compare orders places by pool and zone; it returns -1, 0 or +1.
func (p Place) Compare(q Place) int {
	return cmp.Or(cmp.Compare(p.Pool, q.Pool), cmp.Compare(p.Zone, q.Zone))
}

// Fill is what the pods on a group of nodes ask for.
type Fill struct {
	Place
	// Nodes and Pods count them, before and after.
	Nodes, NodesAfter int
	Pods, PodsAfter   int
	// CPU is in milliCPU and Memory in bytes: what is requested, before and after, of
	// what the nodes can give afterwards.
	CPU, CPUAfter, CPUTotal          int64
	Memory, MemoryAfter, MemoryTotal int64
}

// Workload is what became of the pods of one workload.
type Workload struct {
	Ref simulate.Ref
	// Before and After count its placed pods by place.
	Before, After map[Place]int
	// Moved counts the pods that are on other nodes than pods of the workload were,
	// ByTie those of them that only the seed put there, and Restarted those that were
	// made anew.
	Moved, ByTie, Restarted int
	// Added is how many pods there are more, or less.
	Added int
	// Waiting are its pods that are nowhere.
	Waiting []simulate.Pod
	// NeedsNodes counts those that new nodes would take, by pool.
	NeedsNodes map[string]int
}

// Changed reports whether the placement of the workload is another than before.
func (w Workload) Changed() bool {
	return w.Moved > 0 || w.Restarted > 0 || w.Added != 0 || len(w.Waiting) > 0 || len(w.NeedsNodes) > 0
}

// Summary is a result by groups of nodes and by workloads.
type Summary struct {
	Fill []Fill
	// Workloads are those with pods, by namespace, kind and name.
	Workloads []Workload
}

// Pods says how many pods each number is about, over all workloads.
type Pods struct{ Moved, ByTie, Restarted, Added, Removed, Waiting, NeedsNodes int }

// Pods adds up.
func (s *Summary) Pods() Pods {
	var p Pods
	for _, w := range s.Workloads {
		p.Moved += w.Moved
		p.ByTie += w.ByTie
		p.Restarted += w.Restarted
		p.Added += max(0, w.Added)
		p.Removed += max(0, -w.Added)
		p.Waiting += len(w.Waiting)
		for _, n := range w.NeedsNodes {
			p.NeedsNodes += n
		}
	}
	return p
}

// Summarize counts.
func (r *Result) Summarize(pools Pools) *Summary {
	s := summarizer{pools: pools, places: map[string]Place{}, fill: map[Place]*Fill{}, workloads: map[simulate.Ref]*counting{}}
	for _, n := range r.Request.Snapshot.Nodes {
		s.at(n).Nodes++
	}
	for _, n := range r.Nodes {
		f := s.at(n)
		f.NodesAfter++
		f.CPUTotal += n.Status.Allocatable.Cpu().MilliValue()
		f.MemoryTotal += n.Status.Allocatable.Memory().Value()
	}
	for _, pod := range r.Request.Snapshot.Pods {
		s.before(r, pod)
	}
	for _, pod := range r.Pods {
		s.after(pod)
	}
	return s.summary()
}

type summarizer struct {
	pools     Pools
	places    map[string]Place // by node
	fill      map[Place]*Fill
	workloads map[simulate.Ref]*counting
}

// counting is a workload that is being counted.
type counting struct {
	Workload
	on     map[string]int // pods on each node before
	placed []simulate.Pod
	had    int
	has    int
}

// at returns the group of the node.
func (s *summarizer) at(n *corev1.Node) *Fill {
	p := s.pools.Place(n)
	s.places[n.Name] = p
	if s.fill[p] == nil {
		s.fill[p] = &Fill{Place: p}
	}
	return s.fill[p]
}

func (s *summarizer) workload(r simulate.Ref) *counting {
	c := s.workloads[r]
	if c == nil {
		c = &counting{Workload: Workload{Ref: r, Before: map[Place]int{}, After: map[Place]int{}, NeedsNodes: map[string]int{}}, on: map[string]int{}}
		s.workloads[r] = c
	}
	return c
}

func (s *summarizer) before(r *Result, pod *corev1.Pod) {
	c := s.workload(r.WorkloadOf(pod))
	c.had++
	place, ok := s.places[pod.Spec.NodeName]
	if !ok {
		return
	}
	c.on[pod.Spec.NodeName]++
	c.Before[place]++
	cpu, memory := Requests(pod)
	f := s.fill[place]
	f.Pods, f.CPU, f.Memory = f.Pods+1, f.CPU+cpu, f.Memory+memory
}

func (s *summarizer) after(p simulate.Pod) {
	c := s.workload(p.Workload)
	if p.Verdict == simulate.Gone {
		return
	}
	c.has++
	switch p.Verdict {
	case simulate.Placed:
		c.placed = append(c.placed, p)
	case simulate.NeedsNodes:
		c.NeedsNodes[p.Pool]++
		return
	default:
		c.Waiting = append(c.Waiting, p)
		return
	}
	if p.New {
		c.Restarted++
	}
	place, ok := s.places[p.After]
	if !ok {
		return
	}
	c.After[place]++
	cpu, memory := Requests(p.Pod)
	f := s.fill[place]
	f.PodsAfter, f.CPUAfter, f.MemoryAfter = f.PodsAfter+1, f.CPUAfter+cpu, f.MemoryAfter+memory
}

// summary ends the count: a pod has moved if it is on a node on which there are
// more of the workload's pods than before.
func (s *summarizer) summary() *Summary {
	out := &Summary{}
	for _, place := range slices.SortedFunc(maps.Keys(s.fill), Place.Compare) {
		out.Fill = append(out.Fill, *s.fill[place])
	}
	for _, ref := range slices.SortedFunc(maps.Keys(s.workloads), simulate.Ref.Compare) {
		c := s.workloads[ref]
		c.Added = c.has - c.had
		c.Restarted -= max(0, c.Added)
		c.Restarted = max(0, c.Restarted)
		left := maps.Clone(c.on)
		more := max(0, c.Added)
		for _, p := range c.placed {
			switch {
			case left[p.After] > 0:
				left[p.After]--
			case more > 0:
				more--
			default:
				c.Moved++
				if p.Attempt != nil && p.Attempt.Choice != nil && p.Attempt.Choice.Tied > 0 {
					c.ByTie++
				}
			}
		}
		out.Workloads = append(out.Workloads, c.Workload)
	}
	return out
}

// Requests returns what the pod asks for, in milliCPU and bytes, as the scheduler
// counts it.
func Requests(pod *corev1.Pod) (cpu, memory int64) {
	r := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
	return r.Cpu().MilliValue(), r.Memory().Value()
}
