package load

import (
	"slices"
	"strconv"

	"cuelang.org/go/cue"
	cueerrors "cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/token"

	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// positions returns where each field of an object was written.
func (ev *evaluation) positions(path []string, nodes []*node, v cue.Value) policy.Positions {
	ps := policy.Positions{}
	if p, ok := firstPlace(nodes); ok {
		ps[""] = ev.set.rangeOf(p.label)
	} else {
		ps[""] = ev.rangeOfPath(path, v)
	}
	if slices.ContainsFunc(nodes, func(n *node) bool { return !ev.index.literal(n) }) || len(nodes) == 0 {
		ev.addFromValue(ps, "", nodes, v)
	} else {
		ev.addFromSyntax(ps, "", nodes)
	}
	return ps
}

// addFromSyntax adds what is below nodes that are written out.
func (ev *evaluation) addFromSyntax(ps policy.Positions, pointer string, nodes []*node) {
	for _, n := range nodes {
		for label, c := range n.children {
			if hidden(label) {
				continue
			}
			below := pointer + policy.Pointer(label)
			if p, ok := firstPlace([]*node{c}); ok {
				if _, seen := ps[below]; !seen {
					ps[below] = ev.set.rangeOf(p.label)
				}
			}
			ev.addFromSyntax(ps, below, []*node{c})
		}
	}
}

// addFromValue adds what is below a value: where the syntax shows it, or else
// where CUE says that the value's parts came from.
func (ev *evaluation) addFromValue(ps policy.Positions, pointer string, nodes []*node, v cue.Value) {
	add := func(label string, child cue.Value) {
		below := pointer + policy.Pointer(label)
		next := ev.index.step(nodes, label, maxReferences)
		if p, ok := firstPlace(next); ok {
			ps[below] = ev.set.rangeOf(p.label)
		} else if at := ev.userPositions(child); len(at) > 0 {
			ps[below] = diag.At(ev.set.pos(at[0]))
		}
		ev.addFromValue(ps, below, next, child)
	}
	switch v.IncompleteKind() {
	case cue.StructKind:
		fields, err := v.Fields()
		for err == nil && fields.Next() {
			add(label(fields.Selector()), fields.Value())
		}
	case cue.ListKind:
		list, err := v.List()
		for i := 0; err == nil && list.Next(); i++ {
			add(strconv.Itoa(i), list.Value())
		}
	}
}

// userPositions returns where the parts that a value was unified from stand in
// the user's files.
func (ev *evaluation) userPositions(v cue.Value) (at []token.Pos) {
	var visit func(v cue.Value, depth int)
	visit = func(v cue.Value, depth int) {
		if p := v.Pos(); p.IsValid() && ev.set.theirs(p.Filename()) && !slices.Contains(at, p) {
			at = append(at, p)
		}
		if depth == 0 {
			return
		}
		op, args := v.Expr()
		if op != cue.AndOp {
			return
		}
		for _, a := range args {
			visit(a, depth-1)
		}
	}
	visit(v, maxReferences)
	return at
}

// rangeOfPath returns where the field at a path, or the nearest one around it,
// is declared.
func (ev *evaluation) rangeOfPath(path []string, v cue.Value) diag.Range {
	if p, ok := firstPlace(ev.index.find(path...)); ok {
		return ev.set.rangeOf(p.label)
	}
	if at := ev.userPositions(v); len(at) > 0 {
		return diag.At(ev.set.pos(at[0]))
	}
	for n := len(path) - 1; n > 0; n-- {
		if p, ok := firstPlace(ev.index.find(path[:n]...)); ok {
			return ev.set.rangeOf(p.label)
		}
	}
	return diag.At(diag.Pos{File: ev.folder.display})
}

// rangeOfError returns where an error is to be mended: at the field's value if
// the syntax shows it, else at the first place of the user's that CUE names.
func (ev *evaluation) rangeOfError(path []string, e cueerrors.Error) diag.Range {
	if p, ok := firstPlace(ev.index.find(path...)); ok && len(path) > 0 {
		return ev.set.rangeOf(p.label)
	}
	for n := len(path) - 1; n > len(path)-len(inObject(path)); n-- {
		if p, ok := firstPlace(ev.index.find(path[:n]...)); ok {
			return ev.set.rangeOf(p.label)
		}
	}
	for _, p := range cueerrors.Positions(e) {
		if p.IsValid() && ev.set.theirs(p.Filename()) {
			return diag.At(ev.set.pos(p))
		}
	}
	v := ev.value
	for _, name := range path {
		sel := cue.Str(name)
		if i, err := strconv.Atoi(name); err == nil && v.IncompleteKind() == cue.ListKind {
			sel = cue.Index(i)
		}
		v = v.LookupPath(cue.MakePath(sel))
	}
	return ev.rangeOfPath(path, v)
}

// schemaPackage is the import path of the schema.
const schemaPackage = policy.ModulePath + "/policy"
