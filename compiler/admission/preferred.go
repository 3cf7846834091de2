package admission

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/kubectl-sched/kubectl-sched/compiler/nodeexpr"
)

// preferredAsked defines the preferred terms that are asked for. An element of the
// lists is the number of a term and its weight.
func (p *program) preferredAsked(s Set) {
	if len(s.Preferred) == 0 {
		return
	}
	var weights []entry
	var terms []string
	var api []any
	for i, t := range s.Preferred {
		for _, w := range t.Weights {
			weights = append(weights, entry{w.When, []string{fmt.Sprintf("[%d, %d]", i, w.Weight)}})
		}
		var rs []string
		for _, r := range nodeexpr.Requirements(t.Term) {
			rs = append(rs, requirement(r))
		}
		terms = append(terms, list(rs))
		api = append(api, asTerm(nodeexpr.Requirements(t.Term)))
	}
	p.define("preferences", "%s", lines(terms))
	p.constants("apiPreferences", api)
	if perCell, ok := s.preferredPerCell(p); ok {
		values := make([]string, len(perCell))
		for n, list := range perCell {
			rows := make([][]int, len(list))
			for i, w := range list {
				rows[i] = []int{w.term, w.weight}
			}
			values[n] = numberRows(rows)
		}
		p.define("preferredAsked", "%s", p.byCell("preferredOf", values, "[[0, 0]].filter(w, false)"))
		return
	}
	p.define("preferredWishes", "%s", p.gathered("preferred", weights))
	p.define("preferredAsked", `variables.preferredWishes.size() < 2 ? variables.preferredWishes
  : variables.preferredWishes.map(w, w[0]).distinct().sort().map(i, [i, [100, variables.preferredWishes.filter(w, w[0] == i).map(w, w[1]).sum()].min()])`)
}

// weighted is the number of a preferred term and the weight that it gets.
type weighted struct{ term, weight int }

// preferredPerCell returns the preferred terms of each cell, by their numbers; false
// where they depend on more than the cell.
func (s Set) preferredPerCell(p *program) ([][]weighted, bool) {
	out := make([][]weighted, len(p.cells))
	for i, t := range s.Preferred {
		for _, w := range t.Weights {
			if (When{w.When}).depends() {
				return nil, false
			}
			for n, c := range p.cells {
				if !slices.Contains(c.policies, p.group[w.When.Policy]) {
					continue
				}
				if last := len(out[n]) - 1; last < 0 || out[n][last].term != i {
					out[n] = append(out[n], weighted{term: i})
				}
				of := &out[n][len(out[n])-1]
				of.weight = min(100, of.weight+int(w.Weight))
			}
		}
	}
	return out, p.cells != nil
}

// heaviestFirst returns the terms in the order in which a pod gets them.
func heaviestFirst(list []weighted) []weighted {
	return slices.SortedStableFunc(slices.Values(list), func(a, b weighted) int { return cmp.Compare(b.weight, a.weight) })
}

// preferredTerms returns the expression of the terms that the list holds, as the
// API has them, the heaviest first.
func (s Set) preferredTerms(list string) string {
	return fmt.Sprintf(`%s.sortBy(w, w[0] - w[1] * %d).map(w, {"weight": dyn(w[1]), "preference": dyn(variables.apiPreferences[w[0]])})`, list, len(s.Preferred))
}

// preferred adds preferred terms to the node affinity, and raises weights.
func (p *program) preferred(s Set) {
	if len(s.Preferred) == 0 {
		return
	}
	p.define("preferredOwn", `variables.spec.?affinity.?nodeAffinity.?preferredDuringSchedulingIgnoredDuringExecution.orValue([])`)
	p.define("preferredOwnTerms", "variables.preferredOwn.map(o, o.preference).map(t,\n    %s)", termRequirements)
	p.define("preferredNow", `variables.preferredOwn.transformList(n, o,
    ([int(o.weight)] + variables.preferredAsked.filter(w, sets.equivalent(variables.preferredOwnTerms[n], variables.preferences[w[0]])).map(w, w[1])).max())`)
	p.define("preferredAdded", `variables.preferredAsked.filter(w, !variables.preferredOwnTerms.exists(o, sets.equivalent(o, variables.preferences[w[0]])))`)
	p.define("preferredTerms", "%s", s.preferredTerms("variables.preferredAdded"))
	p.weighted("preferred", "affinity", "nodeAffinity")
}
