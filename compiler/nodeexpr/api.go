package nodeexpr

import (
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// FromLabels returns the expression of a nodeSelector: every label has its value.
func FromLabels(selector map[string]string) Expr {
	var parts []keyed
	for k, v := range selector {
		parts = append(parts, keyed{Label(k), inSet([]string{v})})
	}
	slices.SortFunc(parts, func(a, b keyed) int { return a.key.compare(b.key) })
	return Expr{terms: []Term{{parts: parts}}}
}

// FromTerm returns the expression of one term of the API. A term without
// requirements holds for no node. An operator, a value or a field that the API
// does not have is an error.
func FromTerm(t corev1.NodeSelectorTerm) (Expr, error) {
	if len(t.MatchExpressions) == 0 && len(t.MatchFields) == 0 {
		return False(), nil
	}
	term := Term{}
	for _, list := range []struct {
		requirements []corev1.NodeSelectorRequirement
		field        bool
	}{{t.MatchExpressions, false}, {t.MatchFields, true}} {
		for _, r := range list.requirements {
			c, err := fromRequirement(r, list.field)
			if err != nil {
				return Expr{}, err
			}
			var ok bool
			if term, ok = term.and(Term{parts: []keyed{{Key{Field: list.field, Name: r.Key}, c}}}); !ok {
				return False(), nil
			}
		}
	}
	return Expr{terms: []Term{term}}, nil
}

// FromSelector returns the expression of a required node affinity; nil holds
// for every node. Its errors are those of FromTerm, with the index of the term.
func FromSelector(s *corev1.NodeSelector) (Expr, error) {
	if s == nil {
		return True(), nil
	}
	var terms []Term
	for i, t := range s.NodeSelectorTerms {
		e, err := FromTerm(t)
		if err != nil {
			return Expr{}, fmt.Errorf("nodeSelectorTerms[%d]: %w", i, err)
		}
		terms = append(terms, e.terms...)
	}
	return Expr{terms: simplify(terms)}, nil
}

func fromRequirement(r corev1.NodeSelectorRequirement, field bool) (constraint, error) {
	if field {
		if r.Key != NodeName.Name {
			return constraint{}, fmt.Errorf("matchFields knows %q alone, not %q", NodeName.Name, r.Key)
		}
		if len(r.Values) != 1 {
			return constraint{}, fmt.Errorf("matchFields takes exactly one value, not %d", len(r.Values))
		}
	}
	switch r.Operator {
	case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		if len(r.Values) == 0 {
			return constraint{}, fmt.Errorf("%q: operator %s needs a value", r.Key, r.Operator)
		}
		if r.Operator == corev1.NodeSelectorOpIn {
			return inSet(r.Values), nil
		}
		return notInSet(r.Values), nil
	case corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
		if field {
			return constraint{}, fmt.Errorf("matchFields knows the operators In and NotIn alone, not %q", r.Operator)
		}
		if len(r.Values) != 0 {
			return constraint{}, fmt.Errorf("%q: operator %s takes no value", r.Key, r.Operator)
		}
		absent := r.Operator == corev1.NodeSelectorOpDoesNotExist
		return constraint{absent: absent, never: absent}, nil
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
		if field {
			return constraint{}, fmt.Errorf("matchFields knows the operators In and NotIn alone, not %q", r.Operator)
		}
		if len(r.Values) != 1 {
			return constraint{}, fmt.Errorf("%q: operator %s needs exactly one value", r.Key, r.Operator)
		}
		n, err := strconv.ParseInt(r.Values[0], 10, 64)
		if err != nil {
			return constraint{}, fmt.Errorf("%q: operator %s needs an integer, not %q", r.Key, r.Operator, r.Values[0])
		}
		if r.Operator == corev1.NodeSelectorOpGt {
			return constraint{gt: &n}, nil
		}
		return constraint{lt: &n}, nil
	}
	return constraint{}, fmt.Errorf("%q: there is no operator %q", r.Key, r.Operator)
}

// Terms returns e as terms of the API: keys, and values within a requirement,
// are sorted; terms stand as in e. A choice among several node names takes one
// term each, because the API allows one value in a field's requirement. An
// expression that holds for every node or for none has no terms: the caller
// must know which.
func (e Expr) Terms() []corev1.NodeSelectorTerm {
	var out []corev1.NodeSelectorTerm
	for _, t := range e.terms {
		if len(t.parts) > 0 {
			out = append(out, t.render()...)
		}
	}
	return out
}

func (t Term) render() []corev1.NodeSelectorTerm {
	var base corev1.NodeSelectorTerm
	for _, p := range t.parts {
		if p.key.Field {
			base.MatchFields = append(base.MatchFields, p.requirements(p.key)...)
		} else {
			base.MatchExpressions = append(base.MatchExpressions, p.requirements(p.key)...)
		}
	}
	names, chosen := t.get(NodeName)
	if !chosen || len(names.in) < 2 {
		return []corev1.NodeSelectorTerm{base}
	}
	out := make([]corev1.NodeSelectorTerm, len(names.in))
	for i, name := range names.in {
		out[i] = *base.DeepCopy()
		out[i].MatchFields = []corev1.NodeSelectorRequirement{{Key: NodeName.Name, Operator: corev1.NodeSelectorOpIn, Values: []string{name}}}
	}
	return out
}

func (c constraint) requirements(k Key) []corev1.NodeSelectorRequirement {
	requirement := func(op corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: k.Name, Operator: op, Values: values}
	}
	var out []corev1.NodeSelectorRequirement
	switch {
	case c.never:
		return append(out, requirement(corev1.NodeSelectorOpDoesNotExist))
	case c.in != nil:
		return append(out, requirement(corev1.NodeSelectorOpIn, slices.Clone(c.in)...))
	case !c.absent && c.gt == nil && c.lt == nil && !k.Field:
		out = append(out, requirement(corev1.NodeSelectorOpExists))
	}
	if c.gt != nil {
		out = append(out, requirement(corev1.NodeSelectorOpGt, strconv.FormatInt(*c.gt, 10)))
	}
	if c.lt != nil {
		out = append(out, requirement(corev1.NodeSelectorOpLt, strconv.FormatInt(*c.lt, 10)))
	}
	switch {
	case len(c.notIn) == 0:
	case k.Field:
		for _, v := range c.notIn {
			out = append(out, requirement(corev1.NodeSelectorOpNotIn, v))
		}
	default:
		out = append(out, requirement(corev1.NodeSelectorOpNotIn, slices.Clone(c.notIn)...))
	}
	return out
}

// AsLabels returns e as a nodeSelector, and whether it can be one: every label
// must have exactly one value.
func (e Expr) AsLabels() (map[string]string, bool) {
	if len(e.terms) != 1 {
		return nil, false
	}
	out := map[string]string{}
	for _, p := range e.terms[0].parts {
		if p.key.Field || len(p.in) != 1 {
			return nil, false
		}
		out[p.key.Name] = p.in[0]
	}
	return out, true
}
