package compiler

import (
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-sched/kubectl-sched/compiler/nodeexpr"
	"github.com/kubectl-sched/kubectl-sched/policy"
)

const (
	requiredField  = "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
	preferredField = "affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution"

	requiredReason  = "required node affinity says exactly this"
	preferredReason = "preferred node affinity says exactly this; weights only count beside the pod's other preferences, so a single one of 100 is worth no more than a single one of 1"
)

// nodeRule is what a policy's nodes come to, whatever the workload.
type nodeRule struct {
	required  []statement
	poolUses  []poolUse
	preferred []preferredTerm
	// preferredPools are the pools that preferences name.
	preferredPools []poolUse
}

// poolUse is a pool that a policy requires; those of one origin are a choice.
type poolUse struct {
	pool   *pool
	origin Origin
}

// preferredTerm is one preferred term of a policy.
type preferredTerm struct {
	term   corev1.NodeSelectorTerm
	weight int32
	reason string
	origin Origin
	// wins names the mustWin preference that it is a part of: a node meets one of
	// those with one name at most. Empty for other terms.
	wins string
}

func (c *compilation) prepareNodes(r *rule) {
	n := r.Nodes
	if n == nil {
		return
	}
	resolve := c.resolvePool(r.author)
	if n.Require != nil {
		for _, s := range c.statements(r.author, *n.Require, resolve, "nodes", "require") {
			if !s.broken {
				r.nodes.required = append(r.nodes.required, s)
			}
			for _, p := range s.pools {
				r.nodes.poolUses = append(r.nodes.poolUses, poolUse{pool: p, origin: s.origin})
			}
		}
	}
	if n.Forbid != nil {
		for _, s := range c.each(r.author, *n.Forbid, "nodes", "forbid") {
			if e, ok := c.unless(r.author, s); ok {
				s.expr, s.pools = e, nil
				r.nodes.required = append(r.nodes.required, s)
			}
		}
	}
	if n.Prefer != nil {
		c.preparePreference(r, n.Prefer, false, "nodes", "prefer")
	}
	if n.Disfavor != nil {
		c.preparePreference(r, n.Disfavor, true, "nodes", "disfavor")
	}
}

// each takes a NodeTerm apart into what is forbidden or disfavoured by itself:
// its statements, and each pool alone.
func (c *compilation) each(a author, n policy.NodeTerm, path ...string) []statement {
	var out []statement
	resolve := c.resolvePool(a)
	for i, name := range n.Pools {
		at := append(slices.Clone(path), "pools", strconv.Itoa(i))
		if p := resolve(name, at...); p != nil && !p.broken {
			out = append(out, statement{expr: p.expr, path: at, origin: a.origin(at...), field: fmt.Sprintf("pool %q", name), pools: []*pool{p}})
		}
	}
	n.Pools = nil
	for _, s := range c.statements(a, n, resolve, path...) {
		if !s.broken {
			out = append(out, s)
		}
	}
	return out
}

// preparePreference turns one description of nodes, or several in order of
// rank, into preferred terms.
func (c *compilation) preparePreference(r *rule, p *policy.Preference, disfavor bool, path ...string) {
	var base []statement
	if disfavor {
		base = c.each(r.author, p.NodeTerm, path...)
	} else if e, ok := c.whole(r.author, p.NodeTerm, path...); ok {
		base = []statement{e}
		r.nodes.prefersPools(e)
	}
	for _, s := range base {
		if disfavor {
			var ok bool
			if s.expr, ok = c.unless(r.author, s); !ok {
				continue
			}
		}
		c.preferTerms(r, s.expr, int32(p.Weight), s.origin, preferredReason, winner(p, s.origin))
	}
	if len(p.Ranked) == 0 {
		return
	}
	if p.Weight < len(p.Ranked) {
		c.report(finding{
			rule: "policy/weight-below-ranks", policy: r.Name, at: r.author.at(append(slices.Clone(path), "weight")...),
			message: fmt.Sprintf("weight %d cannot tell %d ranks apart; make it at least %d", p.Weight, len(p.Ranked), len(p.Ranked)),
		})
		return
	}
	var ranks []statement
	for i, n := range p.Ranked {
		at := append(slices.Clone(path), "ranked", strconv.Itoa(i))
		s, ok := c.whole(r.author, n, at...)
		if !ok {
			return
		}
		ranks = append(ranks, s)
		if !disfavor {
			r.nodes.prefersPools(s)
		}
	}
	if disfavor {
		c.disfavorRanks(r, ranks, p)
	} else {
		c.preferRanks(r, ranks, p)
	}
}

// winner names a mustWin preference by its place; the empty string for any other.
func winner(p *policy.Preference, o Origin) string {
	if !p.MustWin {
		return ""
	}
	return fmt.Sprint(o)
}

func (n *nodeRule) prefersPools(s statement) {
	for _, p := range s.pools {
		n.preferredPools = append(n.preferredPools, poolUse{pool: p, origin: s.origin})
	}
}

// whole returns a NodeTerm as one statement, and whether it says anything and
// could be built.
func (c *compilation) whole(a author, n policy.NodeTerm, path ...string) (statement, bool) {
	out := statement{path: path, origin: a.origin(path...)}
	parts := c.statements(a, n, c.resolvePool(a), path...)
	var exprs []nodeexpr.Expr
	for _, s := range parts {
		if s.broken {
			return statement{}, false
		}
		exprs = append(exprs, s.expr)
		out.pools = append(out.pools, s.pools...)
	}
	if len(parts) == 1 {
		out.origin = parts[0].origin
	}
	var err error
	if out.expr, err = nodeexpr.And(maxTerms, exprs...); err != nil {
		c.tooMany(a, "", maxTerms, path...)
		return statement{}, false
	}
	if out.expr.IsFalse() {
		c.report(finding{
			rule: "compile/contradiction", policy: a.policy, at: a.at(path...),
			message: "no node can be meant, because the fields exclude each other; say them apart",
		})
		return statement{}, false
	}
	return out, len(parts) > 0
}

// preferRanks gives each rank less weight than the one before, and a node that
// meets several the weight of its best.
func (c *compilation) preferRanks(r *rule, ranks []statement, p *policy.Preference) {
	reason := fmt.Sprintf("preferred node affinity says exactly this, one weight for each of the %d ranks; a node counts by its best rank alone", len(ranks))
	better := nodeexpr.False()
	for i, s := range ranks {
		rest, err := nodeexpr.Not(maxTerms, better)
		if err == nil {
			rest, err = nodeexpr.And(maxTerms, s.expr, rest)
		}
		why := reason
		if err != nil {
			// Numbers have no exact negation: then a node of two ranks counts twice.
			rest, why = s.expr, reason+", except that nodes of several ranks count for each, because comparisons have no negation"
		}
		c.preferTerms(r, rest, int32(p.Weight*(len(ranks)-i)/len(ranks)), s.origin, why, winner(p, ranks[0].origin))
		better = nodeexpr.Or(better, s.expr)
	}
}

// disfavorRanks lets a node gain a share of the weight for each rank that it is
// better than, so that the nodes of the first rank get nothing.
func (c *compilation) disfavorRanks(r *rule, ranks []statement, p *policy.Preference) {
	reason := fmt.Sprintf("preferred node affinity for all other nodes says exactly this, in %d steps", len(ranks))
	worse := nodeexpr.False()
	for i, s := range ranks {
		worse = nodeexpr.Or(worse, s.expr)
		step := statement{expr: worse, path: s.path, origin: s.origin}
		e, ok := c.unless(r.author, step)
		if !ok {
			return
		}
		share := p.Weight*(i+1)/len(ranks) - p.Weight*i/len(ranks)
		c.preferTerms(r, e, int32(share), s.origin, reason, winner(p, s.origin))
	}
}

// preferTerms adds the expression with a weight, in terms of which no node
// meets two.
func (c *compilation) preferTerms(r *rule, e nodeexpr.Expr, weight int32, o Origin, reason, wins string) {
	if e.IsTrue() || e.IsFalse() {
		return
	}
	apart, err := nodeexpr.Disjoint(maxTerms, e)
	if err != nil {
		apart, reason = e, reason+"; a node that meets several of the terms counts for each, because comparisons have no negation"
	}
	for _, t := range apart.Terms() {
		r.nodes.preferred = append(r.nodes.preferred, preferredTerm{term: t, weight: weight, reason: reason, origin: o, wins: wins})
	}
}

// gatherNodes is the nodes intent.
func gatherNodes(d *draft, r *rule) {
	d.required = append(d.required, r.nodes.required...)
	d.poolUses = append(d.poolUses, r.nodes.poolUses...)
	d.preferred = append(d.preferred, r.nodes.preferred...)
	for _, u := range r.nodes.poolUses {
		d.tolerate(requiredPoolTolerations(u))
	}
}

// requiredPoolTolerations are the tolerations without which a required pool
// would be out of reach.
func requiredPoolTolerations(u poolUse) []tolerationWish {
	return poolTolerations(u.pool, u.origin, "nodes of the dedicated pool %q are required, and only a toleration lets pods onto them")
}
