package admission

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"

	"github.com/kubectl-sched/kubectl-sched/compiler/cel"
)

// spreadsOfCells is spreadWishes where the pod's cell says which constraints are
// asked for, and how they join, but for whom they count; false where it does not.
func (p *program) spreadsOfCells(s Set) bool {
	perCell, joined, ok := s.spreadsPerCell(p)
	if !ok {
		return false
	}
	const asFound = "-1"
	var owns, others []int
	var keys, strengths, skews, domains, selectors, mine, plains []string
	for i, w := range joined {
		selector := "dyn({})"
		if w.Subject.Own {
			owns = append(owns, i)
		} else {
			others = append(others, i)
			text, _ := literal(asJSON(w.Subject.Selector))
			selector = "dyn(" + text + ")"
		}
		strength := "ScheduleAnyway"
		if w.Require {
			strength = "DoNotSchedule"
		}
		keys, strengths, skews = append(keys, cel.Quote(w.Key)), append(strengths, cel.Quote(strength)), append(skews, fmt.Sprint(w.MaxSkew))
		mine, plains, selectors = append(mine, strconv.FormatBool(w.Subject.Own)), append(plains, strconv.FormatBool(w.Plain)), append(selectors, selector)
		least := "0" // none
		switch {
		case w.Require && w.MinDomains > 0:
			least = fmt.Sprint(w.MinDomains)
		case w.Require && !w.Plain:
			least = asFound
		}
		domains = append(domains, least)
	}
	chosen := "spreadsChosen"
	if len(owns) > 0 {
		chosen = "spreadsOfCell"
	}
	p.defineNumbers(chosen, perCell)
	if len(owns) > 0 {
		without := none
		if len(others) > 0 {
			without = "variables.spreadsOfCell.filter(i, i in " + numbers(others) + ")"
		}
		p.define("spreadsChosen", "variables.spreadsOfCell.size() == 0 || %s ? variables.spreadsOfCell : %s", hasOwn, without)
	}
	selector, keysNow := p.numbered("spreadSelectors", selectors), "dyn([])"
	if len(owns) > 0 {
		own := p.numbered("spreadOwns", mine)
		selector = "(" + cel.If(own, "dyn(variables.ownSelector)", selector) + ")"
		keysNow = "(" + cel.If(own, "dyn(variables.ownMatchKeys)", keysNow) + ")"
	}
	plain := p.numbered("spreadPlains", plains)
	added := ""
	if plain != "true" {
		added = fmt.Sprintf(`, ?"matchLabelKeys": optional.ofNonZeroValue(%s), ?"nodeTaintsPolicy": %s`, cel.If(plain, "dyn([])", keysNow), cel.If(plain, "optional.none()", `optional.of(dyn("Honor"))`))
	}
	topologyKey, least := p.numbered("spreadKeys", keys), p.numbered("spreadDomains", domains)
	if slices.Contains(domains, asFound) {
		// A table cannot hold what is looked up itself.
		found := p.domains(s)(topologyKey)
		if least == asFound {
			least = found
		} else {
			least = fmt.Sprintf("(%[1]s == %[2]s ? %[3]s : %[1]s)", least, asFound, found)
		}
	}
	p.define("spreadWishes", `variables.spreadsChosen.map(i, {
  "maxSkew": dyn(%s), "topologyKey": dyn(%s), "whenUnsatisfiable": dyn(%s), "labelSelector": %s%s, ?"minDomains": optional.ofNonZeroValue(dyn(%s))
})`, p.numbered("spreadSkews", skews), topologyKey, p.numbered("spreadStrengths", strengths), selector, added, least)
	return true
}

// spreadsPerCell returns the constraints of each cell, joined and in order, as
// places in a list of them; false where more than the cell decides. Those on one key
// join if all of them count the pods of the workload; whether any others count the
// same is left to the API server.
func (s Set) spreadsPerCell(p *program) (perCell [][]int, joined []Spread, ok bool) {
	whens := make([]When, len(s.Spreads))
	for i, w := range s.Spreads {
		whens[i] = w.When
	}
	asked, ok := p.perCell(whens, itself)
	if !ok {
		return nil, nil, false
	}
	perCell = make([][]int, len(asked))
	for n, list := range asked {
		byKey := map[string]Spread{}
		for _, i := range list {
			w := s.Spreads[i]
			w.When = nil
			if before, ok := byKey[w.Key]; ok {
				if !w.Subject.Own || !before.Subject.Own {
					return nil, nil, false
				}
				w.Require, w.Plain = w.Require || before.Require, w.Plain && before.Plain
				w.MaxSkew, w.MinDomains = min(w.MaxSkew, before.MaxSkew), max(w.MinDomains, before.MinDomains)
			}
			byKey[w.Key] = w
		}
		for _, w := range slices.SortedFunc(maps.Values(byKey), func(a, b Spread) int { return cmp.Compare(a.Key, b.Key) }) {
			at := slices.IndexFunc(joined, func(o Spread) bool { return reflect.DeepEqual(o, w) })
			if at < 0 {
				at = len(joined)
				joined = append(joined, w)
			}
			perCell[n] = append(perCell[n], at)
		}
	}
	return perCell, joined, len(joined) > 0
}
