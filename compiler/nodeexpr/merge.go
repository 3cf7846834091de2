package nodeexpr

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Table is several expressions, each of which must hold, prepared to be merged
// literally into the terms of a manifest: nothing is intersected, and what a
// term says already is not said again. Requirements are told by their place in
// the table, so that the merging needs no more than sets of numbers, and an
// admission policy can do it as well.
//
// The rule, for each term of the manifest (or one empty term where it has none;
// an empty term in a manifest holds for no node and stays as it is):
//
//  1. Of the requirements in expressions of one alternative, those are added
//     that no requirement of the term, no label of the nodeSelector and no other
//     of these requirements implies.
//  2. Then, expression by expression in the order of the table: where some
//     alternative is met already, nothing happens. Otherwise the term is taken
//     once for each alternative, with those of its requirements that are not met.
//
// Merging again changes nothing, because each term then meets an alternative of
// each expression.
type Table struct {
	// Requirements are all that come up, each once, sorted by key, operator and
	// values.
	Requirements []Requirement
	// Implied lists for each requirement those that it implies, itself included.
	Implied [][]int
	// Expressions are the different ones of those given, but for those that hold
	// for every node: first those of one alternative, then by the number of
	// alternatives.
	Expressions []TableExpression
}

// TableExpression is an expression of a Table.
type TableExpression struct {
	// Alternatives are lists of places in Table.Requirements.
	Alternatives [][]int
	// Given are the places of the expression among those that the table was made
	// of.
	Given []int
}

// NewTable returns the table of the expressions.
func NewTable(exprs []Expr) *Table {
	t := &Table{}
	terms := make([][][]Requirement, len(exprs))
	for i, e := range exprs {
		for _, term := range e.Terms() {
			rs := Requirements(term)
			terms[i] = append(terms[i], rs)
			t.Requirements = append(t.Requirements, rs...)
		}
	}
	slices.SortFunc(t.Requirements, Requirement.compare)
	t.Requirements = slices.CompactFunc(t.Requirements, func(a, b Requirement) bool { return a.compare(b) == 0 })
	t.Implied = make([][]int, len(t.Requirements))
	for i, r := range t.Requirements {
		for j, o := range t.Requirements {
			if r.Implies(o) {
				t.Implied[i] = append(t.Implied[i], j)
			}
		}
	}
	byText := map[string]*TableExpression{}
	for i, e := range exprs {
		if e.IsTrue() {
			continue
		}
		x := TableExpression{Given: []int{i}}
		for _, rs := range terms[i] {
			x.Alternatives = append(x.Alternatives, t.places(rs))
		}
		slices.SortFunc(x.Alternatives, slices.Compare[[]int])
		if same, ok := byText[x.text()]; ok {
			same.Given = append(same.Given, i)
			continue
		}
		byText[x.text()] = &x
	}
	for _, text := range slices.SortedFunc(maps.Keys(byText), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(byText[a].Alternatives), len(byText[b].Alternatives)), slices.CompareFunc(byText[a].Alternatives, byText[b].Alternatives, slices.Compare[[]int]))
	}) {
		t.Expressions = append(t.Expressions, *byText[text])
	}
	return t
}

// text is a key by which equal expressions are found.
func (x TableExpression) text() string {
	var b strings.Builder
	for _, a := range x.Alternatives {
		for _, i := range a {
			b.WriteString(strconv.Itoa(i) + " ")
		}
		b.WriteByte(';')
	}
	return b.String()
}

// places returns where the requirements are in the table, in order.
func (t *Table) places(rs []Requirement) []int {
	var out []int
	for _, r := range rs {
		if i, ok := slices.BinarySearchFunc(t.Requirements, r, Requirement.compare); ok {
			out = append(out, i)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// partial is a term while it grows.
type partial struct {
	// own is the manifest's term.
	own corev1.NodeSelectorTerm
	// met are the requirements that it meets, added those that are not its own.
	met   map[int]bool
	added []int
}

func (t *Table) start(own corev1.NodeSelectorTerm, nodeSelector map[string]string) partial {
	p := partial{own: own, met: map[int]bool{}}
	has := Requirements(own)
	for k, v := range nodeSelector {
		has = append(has, Requirement{Label(k), corev1.NodeSelectorOpIn, []string{v}})
	}
	for i, r := range t.Requirements {
		if slices.ContainsFunc(has, func(h Requirement) bool { return h.Implies(r) }) {
			p.met[i] = true
		}
	}
	return p
}

// meets reports whether some alternative is met.
func (p partial) meets(x TableExpression) bool {
	return slices.ContainsFunc(x.Alternatives, func(a []int) bool {
		return !slices.ContainsFunc(a, func(i int) bool { return !p.met[i] })
	})
}

// with returns the term with those of the requirements that are not met.
func (t *Table) with(p partial, places []int) partial {
	out := partial{own: p.own, met: maps.Clone(p.met), added: slices.Clone(p.added)}
	for _, i := range places {
		if p.met[i] {
			continue
		}
		out.added = append(out.added, i)
		for _, j := range t.Implied[i] {
			out.met[j] = true
		}
	}
	return out
}

// api returns the term as the API has it.
func (t *Table) api(p partial) corev1.NodeSelectorTerm {
	out := *p.own.DeepCopy()
	for _, i := range p.added {
		if r := t.Requirements[i]; r.Key.Field {
			out.MatchFields = append(out.MatchFields, r.api())
		} else {
			out.MatchExpressions = append(out.MatchExpressions, r.api())
		}
	}
	return out
}

// minimal returns the requirements of the expressions with one alternative
// without those that others of them imply.
func (t *Table) minimal() []int {
	var all []int
	for _, x := range t.Expressions {
		if len(x.Alternatives) == 1 {
			all = append(all, x.Alternatives[0]...)
		}
	}
	slices.Sort(all)
	return t.Unimplied(slices.Compact(all))
}

// Unimplied returns the requirements of the list that no other one of it implies.
func (t *Table) Unimplied(list []int) []int {
	return slices.DeleteFunc(slices.Clone(list), func(i int) bool {
		return slices.ContainsFunc(list, func(j int) bool { return j != i && slices.Contains(t.Implied[j], i) })
	})
}

// Merge returns the manifest's terms (nil for none) together with all
// expressions, by the rule of the table. It returns ErrTooMany for more terms
// than limit, and the terms as they were if they say all of it.
func (t *Table) Merge(own []corev1.NodeSelectorTerm, nodeSelector map[string]string, limit int) ([]corev1.NodeSelectorTerm, error) {
	start := own
	if len(own) == 0 {
		start = []corev1.NodeSelectorTerm{{}}
	}
	minimal := t.minimal()
	var out []corev1.NodeSelectorTerm
	for _, term := range start {
		if len(own) > 0 && isEmpty(term) {
			out = append(out, term)
			continue
		}
		grown := []partial{t.with(t.start(term, nodeSelector), minimal)}
		for _, x := range t.Expressions {
			if len(x.Alternatives) == 1 {
				continue
			}
			var next []partial
			for _, p := range grown {
				if p.meets(x) {
					next = append(next, p)
					continue
				}
				for _, a := range x.Alternatives {
					next = append(next, t.with(p, a))
				}
			}
			if grown = next; len(grown)+len(out) > limit {
				return nil, ErrTooMany
			}
		}
		for _, p := range grown {
			if len(own) == 0 && len(p.added) == 0 {
				return own, nil
			}
			out = append(out, t.api(p))
		}
	}
	return out, nil
}

// Unmet reports for each expression of the table whether some term of the
// manifest does not say it.
func (t *Table) Unmet(own []corev1.NodeSelectorTerm, nodeSelector map[string]string) []bool {
	start := own
	if len(own) == 0 {
		start = []corev1.NodeSelectorTerm{{}}
	}
	out := make([]bool, len(t.Expressions))
	for _, term := range start {
		if len(own) > 0 && isEmpty(term) {
			continue
		}
		p := t.start(term, nodeSelector)
		for i, x := range t.Expressions {
			out[i] = out[i] || !p.meets(x)
		}
	}
	return out
}

// isEmpty reports whether a term of a manifest has no requirements; the API
// matches such a term with no node.
func isEmpty(t corev1.NodeSelectorTerm) bool {
	return len(t.MatchExpressions)+len(t.MatchFields) == 0
}
