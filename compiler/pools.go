package compiler

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-sched/kubectl-sched/compiler/nodeexpr"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// pool is a policy.Pool, prepared.
type pool struct {
	*policy.Pool
	// expr holds for the pool's nodes; broken says that it could not be built,
	// which was then reported.
	expr   nodeexpr.Expr
	broken bool
	// taint is the taint of a dedicated pool, or nil.
	taint *corev1.Taint
	// within are the dedicated pools whose nodes the pool's nodes may be: the
	// pool itself, and those that its own description names.
	within []*pool
	grants *grants
}

// grants is policy.Grants, prepared.
type grants struct {
	namespaces      []pattern
	namespaceLabels []labelPattern
	accounts        []accountPattern
}

// preparePools builds the expressions of all pools, and reports what is wrong
// with them.
func (c *compilation) preparePools() {
	c.pools = map[string]*pool{}
	building := map[string]bool{}
	for i := range c.Placement.Pools {
		c.preparePool(&c.Placement.Pools[i], building)
	}
}

func (c *compilation) preparePool(p *policy.Pool, building map[string]bool) *pool {
	if done, ok := c.pools[p.Name]; ok {
		return done
	}
	out := &pool{Pool: p}
	building[p.Name] = true
	if p.Dedicated != nil {
		out.taint = poolTaint(p)
		out.within = append(out.within, out)
		out.grants = prepareGrants(p.Dedicated.Grants)
	}
	at := author{positions: p.Positions}
	resolve := func(name string, path ...string) *pool {
		inner := c.Placement.Pool(name)
		switch {
		case inner == nil:
			c.unknownPool(at, name, path...)
			return nil
		case building[name]:
			c.report(finding{
				rule: "policy/pool-cycle", at: at.at(path...),
				message: fmt.Sprintf("pool %q is described by itself; say which labels its nodes have", p.Name),
			})
			return nil
		}
		return c.preparePool(inner, building)
	}
	var exprs []nodeexpr.Expr
	for _, s := range c.statements(at, p.Nodes, resolve, "nodes") {
		exprs = append(exprs, s.expr)
		out.broken = out.broken || s.broken
		for _, inner := range s.pools {
			out.within = append(out.within, inner.within...)
		}
	}
	var err error
	if out.expr, err = nodeexpr.And(maxTerms, exprs...); err != nil {
		c.tooMany(at, "", maxTerms, "nodes")
		out.broken = true
	}
	if out.expr.IsFalse() && !out.broken {
		c.report(finding{
			rule: "policy/empty-pool", at: at.at("nodes"),
			message: fmt.Sprintf("pool %q can have no node: its fields exclude each other", p.Name),
		})
	}
	delete(building, p.Name)
	c.pools[p.Name] = out
	return out
}

// poolTaint returns the taint of a dedicated pool, with the default of the
// schema where the document came from elsewhere.
func poolTaint(p *policy.Pool) *corev1.Taint {
	t := p.Dedicated.Taint
	if t == nil {
		return &corev1.Taint{Key: "kubectl-sched.github.io/pool", Value: p.Name, Effect: corev1.TaintEffectNoSchedule}
	}
	out := &corev1.Taint{Key: t.Key, Effect: corev1.TaintEffect(t.Effect)}
	if t.Value != nil {
		out.Value = *t.Value
	}
	if out.Effect == "" {
		out.Effect = corev1.TaintEffectNoSchedule
	}
	return out
}

func prepareGrants(g *policy.Grants) *grants {
	if g == nil {
		return nil
	}
	return &grants{
		namespaces:      patterns(g.Namespaces),
		namespaceLabels: labelPatterns(g.NamespaceLabels),
		accounts:        accountPatterns(g.ServiceAccounts),
	}
}

// lacks names the grant that the template would need to use the pool, or
// returns the empty string if it may. The verdict is unknown where the labels
// of the namespace decide and are not known.
func (g *grants) lacks(f facts, w *workload.Workload, t *workload.Template) (string, verdict) {
	if g == nil {
		return "", yes
	}
	if g.namespaces != nil && !grantsNamespace(g.namespaces, w.Namespace) {
		return fmt.Sprintf("%q to grants.namespaces", w.Namespace), no
	}
	if g.accounts != nil {
		granted := func(a accountPattern) bool { return a.matches(w.Namespace, t.ServiceAccount) }
		if !slices.ContainsFunc(g.accounts, granted) {
			return fmt.Sprintf("%q to grants.serviceAccounts", w.Namespace+"/"+t.ServiceAccount), no
		}
	}
	switch f.namespaceHas(w.Namespace, g.namespaceLabels) {
	case no:
		return fmt.Sprintf("the labels of grants.namespaceLabels to namespace %q", w.Namespace), no
	case unknown:
		return "", unknown
	case yes:
	}
	return "", yes
}

// grantsNamespace is anyMatches, but for kube-system, which only its name grants.
func grantsNamespace(ps []pattern, namespace string) bool {
	if namespace == systemNamespace {
		return slices.Contains(ps, pattern{text: systemNamespace})
	}
	return anyMatches(ps, namespace)
}

// usable reports whether the template may use the pool, and reports a finding
// at the given line if not.
func (d *draft) usable(p *pool, o Origin) bool {
	grant, v := p.grants.lacks(d.c.facts, d.w, d.t)
	if v == unknown && d.c.admitting() {
		v = yes // The API server will know.
	}
	related := []diag.Related{{Range: p.Positions.At("dedicated", "grants"), Message: fmt.Sprintf("who may use pool %q", p.Name)}}
	if v != yes {
		d.c.noteGrant(p, d.w, d.t)
		d.ungranted = append(d.ungranted, o)
	}
	switch v {
	case no:
		d.report(finding{
			rule: "compile/no-grant", policy: o.Policy, at: o.Range, related: related,
			message: fmt.Sprintf("pool %q is dedicated and does not grant this workload; add %s of the pool, or do not send the workload there", p.Name, grant),
		})
	case unknown:
		d.report(finding{
			rule: "compile/namespace-unknown", policy: o.Policy, at: o.Range, related: related,
			message: fmt.Sprintf("whether pool %q is granted depends on the labels of namespace %q, which are not known; compile with --with-cluster, give the manifest of the namespace too, or grant by namespaces", p.Name, d.w.Namespace),
		})
	case yes:
	}
	return v == yes
}
