// Package nodeexpr is the logic of node affinity: expressions over a node's
// labels and its name, in the disjunctive normal form that the API has.
//
// It maps what the API can say (In, NotIn, Exists, DoesNotExist, Gt, Lt on
// labels; In and NotIn on metadata.name) to simplified expressions and back,
// exactly: an operation that the API could not say again is an error, never an
// approximation. The package must not know policies, pools or workloads.
package nodeexpr

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Key is what one requirement speaks of: a label, or with Field set a field of
// the node (the API knows metadata.name alone).
type Key struct {
	Field bool
	Name  string
}

// NodeName is the key of the node's name.
var NodeName = Key{Field: true, Name: "metadata.name"}

// Label returns the key of a node label.
func Label(name string) Key { return Key{Name: name} }

func (k Key) compare(o Key) int {
	switch {
	case k.Field == o.Field:
		return cmp.Compare(k.Name, o.Name)
	case k.Field:
		return 1
	}
	return -1
}

// keyed is a constraint with the key that it is on.
type keyed struct {
	key Key
	constraint
}

// Term is a conjunction: at most one constraint for each key, sorted by key.
// The zero Term holds for every node.
type Term struct {
	parts []keyed
}

// Expr is a disjunction of terms. The zero Expr holds for no node.
type Expr struct {
	terms []Term
}

// True returns the expression that holds for every node.
func True() Expr { return Expr{terms: []Term{{}}} }

// False returns the expression that holds for no node.
func False() Expr { return Expr{} }

// IsTrue reports whether e is known to hold for every node.
func (e Expr) IsTrue() bool {
	return slices.ContainsFunc(e.terms, func(t Term) bool { return len(t.parts) == 0 })
}

// IsFalse reports whether e holds for no node.
func (e Expr) IsFalse() bool { return len(e.terms) == 0 }

// Split returns each of the terms of e as an expression by itself.
func (e Expr) Split() []Expr {
	out := make([]Expr, len(e.terms))
	for i, t := range e.terms {
		out[i] = Expr{terms: []Term{t}}
	}
	return out
}

func single(k Key, c constraint) Expr {
	if c.isFalse() {
		return False()
	}
	if c.isTrue() {
		return True()
	}
	return Expr{terms: []Term{{parts: []keyed{{k, c}}}}}
}

// In returns the expression that the key has one of the values.
func In(k Key, values ...string) Expr { return single(k, inSet(values)) }

// NotIn returns the expression that the key has none of the values, or is absent.
func NotIn(k Key, values ...string) Expr { return single(k, notInSet(values)) }

// Exists returns the expression that the label is there, whatever its value.
func Exists(k Key) Expr { return single(k, constraint{}) }

// Greater returns the expression that the label is an integer above n.
func Greater(k Key, n int64) Expr { return single(k, constraint{gt: &n}) }

// Less returns the expression that the label is an integer below n.
func Less(k Key, n int64) Expr { return single(k, constraint{lt: &n}) }

// Or returns the simplified disjunction.
func Or(exprs ...Expr) Expr {
	var terms []Term
	for _, e := range exprs {
		terms = append(terms, e.terms...)
	}
	return Expr{terms: simplify(terms)}
}

// ErrTooMany is what And and Not return when the result would have more terms
// than their limit.
var ErrTooMany = errors.New("too many terms")

// And returns the simplified conjunction. It returns ErrTooMany if more than
// limit terms come about on the way.
func And(limit int, exprs ...Expr) (Expr, error) {
	product := True()
	for _, e := range exprs {
		if len(product.terms)*len(e.terms) > limit*limit {
			return Expr{}, ErrTooMany
		}
		var terms []Term
		for _, a := range product.terms {
			for _, b := range e.terms {
				if t, ok := a.and(b); ok {
					terms = append(terms, t)
				}
			}
		}
		product = Expr{terms: simplify(terms)}
		if len(product.terms) > limit {
			return Expr{}, ErrTooMany
		}
	}
	return product, nil
}

// and returns the conjunction of two terms, and whether any node can meet it.
func (t Term) and(o Term) (Term, bool) {
	if len(t.parts) == 0 {
		return o, true
	}
	if len(o.parts) == 0 {
		return t, true
	}
	out := make([]keyed, 0, len(t.parts)+len(o.parts))
	i, j := 0, 0
	for i < len(t.parts) || j < len(o.parts) {
		switch {
		case j == len(o.parts) || i < len(t.parts) && t.parts[i].key.compare(o.parts[j].key) < 0:
			out = append(out, t.parts[i])
			i++
		case i == len(t.parts) || t.parts[i].key.compare(o.parts[j].key) > 0:
			out = append(out, o.parts[j])
			j++
		default:
			c := t.parts[i].and(o.parts[j].constraint)
			if c.isFalse() || t.parts[i].key.Field && c.never {
				return Term{}, false
			}
			if !c.isTrue() {
				out = append(out, keyed{t.parts[i].key, c})
			}
			i, j = i+1, j+1
		}
	}
	return Term{parts: out}, true
}

// InexactError says that an expression has no exact negation in the API.
type InexactError struct {
	Key Key
	// Operator is "Gt" or "Lt", Bound the number that it compares with.
	Operator string
	Bound    int64
}

// Error says why: a comparison also fails where the label is no integer.
func (e *InexactError) Error() string {
	return fmt.Sprintf("%q %s %d has no exact negation in node affinity", e.Key.Name, e.Operator, e.Bound)
}

// Not returns the negation. It returns an *InexactError if e compares numbers
// (a comparison also fails for labels that are no integers, which no operator
// says), and ErrTooMany beyond the limit.
func Not(limit int, e Expr) (Expr, error) {
	factors := make([]Expr, len(e.terms))
	for i, t := range e.terms {
		var alternatives []Expr
		for _, p := range t.parts {
			n, err := p.negate()
			if err != nil {
				return Expr{}, err
			}
			alternatives = append(alternatives, n)
		}
		factors[i] = Or(alternatives...)
	}
	return And(limit, factors...)
}

func (p keyed) negate() (Expr, error) {
	switch c := p.constraint; {
	case c.gt != nil:
		return Expr{}, &InexactError{Key: p.key, Operator: "Gt", Bound: *c.gt}
	case c.lt != nil:
		return Expr{}, &InexactError{Key: p.key, Operator: "Lt", Bound: *c.lt}
	case c.never:
		return Exists(p.key), nil
	case c.in != nil:
		return NotIn(p.key, c.in...), nil
	case c.absent:
		return In(p.key, c.notIn...), nil
	case len(c.notIn) > 0:
		return Or(In(p.key, c.notIn...), single(p.key, constraint{absent: true, never: true})), nil
	}
	return single(p.key, constraint{absent: true, never: true}), nil
}

// Disjoint returns an expression that holds for the same nodes as e and no two
// of whose terms hold for one node, so that weights given to its terms never
// add up. Its errors are those of Not.
func Disjoint(limit int, e Expr) (Expr, error) {
	var out []Term
	for _, t := range e.terms {
		rest := []Term{t}
		for _, earlier := range out {
			var next []Term
			for _, r := range rest {
				pieces, err := r.minus(earlier)
				if err != nil {
					return Expr{}, err
				}
				next = append(next, pieces...)
			}
			if rest = next; len(rest)+len(out) > limit {
				return Expr{}, ErrTooMany
			}
		}
		out = append(out, rest...)
	}
	return Expr{terms: out}, nil
}

// minus returns disjoint terms for the nodes that meet t and not o.
func (t Term) minus(o Term) ([]Term, error) {
	if _, ok := t.and(o); !ok {
		return []Term{t}, nil
	}
	var out []Term
	for _, p := range o.parts {
		n, err := p.negate()
		if err != nil {
			return nil, err
		}
		for _, alternative := range n.terms {
			if piece, ok := t.and(alternative); ok {
				out = append(out, piece)
			}
		}
		t, _ = t.and(Term{parts: []keyed{p}})
	}
	return out, nil
}

// Implies reports whether every node that meets e also meets o. Where numbers
// are compared it may miss that, and report false.
func Implies(e, o Expr) bool {
	return !slices.ContainsFunc(e.terms, func(t Term) bool { return !t.within(o) })
}

func (t Term) within(o Expr) bool {
	if slices.ContainsFunc(o.terms, t.impliesTerm) {
		return true
	}
	rest := []Term{t}
	for _, earlier := range o.terms {
		var next []Term
		for _, r := range rest {
			pieces, err := r.minus(earlier)
			if err != nil {
				return false
			}
			next = append(next, pieces...)
		}
		if rest = next; len(rest) == 0 {
			return true
		}
		if len(rest) > 256 {
			return false
		}
	}
	return false
}

func (t Term) impliesTerm(o Term) bool {
	both, ok := t.and(o)
	return ok && both.equal(t)
}

// Equal reports whether two expressions have the same terms.
func Equal(a, b Expr) bool {
	return slices.EqualFunc(a.terms, b.terms, Term.equal)
}

func (t Term) equal(o Term) bool {
	return slices.EqualFunc(t.parts, o.parts, func(a, b keyed) bool { return a.key == b.key && a.constraint.equal(b.constraint) })
}

func (t Term) get(k Key) (constraint, bool) {
	for _, p := range t.parts {
		if p.key == k {
			return p.constraint, true
		}
	}
	return constraint{}, false
}

// Matches reports whether a node with the labels and the name meets e.
func (e Expr) Matches(labels map[string]string, name string) bool {
	return slices.ContainsFunc(e.terms, func(t Term) bool {
		for _, p := range t.parts {
			value, ok := labels[p.key.Name]
			if p.key.Field {
				value, ok = name, true
			}
			if !p.holds(value, ok) {
				return false
			}
		}
		return true
	})
}

// String writes e for people: `zone in (a, b) and class = gpu, or ...`.
func (e Expr) String() string {
	if e.IsTrue() {
		return "any node"
	}
	if e.IsFalse() {
		return "no node"
	}
	terms := make([]string, len(e.terms))
	for i, t := range e.terms {
		var parts []string
		for _, p := range t.parts {
			parts = append(parts, p.describe(p.key.Name))
		}
		terms[i] = strings.Join(parts, " and ")
	}
	return strings.Join(terms, ", or ")
}
