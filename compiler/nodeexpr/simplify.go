package nodeexpr

import "slices"

// simplify drops the terms that others imply, and joins terms that differ only
// in the set of values of one key. The first of equal terms keeps its place.
func simplify(terms []Term) []Term {
	terms = absorb(terms)
	for {
		i, j, joined, ok := findJoin(terms)
		if !ok {
			return terms
		}
		next := slices.Clone(terms)
		next[i] = joined
		terms = absorb(slices.Delete(next, j, j+1))
	}
}

// absorb drops each term that another one implies.
func absorb(terms []Term) []Term {
	if len(terms) < 2 {
		return terms
	}
	var out []Term
	for i, t := range terms {
		absorbed := false
		for j, o := range terms {
			if i == j || !t.impliesTerm(o) {
				continue
			}
			// Of two equal terms the first one stays.
			if !o.impliesTerm(t) || j < i {
				absorbed = true
				break
			}
		}
		if !absorbed {
			out = append(out, t)
		}
	}
	return out
}

// findJoin finds the first two terms that are one term but for the sets of
// values of one key.
func findJoin(terms []Term) (i, j int, joined Term, ok bool) {
	for i := range terms {
		for j := i + 1; j < len(terms); j++ {
			if joined, ok := terms[i].join(terms[j]); ok {
				return i, j, joined, true
			}
		}
	}
	return 0, 0, Term{}, false
}

func (t Term) join(o Term) (Term, bool) {
	if len(t.parts) != len(o.parts) {
		return Term{}, false
	}
	differs := -1
	for n := range t.parts {
		a, b := t.parts[n], o.parts[n]
		if a.key != b.key {
			return Term{}, false
		}
		if a.constraint.equal(b.constraint) {
			continue
		}
		if differs >= 0 || a.in == nil || b.in == nil {
			return Term{}, false
		}
		differs = n
	}
	if differs < 0 {
		return Term{}, false
	}
	parts := slices.Clone(t.parts)
	parts[differs].constraint = constraint{in: union(t.parts[differs].in, o.parts[differs].in)}
	return Term{parts: parts}, true
}
