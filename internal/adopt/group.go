package adopt

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/policy"
)

// draft is a policy in the making.
type draft struct {
	policy  policy.Policy
	phrases []phrase
	// selected says which templates it is for.
	selected
}

// shared is what some templates share: a phrase.
type shared struct {
	phrase
	members []*template
	// sort is that of the first piece, for the order.
	sort sort
}

// compose makes policies of the phrases that are chosen: those that exactly the
// same templates share are one policy, as far as they have room in one.
func (w *work) compose() {
	byKey := map[string]*shared{}
	for _, t := range w.templates {
		if t.left != "" {
			continue
		}
		for _, p := range t.pieces {
			ph := p.phrases[p.choice]
			if ph.key == "" || ph.rank == unsaid {
				continue
			}
			s := byKey[ph.key]
			if s == nil {
				s = &shared{phrase: ph, sort: p.sort}
				byKey[ph.key] = s
			}
			if n := len(s.members); n == 0 || s.members[n-1] != t {
				s.members = append(s.members, t)
			}
		}
	}
	bySet := map[string][]*shared{}
	for _, key := range sortedKeys(byKey) {
		s := byKey[key]
		var set strings.Builder
		for _, t := range s.members {
			fmt.Fprintf(&set, "%06d ", t.id)
		}
		bySet[set.String()] = append(bySet[set.String()], s)
	}
	w.policies = nil
	u := newUniverse(w.templates)
	for _, set := range sortedKeys(bySet) {
		all := bySet[set]
		slices.SortStableFunc(all, func(a, b *shared) int {
			return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(place(a.sort), place(b.sort)), cmp.Compare(a.key, b.key))
		})
		for _, part := range u.choose(all[0].members) {
			w.policies = append(w.policies, draftsOf(part, all)...)
		}
	}
	nameAll(w.policies)
	slices.SortFunc(w.policies, func(a, b *draft) int { return cmp.Compare(a.policy.Name, b.policy.Name) })
}

// sorts are all sorts, in the order in which a policy says them.
var sorts = []sort{
	sortSelector, sortRequired, sortTerms, sortPreferred, sortSpread, sortTogether, sortApart, sortToleration, sortPriority, sortPreemption, sortScheduler, sortGate,
}

func place(s sort) int { return slices.Index(sorts, s) }

// draftsOf makes one policy of the phrases, or more where two want the same place.
func draftsOf(part selected, all []*shared) []*draft {
	var out []*draft
	for _, s := range all {
		if i := slices.IndexFunc(out, func(d *draft) bool { return s.add(&d.policy) }); i >= 0 {
			out[i].phrases = append(out[i].phrases, s.phrase)
			continue
		}
		d := &draft{selected: part, phrases: []phrase{s.phrase}}
		d.policy.Workloads = part.workloads
		s.add(&d.policy)
		out = append(out, d)
	}
	for _, d := range out {
		d.policy.Level = policy.Mandatory
		if !slices.ContainsFunc(d.phrases, func(p phrase) bool { return !p.soft }) {
			d.policy.Level = policy.Default
		}
	}
	return out
}

// raw reports whether the policy has a part that no intent says.
func (d *draft) raw() bool { return d.policy.Raw != nil }
