package compiler

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-sched/kubectl-sched/compiler/nodeexpr"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// settleRequired AND-s what the policies require of nodes with each other and
// with what the manifest requires.
func (d *draft) settleRequired() {
	selector := nodeexpr.FromLabels(d.after.NodeSelector)
	var own *corev1.NodeSelector
	if a := d.after.Affinity; a != nil && a.NodeAffinity != nil {
		own = a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	ownExpr, err := nodeexpr.FromSelector(own)
	if err != nil {
		d.failed, d.final = true, selector
		if len(d.required) > 0 {
			d.report(finding{
				rule: "workload/bad-node-affinity", at: d.manifestAt(workload.NodeAffinity, "requiredDuringSchedulingIgnoredDuringExecution"),
				message: fmt.Sprintf("the manifest's required node affinity cannot be read: %s", err),
			})
		}
		return
	}
	base, err := nodeexpr.And(1<<20, selector, ownExpr)
	d.final = base
	if err != nil || base.IsFalse() {
		d.failed = true
		if len(d.required) > 0 {
			d.report(finding{
				rule: "workload/contradiction", at: d.manifestAt(workload.NodeAffinity),
				message: "the manifest's own nodeSelector and node affinity exclude each other, so its pods can run nowhere; correct the manifest",
			})
			table := nodeexpr.NewTable(d.requiredExprs())
			d.admitAnyway(table, own, d.unsaid(table, own))
		}
		return
	}
	exprs := d.requiredExprs()
	table := nodeexpr.NewTable(exprs)
	needed := d.unsaid(table, own)
	if len(needed) == 0 {
		return
	}
	added, err := nodeexpr.And(maxTerms, exprs...)
	if err == nil {
		d.final, err = nodeexpr.And(maxTerms, base, added)
	}
	var terms []corev1.NodeSelectorTerm
	if err == nil && !d.final.IsFalse() {
		terms, err = table.Merge(ownTerms(own), d.after.NodeSelector, maxTerms)
	}
	switch {
	case errors.Is(err, nodeexpr.ErrTooMany):
		d.tooManyTerms(needed)
		d.admitAnyway(table, own, needed)
	case d.final.IsFalse():
		d.failed = true
		d.reportContradiction(selector, ownExpr, base, needed)
		d.fitNowhere(base, needed)
		d.admitAnyway(table, own, needed)
	default:
		d.writeRequired(needed, added, terms)
	}
}

func (d *draft) requiredExprs() []nodeexpr.Expr {
	exprs := make([]nodeexpr.Expr, len(d.required))
	for i, s := range d.required {
		exprs[i] = s.expr
	}
	return exprs
}

// admitAnyway writes what the API server adds to the pods of a template for which
// nothing else is compiled: under admission it merges terms without knowing what
// comes of them.
func (d *draft) admitAnyway(table *nodeexpr.Table, own *corev1.NodeSelector, needed []statement) {
	if !d.c.admitting() || len(needed) == 0 {
		return
	}
	if terms, err := table.Merge(ownTerms(own), d.after.NodeSelector, maxTerms); err == nil {
		d.nodeAffinity().RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: terms}
	}
	for _, group := range groupStatements(needed) {
		d.effect(requiredField, group[0].expr.Terms(), requiredReason, statementOrigins(group)...)
	}
}

// fitNowhere notes which policies leave the pods no node: those that exclude what
// the template requires, or else all together.
func (d *draft) fitNowhere(base nodeexpr.Expr, needed []statement) {
	if !d.c.admitting() {
		return
	}
	var alone, all []string
	for _, s := range needed {
		all = append(all, s.origin.Policy)
		if excludes(base, s.expr) {
			alone = append(alone, s.origin.Policy)
		}
	}
	if len(alone) == 0 {
		alone = all
	}
	slices.Sort(alone)
	d.nowhere = slices.Compact(alone)
}

// excludes reports whether no node meets all of the expressions.
func excludes(exprs ...nodeexpr.Expr) bool {
	e, err := nodeexpr.And(maxTerms*maxTerms, exprs...)
	return err == nil && e.IsFalse()
}

func ownTerms(own *corev1.NodeSelector) []corev1.NodeSelectorTerm {
	if own == nil {
		return nil
	}
	return own.NodeSelectorTerms
}

// unsaid returns the statements that the manifest does not make itself.
func (d *draft) unsaid(table *nodeexpr.Table, own *corev1.NodeSelector) []statement {
	var places []int
	for i, unmet := range table.Unmet(ownTerms(own), d.after.NodeSelector) {
		if unmet {
			places = append(places, table.Expressions[i].Given...)
		}
	}
	slices.Sort(places)
	out := make([]statement, len(places))
	for i, place := range places {
		out[i] = d.required[place]
	}
	return out
}

func (d *draft) tooManyTerms(needed []statement) {
	d.failed = true
	o := needed[0].origin
	d.report(finding{
		rule: "compile/too-many-terms", policy: o.Policy, at: o.Range, related: relatedStatements(needed[1:]),
		message: fmt.Sprintf("together with the manifest's the required node affinity comes to more than %d terms; give the nodes that are meant one label of their own and require that", maxTerms),
	})
}

// writeRequired writes the merged terms into the field, and the effects.
func (d *draft) writeRequired(needed []statement, added nodeexpr.Expr, terms []corev1.NodeSelectorTerm) {
	if d.writeNodeSelector(needed, added) {
		return
	}
	if !d.carries(workload.NodeAffinity, statementOrigins(needed)...) {
		d.failed = true
		return
	}
	d.nodeAffinity().RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: terms}
	for _, group := range groupStatements(needed) {
		d.effect(requiredField, group[0].expr.Terms(), requiredReason, statementOrigins(group)...)
	}
}

// writeNodeSelector says the requirement by nodeSelector where the kind carries
// that and no node affinity, and it can be said so.
func (d *draft) writeNodeSelector(needed []statement, added nodeexpr.Expr) bool {
	_, affinity := d.t.PathOf(workload.NodeAffinity)
	_, selector := d.t.Paths[workload.NodeSelector]
	if affinity || !selector || d.c.admitting() {
		return false
	}
	labels, ok := added.AsLabels()
	if !ok {
		return false
	}
	d.after.NodeSelector = maps.Clone(d.after.NodeSelector)
	if d.after.NodeSelector == nil {
		d.after.NodeSelector = map[string]string{}
	}
	maps.Copy(d.after.NodeSelector, labels)
	for _, group := range groupStatements(needed) {
		value, _ := group[0].expr.AsLabels()
		d.effect(string(workload.NodeSelector), value, "nodeSelector says exactly this, and the kind carries no node affinity", statementOrigins(group)...)
	}
	return true
}

// reportContradiction says which requirements exclude each other: one and the
// manifest, else two, else all of them.
func (d *draft) reportContradiction(selector, own, base nodeexpr.Expr, needed []statement) {
	found := false
	for _, s := range needed {
		if !excludes(base, s.expr) {
			continue
		}
		found = true
		if s.expr.IsFalse() {
			d.report(finding{
				rule: "compile/contradiction", policy: s.origin.Policy, at: s.origin.Range,
				message: fmt.Sprintf("no node can ever meet %s; require something else", s.field),
			})
			continue
		}
		manifest, field, at := own, "node affinity", d.manifestAt(workload.NodeAffinity, "requiredDuringSchedulingIgnoredDuringExecution")
		if excludes(selector, s.expr) {
			manifest, field, at = selector, "nodeSelector", d.manifestAt(workload.NodeSelector)
		}
		d.report(finding{
			rule: "compile/contradiction", policy: s.origin.Policy, at: s.origin.Range,
			message: fmt.Sprintf("the policy needs nodes with %q, but the manifest's %s needs %q, and no node can be both; change one of them", s.expr, field, manifest),
			related: []diag.Related{{Range: at, Message: fmt.Sprintf("the manifest's %s", field)}},
		})
	}
	for i, a := range needed {
		for _, b := range needed[i+1:] {
			if !excludes(a.expr, b.expr) {
				continue
			}
			found = true
			d.report(finding{
				rule: "compile/contradiction", policy: a.origin.Policy, at: a.origin.Range,
				message: fmt.Sprintf("%q here and %q of %s exclude each other, so that no node can take the pods; change one of them", a.expr, b.expr, otherPolicy(a, b)),
				related: relatedStatements([]statement{b}),
			})
		}
	}
	if !found {
		a := needed[0]
		related := relatedStatements(needed[1:])
		if !base.IsTrue() {
			related = append(related, diag.Related{Range: d.manifestAt(workload.Affinity), Message: fmt.Sprintf("the manifest requires %q", base)})
		}
		d.report(finding{
			rule: "compile/contradiction", policy: a.origin.Policy, at: a.origin.Range, related: related,
			message: "all that is required of nodes together leaves none; change one of the requirements",
		})
	}
}

func otherPolicy(a, b statement) string {
	if a.origin.Policy == b.origin.Policy {
		return "the same policy"
	}
	return fmt.Sprintf("policy %q", b.origin.Policy)
}

func relatedStatements(statements []statement) []diag.Related {
	var out []diag.Related
	for _, s := range statements {
		out = append(out, diag.Related{Range: s.origin.Range, Message: fmt.Sprintf("policy %q requires %q", s.origin.Policy, s.expr)})
	}
	return out
}

func statementOrigins(statements []statement) []Origin {
	out := make([]Origin, len(statements))
	for i, s := range statements {
		out[i] = s.origin
	}
	return out
}

// groupStatements puts together those that say the same.
func groupStatements(statements []statement) [][]statement {
	var out [][]statement
	for _, s := range statements {
		i := slices.IndexFunc(out, func(g []statement) bool { return nodeexpr.Equal(g[0].expr, s.expr) })
		if i < 0 {
			out = append(out, []statement{s})
			continue
		}
		out[i] = append(out[i], s)
	}
	return out
}
