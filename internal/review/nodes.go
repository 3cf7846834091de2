package review

import (
	"cmp"
	"maps"
	"slices"

	"github.com/kubectl-sched/kubectl-sched/internal/preview"
)

// load is what the pods of a node ask for.
type load struct {
	pods        int
	cpu, memory int64
}

// loads returns what is asked for on each node.
func loads(r *preview.Result) map[string]load {
	out := map[string]load{}
	for _, p := range r.Pods {
		if p.After == "" {
			continue
		}
		cpu, memory := preview.Requests(p.Pod)
		l := out[p.After]
		out[p.After] = load{l.pods + 1, l.cpu + cpu, l.memory + memory}
	}
	return out
}

// picture returns each node of the head with what is on it, by both.
func picture(head Simulated, before, after map[string]load) []Node {
	out := make([]Node, 0, len(head.Result.Nodes))
	for _, n := range head.Result.Nodes {
		b, h := before[n.Name], after[n.Name]
		out = append(out, Node{
			Name: n.Name, Place: head.Pools.Place(n), Pods: Count{b.pods, h.pods},
			CPU: Share{b.cpu, h.cpu, n.Status.Allocatable.Cpu().MilliValue()},
		})
	}
	slices.SortFunc(out, func(a, b Node) int { return cmp.Or(a.Place.Compare(b.Place), cmp.Compare(a.Name, b.Name)) })
	return out
}

// fill returns how full the groups of the head's nodes are, by both.
func fill(head Simulated, before, after map[string]load) []Fill {
	groups := map[preview.Place]*Fill{}
	for _, n := range head.Result.Nodes {
		place := head.Pools.Place(n)
		f := groups[place]
		if f == nil {
			f = &Fill{Place: place}
			groups[place] = f
		}
		b, h := before[n.Name], after[n.Name]
		f.Nodes++
		f.Pods = Count{f.Pods.Before + b.pods, f.Pods.After + h.pods}
		f.CPU = f.CPU.plus(b.cpu, h.cpu, n.Status.Allocatable.Cpu().MilliValue())
		f.Memory = f.Memory.plus(b.memory, h.memory, n.Status.Allocatable.Memory().Value())
	}
	out := make([]Fill, 0, len(groups))
	for _, place := range slices.SortedFunc(maps.Keys(groups), preview.Place.Compare) {
		out = append(out, *groups[place])
	}
	return out
}

func (s Share) plus(before, after, total int64) Share {
	return Share{s.Before + before, s.After + after, s.Total + total}
}
