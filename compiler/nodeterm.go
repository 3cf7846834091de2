package compiler

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-sched/kubectl-sched/compiler/nodeexpr"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// maxTerms is the most terms that a required node affinity may come to. The API
// has no limit, but nobody reads more, and they multiply.
const maxTerms = 64

// author is whoever wrote something: a policy, or with an empty name a pool.
type author struct {
	policy    string
	positions policy.Positions
}

func (a author) at(path ...string) diag.Range { return a.positions.At(path...) }

func (a author) origin(path ...string) Origin {
	return Origin{Policy: a.policy, Range: a.positions.At(path...)}
}

// statement is one field of a NodeTerm: what it says of a node, and its line.
type statement struct {
	expr   nodeexpr.Expr
	path   []string
	origin Origin
	// field is what the user wrote it under, for messages: `zones`, `pool "gpu"`.
	field string
	// pools are the pools that the statement names.
	pools []*pool
	// broken says that it could not be built, which was then reported.
	broken bool
}

// statements takes a NodeTerm apart into its fields, each of which must hold.
// Labels are a statement each; the pools are one. Resolve returns the pool of a
// name, or reports that there is none and returns nil.
func (c *compilation) statements(a author, n policy.NodeTerm, resolve func(name string, path ...string) *pool, path ...string) []statement {
	var out []statement
	add := func(s statement, p ...string) {
		s.path = append(slices.Clone(path), p...)
		s.origin = a.origin(s.path...)
		out = append(out, s)
	}
	if len(n.Pools) > 0 {
		s := statement{field: "pools"}
		var exprs []nodeexpr.Expr
		for i, name := range n.Pools {
			p := resolve(name, append(slices.Clone(path), "pools", strconv.Itoa(i))...)
			if p == nil || p.broken {
				s.broken = true
				continue
			}
			s.pools = append(s.pools, p)
			exprs = append(exprs, p.expr)
		}
		s.expr = nodeexpr.Or(exprs...)
		add(s, "pools")
	}
	for _, k := range sortedKeys(n.Labels) {
		p := append(slices.Clone(path), "labels", k)
		e, ok := c.valuesExpr(a, nodeexpr.Label(k), n.Labels[k], p)
		add(statement{expr: e, field: fmt.Sprintf("label %q", k), broken: !ok}, "labels", k)
	}
	for _, f := range []struct {
		name, key string
		values    []string
	}{
		{"zones", corev1.LabelTopologyZone, n.Zones},
		{"regions", corev1.LabelTopologyRegion, n.Regions},
		{"arch", corev1.LabelArchStable, n.Arch},
		{"os", corev1.LabelOSStable, n.OS},
	} {
		if len(f.values) > 0 {
			e, ok := c.valuesExpr(a, nodeexpr.Label(f.key), f.values, append(slices.Clone(path), f.name))
			add(statement{expr: e, field: f.name, broken: !ok}, f.name)
		}
	}
	if len(n.Names) > 0 {
		e, ok := c.valuesExpr(a, nodeexpr.NodeName, n.Names, append(slices.Clone(path), "names"))
		add(statement{expr: e, field: "names", broken: !ok}, "names")
	}
	return out
}

// valuesExpr returns the expression that the key has any of the values. What
// node affinity cannot say is reported at the value's line.
func (c *compilation) valuesExpr(a author, k nodeexpr.Key, values policy.Values, path []string) (nodeexpr.Expr, bool) {
	var literals []string
	var exprs []nodeexpr.Expr
	ok := true
	for i, v := range values {
		e, err := valueExpr(k, v)
		switch {
		case err != nil:
			message := err.Error()
			if isGlob(v) {
				message += c.suggestValues(k, v)
			}
			c.report(finding{rule: "compile/inexpressible", policy: a.policy, at: a.at(append(slices.Clone(path), strconv.Itoa(i))...), message: message})
			ok = false
		case e == nil:
			literals = append(literals, v)
		default:
			exprs = append(exprs, *e)
		}
	}
	if len(literals) > 0 {
		exprs = append(exprs, nodeexpr.In(k, literals...))
	}
	return nodeexpr.Or(exprs...), ok
}

// valueExpr returns the expression of one value that is no literal, nil for a
// literal, or why node affinity cannot say it.
func valueExpr(k nodeexpr.Key, v string) (*nodeexpr.Expr, error) {
	switch {
	case v == "*" && k.Field:
		return nil, errors.New(`"*" is every node; leave the field out`)
	case v == "*":
		e := nodeexpr.Exists(k)
		return &e, nil
	case strings.HasPrefix(v, ">") || strings.HasPrefix(v, "<"):
		n, err := strconv.ParseInt(v[1:], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%q compares with no integer; write %q", v, strictly(v))
		}
		if k.Field {
			return nil, fmt.Errorf("node names are compared with nothing; %q is for labels", v)
		}
		e := nodeexpr.Greater(k, n)
		if v[0] == '<' {
			e = nodeexpr.Less(k, n)
		}
		return &e, nil
	case isGlob(v):
		return nil, fmt.Errorf("node affinity has no globs, so %q cannot be said of nodes; list the values, or give the nodes a label of their own", v)
	}
	return nil, nil
}

// strictly returns what a comparison that the language does not have was meant
// to be: ">=8" is ">7".
func strictly(v string) string {
	n, err := strconv.ParseInt(strings.TrimLeft(v, "<>= "), 10, 64)
	switch {
	case err != nil:
		return v[:1] + "8"
	case strings.HasPrefix(v, ">="):
		return fmt.Sprintf(">%d", n-1)
	case strings.HasPrefix(v, "<="):
		return fmt.Sprintf("<%d", n+1)
	}
	return fmt.Sprintf("%c%d", v[0], n)
}

// suggestValues lists the known values that a glob would match.
func (c *compilation) suggestValues(k nodeexpr.Key, glob string) string {
	p := pattern{text: glob, glob: true}
	found := map[string]bool{}
	for _, n := range c.facts.Nodes {
		v, ok := n.Labels[k.Name]
		if k.Field {
			v, ok = n.Name, true
		}
		if ok && p.matches(v) {
			found[v] = true
		}
	}
	if len(found) == 0 {
		return ""
	}
	return "; of those known it would match " + quoted(slices.Sorted(maps.Keys(found)))
}

// unless returns the expression of all nodes but those of e, or reports that
// node affinity has none.
func (c *compilation) unless(a author, s statement) (nodeexpr.Expr, bool) {
	e, err := nodeexpr.Not(maxTerms, s.expr)
	var inexact *nodeexpr.InexactError
	switch {
	case errors.As(err, &inexact):
		instead, sign := fmt.Sprintf("<%d", inexact.Bound+1), ">"
		if inexact.Operator == "Lt" {
			instead, sign = fmt.Sprintf(">%d", inexact.Bound-1), "<"
		}
		c.report(finding{
			rule: "compile/inexpressible", policy: a.policy, at: s.origin.Range,
			message: fmt.Sprintf("node affinity cannot exclude %q %s%d exactly, because nodes whose label is no number would remain; require labels %q: %q instead, or exclude values one by one",
				inexact.Key.Name, sign, inexact.Bound, inexact.Key.Name, instead),
		})
		return nodeexpr.Expr{}, false
	case err != nil:
		c.tooMany(a, "", maxTerms, s.path...)
		return nodeexpr.Expr{}, false
	}
	return e, true
}

func (c *compilation) tooMany(a author, subject string, limit int, path ...string) {
	c.report(finding{
		rule: "compile/too-many-terms", policy: a.policy, subject: subject, at: a.at(path...),
		message: fmt.Sprintf("the required node affinity comes to more than %d terms; give the nodes that are meant one label of their own and require that", limit),
	})
}

// unknownPool reports a pool that the document does not have.
func (c *compilation) unknownPool(a author, name string, path ...string) {
	var names []string
	for _, p := range c.Placement.Pools {
		names = append(names, p.Name)
	}
	message := fmt.Sprintf("there is no pool %q", name)
	if near, ok := diag.Nearest(name, names); ok {
		message += fmt.Sprintf("; did you mean %q?", near)
	} else if len(names) > 0 {
		message += "; the pools are " + quoted(names)
	}
	c.report(finding{rule: "policy/unknown-pool", policy: a.policy, at: a.at(path...), message: message})
}

// resolvePool returns a pool by its name for a policy's author.
func (c *compilation) resolvePool(a author) func(name string, path ...string) *pool {
	return func(name string, path ...string) *pool {
		p := c.pools[name]
		if p == nil {
			c.unknownPool(a, name, path...)
		}
		return p
	}
}
