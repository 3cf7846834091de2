package compiler

import (
	"fmt"
	"slices"

	"github.com/kubectl-sched/kubectl-sched/compiler/nodeexpr"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// checkOverlaps reports nodes that are in two dedicated pools: they would carry
// both taints, if a node can, and the pods of either pool tolerate one. A pool that is described
// by another one is meant to be in it, and its pods tolerate both.
func (c *compilation) checkOverlaps(effects map[string]NodeEffect) {
	var dedicated []*pool
	for _, name := range sortedKeys(c.pools) {
		if p := c.pools[name]; p.taint != nil && !p.broken && !p.expr.IsFalse() {
			dedicated = append(dedicated, p)
		}
	}
	for i, p := range dedicated {
		for _, q := range dedicated[i+1:] {
			if nested(p, q) || isTaint(*p.taint)(*q.taint) {
				continue
			}
			if why := c.overlap(p, q, effects); why != "" {
				c.reportOverlap(p, q, why)
			}
		}
	}
	c.checkSharedMakers(effects)
}

// overlap says how two pools come to have nodes in common; empty if it is not
// known that they have any.
func (c *compilation) overlap(p, q *pool, effects map[string]NodeEffect) string {
	var both []string
	for i := range c.facts.Nodes {
		if n := &c.facts.Nodes[i]; p.has(n) && q.has(n) {
			both = append(both, n.Name)
		}
	}
	switch {
	case len(both) == 1:
		return fmt.Sprintf("node %q is in both", both[0])
	case len(both) > 1:
		return fmt.Sprintf("nodes %s are in both", quoted(both))
	case nodeexpr.Equal(p.expr, q.expr):
		return "both are described alike"
	case nodeexpr.Implies(p.expr, q.expr):
		return fmt.Sprintf("every node of pool %q is in pool %q", p.Name, q.Name)
	case nodeexpr.Implies(q.expr, p.expr):
		return fmt.Sprintf("every node of pool %q is in pool %q", q.Name, p.Name)
	}
	if p.ManagedBy != policy.ManagedKarpenter || q.ManagedBy != policy.ManagedKarpenter {
		return ""
	}
	for _, name := range effects[p.Name].Makers {
		if slices.Contains(effects[q.Name].Makers, name) {
			return fmt.Sprintf("NodePool %q makes the nodes of both", name)
		}
	}
	return ""
}

func (c *compilation) reportOverlap(p, q *pool, why string) {
	f := finding{
		rule: "nodes/two-pools", severity: warning, subject: "pool " + p.Name, at: p.Positions.At("nodes"),
		related: []diag.Related{{Range: q.Positions.At("nodes"), Message: fmt.Sprintf("pool %q", q.Name)}},
	}
	consequence := "so that such nodes carry both taints, which pods of one pool alone do not tolerate"
	if p.taint.MatchTaint(q.taint) {
		consequence = fmt.Sprintf("so that such nodes can carry the taint of one of them alone: a node has but one value of %s:%s", p.taint.Key, p.taint.Effect)
	}
	f.message = fmt.Sprintf("it and pool %q are both dedicated, and %s, %s; describe one pool by the other (nodes: pools), or make the descriptions exclude each other", q.Name, why, consequence)
	// What we would write ourselves is not to be written.
	if p.ManagedBy == policy.ManagedLive || q.ManagedBy == policy.ManagedLive {
		f.severity = diag.Error
	}
	c.report(f)
}

// checkSharedMakers reports pools that ask one NodePool, or one node, for
// different values of a label.
func (c *compilation) checkSharedMakers(effects map[string]NodeEffect) {
	names := sortedKeys(effects)
	for i, a := range names {
		for _, b := range names[i+1:] {
			p, q := effects[a], effects[b]
			key := differing(p, q)
			if key == "" {
				continue
			}
			why := ""
			for _, name := range p.Makers {
				if p.ManagedBy == q.ManagedBy && p.ManagedBy == policy.ManagedKarpenter && slices.Contains(q.Makers, name) {
					why = fmt.Sprintf("NodePool %q makes the nodes of both", name)
				}
			}
			for _, node := range p.Members {
				if why == "" && slices.Contains(q.Members, node) {
					why = fmt.Sprintf("node %q is in both", node)
				}
			}
			if why == "" {
				continue
			}
			f := finding{
				rule: "nodes/two-values", severity: warning, subject: "pool " + a, at: c.pools[a].Positions.At("labels", key),
				message: fmt.Sprintf("it asks for %s=%s and pool %q for %s=%s, and %s; a node has one value of a label", key, p.Labels[key], b, key, q.Labels[key], why),
				related: []diag.Related{{Range: c.pools[b].Positions.At("labels", key), Message: fmt.Sprintf("pool %q", b)}},
			}
			if p.ManagedBy == policy.ManagedLive && q.ManagedBy == policy.ManagedLive {
				f.severity = diag.Error
			}
			c.report(f)
		}
	}
}

// differing returns the first label that two pools ask for with different
// values; empty if there is none.
func differing(p, q NodeEffect) string {
	for _, key := range sortedKeys(p.Labels) {
		if value, ok := q.Labels[key]; ok && value != p.Labels[key] {
			return key
		}
	}
	return ""
}
