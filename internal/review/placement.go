package review

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/kubectl-sched/kubectl-sched/internal/preview"
	"github.com/kubectl-sched/kubectl-sched/internal/simulate"
)

// Simulated is what was simulated of one side. Both sides start from the same snapshot
// and have the same seed.
type Simulated struct {
	Result *preview.Result
	Pools  preview.Pools
}

// Placements returns what becomes of the pods with the head, compared with the base.
// The head's result must have been made with preview.Request.Ties.
func Placements(base, head Simulated, places Places) *Placement {
	s := head.Result.Request.Snapshot
	loadBefore, loadAfter := loads(base.Result), loads(head.Result)
	p := &Placement{
		Cluster: s.Cluster, Taken: s.Taken, Seed: head.Result.Request.Seed, Nodes: len(s.Nodes), Pods: len(s.Pods),
		Evicted:     Count{len(base.Result.Evicted), len(head.Result.Evicted)},
		Fill:        fill(head, loadBefore, loadAfter),
		Picture:     picture(head, loadBefore, loadAfter),
		Assumptions: assumptions(base, head),
		Stuck:       stuck(base, head),
	}
	before, after := byWorkload(base.Result), byWorkload(head.Result)
	placeOf := map[string]preview.Place{}
	for _, n := range head.Result.Nodes {
		placeOf[n.Name] = head.Pools.Place(n)
	}
	refs := map[simulate.Ref]bool{}
	for r := range before {
		refs[r] = true
	}
	for r := range after {
		refs[r] = true
	}
	spread := newSpread(head.Result.Nodes)
	for _, ref := range slices.SortedFunc(maps.Keys(refs), simulate.Ref.Compare) {
		b, h := before[ref], after[ref]
		moves := paired(b.placed, h.placed)
		if len(moves) > 0 || len(b.placed) != len(h.placed) {
			m := Move{Workload: ref.String(), Pods: moves, Before: where(b.placed, placeOf), After: where(h.placed, placeOf)}
			for _, pod := range moves {
				if pod.Tie {
					m.ByTie++
				} else {
					m.Moved++
				}
			}
			p.Moved, p.ByTie = p.Moved+m.Moved, p.ByTie+m.ByTie
			p.Moves = append(p.Moves, m)
			p.Skews = append(p.Skews, spread.changes(ref.String(), b.placed, h.placed)...)
		}
		more := h.count() - b.count()
		p.Added, p.Removed = p.Added+max(0, more), p.Removed+max(0, -more)
		p.Pending.Before += len(b.waiting)
		p.Pending.After += len(h.waiting)
		p.NeedsNodes.Before += len(b.needs)
		p.NeedsNodes.After += len(h.needs)
		p.Waiting = append(p.Waiting, waiting(ref, b, h, head, places)...)
	}
	return p
}

// pods are those of a workload, by what became of them.
type pods struct{ placed, waiting, needs []simulate.Pod }

func (p pods) count() int { return len(p.placed) + len(p.waiting) + len(p.needs) }

func byWorkload(r *preview.Result) map[simulate.Ref]pods {
	out := map[simulate.Ref]pods{}
	for _, p := range r.Pods {
		of := out[p.Workload]
		switch p.Verdict {
		case simulate.Gone:
		case simulate.Placed:
			of.placed = append(of.placed, p)
		case simulate.NeedsNodes:
			of.needs = append(of.needs, p)
		default:
			of.waiting = append(of.waiting, p)
		}
		out[p.Workload] = of
	}
	return out
}

// paired returns the pods that are on another node. Pods of a workload are alike, so
// one has moved if its node has more of them than with the base, from a node that has
// fewer. Where the head's scheduler found both as good, a tie moved it and nothing
// else; those are paired first.
func paired(base, head []simulate.Pod) []PodMove {
	left := map[string][]simulate.Pod{}
	for _, p := range base {
		left[p.After] = append(left[p.After], p)
	}
	var came []simulate.Pod
	for _, p := range head {
		if on := left[p.After]; len(on) > 0 {
			left[p.After] = on[:len(on)-1]
			continue
		}
		came = append(came, p)
	}
	var went []simulate.Pod
	for _, node := range slices.Sorted(maps.Keys(left)) {
		went = append(went, left[node]...)
	}
	var moves []PodMove
	take := func(i int, to simulate.Pod, tie bool) {
		moves = append(moves, PodMove{Pod: went[i].Pod.Name, From: went[i].After, To: to.After, Tie: tie})
		went = slices.Delete(went, i, i+1)
	}
	var rest []simulate.Pod
	for _, p := range came {
		i := slices.IndexFunc(went, func(from simulate.Pod) bool { return tied(p, from.After) })
		if i < 0 {
			rest = append(rest, p)
			continue
		}
		take(i, p, true)
	}
	for _, p := range rest {
		if len(went) == 0 {
			break // there are more pods than before, and these did not move
		}
		take(0, p, false)
	}
	slices.SortFunc(moves, func(a, b PodMove) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.Pod, b.Pod))
	})
	return moves
}

// tied reports whether the node would have been as good for the pod as its own.
func tied(p simulate.Pod, node string) bool {
	return p.Attempt != nil && p.Attempt.Choice != nil && slices.Contains(p.Attempt.Choice.TiedWith, node)
}

// where says how many pods are in which group of nodes.
func where(list []simulate.Pod, places map[string]preview.Place) []Where {
	count := map[preview.Place]int{}
	for _, p := range list {
		count[places[p.After]]++
	}
	out := make([]Where, 0, len(count))
	for _, place := range slices.SortedFunc(maps.Keys(count), preview.Place.Compare) {
		out = append(out, Where{place, count[place]})
	}
	return out
}

// waiting returns the pods that wait with the head and, as many and for the same
// reason, not with the base.
func waiting(ref simulate.Ref, base, head pods, s Simulated, places Places) []Waiting {
	groups := map[string]*Waiting{}
	had := map[string]int{}
	for _, p := range slices.Concat(base.waiting, base.needs) {
		had[reason(p)]++
	}
	for _, p := range slices.Concat(head.waiting, head.needs) {
		key := reason(p)
		if groups[key] == nil {
			w := &Waiting{Workload: ref.String(), Verdict: string(p.Verdict), Pool: p.Pool}
			if p.Attempt != nil && p.Verdict != simulate.NeedsNodes {
				w.Message = p.Attempt.Message
				for _, c := range s.Result.Causes(p, s.Pools) {
					w.Causes = append(w.Causes, Cause{c.Reason, c.Plugin, c.Count(), relocated(c.Origins, places.Head)})
				}
			}
			groups[key] = w
		}
		groups[key].Pods = append(groups[key].Pods, p.Pod.Name)
	}
	var out []Waiting
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		if len(groups[key].Pods) > had[key] {
			out = append(out, *groups[key])
		}
	}
	return out
}

// reason tells why a pod waits, to compare with others.
func reason(p simulate.Pod) string {
	text := string(p.Verdict) + "\x00" + p.Pool
	if p.Attempt != nil {
		text += "\x00" + p.Attempt.Message
	}
	return text
}

// stuck returns what comes to a halt with the head alone.
func stuck(base, head Simulated) []string {
	had := map[simulate.Ref]bool{}
	for _, s := range base.Result.Stuck {
		had[s.Workload] = true
	}
	var out []string
	for _, s := range head.Result.Stuck {
		if !had[s.Workload] {
			out = append(out, fmt.Sprintf("%s: %d of %d new pods are placed, and %d old ones are left", s.Workload, s.Placed, s.Wanted, s.Old))
		}
	}
	slices.Sort(out)
	return out
}

// assumptions are those of both sides.
func assumptions(base, head Simulated) []string {
	all := slices.Concat(base.Result.AllAssumptions(), head.Result.AllAssumptions())
	slices.Sort(all)
	return slices.Compact(all)
}

// Count has the pods counted that are there with the base, in the place of what the
// manifests say.
func (r *Restarts) Count(base Simulated) {
	r.Pods = 0
	for _, p := range base.Result.Pods {
		if p.Verdict != simulate.Gone && slices.Contains(r.Workloads, p.Workload.String()) {
			r.Pods++
		}
	}
}
