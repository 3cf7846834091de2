package load

import (
	"maps"
	"slices"

	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// wirePlacement is a Placement on its way from the child to the parent. The
// positions, which outweigh everything else, go apart from it and packed.
type wirePlacement struct {
	Placement *policy.Placement `json:"placement"`
	// Files are the names of the files that positions speak of.
	Files []string `json:"files"`
	// Positions are those of the clusters, pools, kinds, policies and tests, in order.
	Positions []wirePositions `json:"positions"`
}

// wirePositions are the positions of one object: the pointers in order, and for
// each the file's number, line, column and, if the end is known, its line and
// column (else 0, 0).
type wirePositions struct {
	Pointers []string `json:"p"`
	Places   []int    `json:"n"`
}

// numbersPerPlace is how many numbers wirePositions has for one place.
const numbersPerPlace = 5

// allPositions returns the positions of every object, to be read or set.
func allPositions(p *policy.Placement) (all []*policy.Positions) {
	for i := range p.Clusters {
		all = append(all, &p.Clusters[i].Positions)
	}
	for i := range p.Pools {
		all = append(all, &p.Pools[i].Positions)
	}
	for i := range p.Kinds {
		all = append(all, &p.Kinds[i].Positions)
	}
	for i := range p.Policies {
		all = append(all, &p.Policies[i].Positions)
	}
	for i := range p.Tests {
		all = append(all, &p.Tests[i].Positions)
	}
	return all
}

// toWire packs a Placement, which it takes apart. Nil stays nil.
func toWire(p *policy.Placement) *wirePlacement {
	if p == nil {
		return nil
	}
	w := &wirePlacement{Placement: p}
	numbers := map[string]int{}
	for _, positions := range allPositions(p) {
		packed := wirePositions{Pointers: slices.Sorted(maps.Keys(*positions))}
		for _, pointer := range packed.Pointers {
			r := (*positions)[pointer]
			n, seen := numbers[r.Start.File]
			if !seen {
				n = len(w.Files)
				numbers[r.Start.File] = n
				w.Files = append(w.Files, r.Start.File)
			}
			packed.Places = append(packed.Places, n, r.Start.Line, r.Start.Column, r.End.Line, r.End.Column)
		}
		w.Positions = append(w.Positions, packed)
		*positions = nil
	}
	return w
}

// placement is the inverse of toWire.
func (w *wirePlacement) placement() *policy.Placement {
	if w == nil {
		return nil
	}
	all := allPositions(w.Placement)
	for i, packed := range w.Positions[:min(len(w.Positions), len(all))] {
		positions := make(policy.Positions, len(packed.Pointers))
		for j, pointer := range packed.Pointers {
			n := packed.Places[j*numbersPerPlace:]
			r := diag.Range{Start: diag.Pos{File: w.Files[n[0]], Line: n[1], Column: n[2]}}
			if n[3] > 0 {
				r.End = diag.Pos{File: r.Start.File, Line: n[3], Column: n[4]}
			}
			positions[pointer] = r
		}
		*all[i] = positions
	}
	return w.Placement
}
