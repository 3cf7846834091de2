package compiler

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
	"github.com/kubectl-sched/kubectl-sched/compiler/nodeexpr"
	"github.com/kubectl-sched/kubectl-sched/compiler/nodelabel"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// offer is what nodes a NodePool makes.
type offer struct {
	capability.NodePool
	// expr holds for the nodes that it makes, as far as it says which.
	expr nodeexpr.Expr
	keys map[string]bool
}

// offers returns what the known NodePools offer.
func (c *compilation) offers() []offer {
	out := make([]offer, len(c.facts.NodePools))
	for i, np := range c.facts.NodePools {
		out[i] = offerOf(np)
	}
	return out
}

func offerOf(np capability.NodePool) offer {
	o := offer{NodePool: np, keys: map[string]bool{}}
	exprs := []nodeexpr.Expr{nodeexpr.In(nodeexpr.Label("karpenter.sh/nodepool"), np.Name)}
	for _, key := range sortedKeys(np.Labels) {
		o.keys[nodelabel.Normal(key)] = true
		exprs = append(exprs, nodeexpr.In(nodeexpr.Label(nodelabel.Normal(key)), np.Labels[key]))
	}
	for _, r := range np.Requirements {
		requirement := r.Normal()
		requirement.Key = nodelabel.Normal(r.Key)
		o.keys[requirement.Key] = true
		// One that Karpenter has and we do not know narrows nothing, rather than
		// ruling out what may be made.
		if e, err := nodeexpr.FromTerm(corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{requirement}}); err == nil {
			exprs = append(exprs, e)
		}
	}
	var err error
	if o.expr, err = nodeexpr.And(maxTerms, exprs...); err != nil {
		o.expr = nodeexpr.True()
	}
	return o
}

// misses returns the requirements of the term that no node of the NodePool
// meets.
func (o offer) misses(term corev1.NodeSelectorTerm) []corev1.NodeSelectorRequirement {
	missed := slices.Clone(term.MatchFields)
	for _, r := range term.MatchExpressions {
		r.Key = nodelabel.Normal(r.Key)
		one, err := nodeexpr.FromTerm(corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{r}})
		if err != nil {
			continue
		}
		both, err := nodeexpr.And(maxTerms, o.expr, one)
		absent := !o.keys[r.Key] && !nodelabel.KarpenterChooses(r.Key) && !one.Matches(nil, "")
		if absent || err == nil && both.IsFalse() {
			missed = append(missed, r)
		}
	}
	return missed
}

// canMake reports whether the NodePool can make a node of the pool.
func (o offer) canMake(p *pool) bool {
	return slices.ContainsFunc(p.expr.Terms(), func(t corev1.NodeSelectorTerm) bool { return len(o.misses(t)) == 0 })
}

// alwaysMakes reports whether every node of the NodePool is one of the pool.
func (o offer) alwaysMakes(p *pool) bool { return nodeexpr.Implies(o.expr, p.expr) }

// nodePoolNames returns the NodePools that are to make the pool's nodes: those
// that the document names; else those of the pools that it is made of; else the
// one with its name, unless there is none and others make its nodes.
func (c *compilation) nodePoolNames(p *pool) []string {
	if p.Karpenter != nil && len(p.Karpenter.NodePools) > 0 {
		return p.Karpenter.NodePools
	}
	named := map[string]bool{}
	for _, inner := range p.Nodes.Pools {
		if q := c.pools[inner]; q != nil && q != p && isPoolsAlone(p.Nodes) {
			for _, name := range c.nodePoolNames(q) {
				named[name] = true
			}
		}
	}
	if len(named) > 0 {
		return sortedKeys(named)
	}
	if c.nodePool(p.Name) == nil {
		for _, o := range c.offers() {
			if o.alwaysMakes(p) {
				named[o.Name] = true
			}
		}
	}
	if len(named) > 0 {
		return sortedKeys(named)
	}
	return []string{p.Name}
}

// isPoolsAlone reports whether pools are all that the nodes are described by.
func isPoolsAlone(t policy.NodeTerm) bool {
	return len(t.Pools) > 0 && len(t.Labels)+len(t.Zones)+len(t.Regions)+len(t.Arch)+len(t.OS)+len(t.Names) == 0
}

func (c *compilation) nodePool(name string) *capability.NodePool {
	for i := range c.facts.NodePools {
		if c.facts.NodePools[i].Name == name {
			return &c.facts.NodePools[i]
		}
	}
	return nil
}

// checkNodePools holds a pool of Karpenter's against the known NodePools.
func (c *compilation) checkNodePools(p *pool, e NodeEffect) {
	offers := c.offers()
	makeable := slices.ContainsFunc(offers, func(o offer) bool { return o.canMake(p) })
	if !makeable {
		c.reportUnmakeable(p, offers)
	}
	if p.Karpenter != nil {
		for i, name := range p.Karpenter.NodePools {
			if c.nodePool(name) == nil {
				c.reportMissingNodePool(p, name, fmt.Sprint(i))
			}
		}
	}
	for _, o := range offers {
		switch {
		case slices.Contains(e.Makers, o.Name):
			c.checkNodePoolTaint(p, o)
			c.checkNodePoolLabels(p, e, o, makeable)
		case p.taint != nil && o.canMake(p) && !slices.ContainsFunc(o.Taints, isTaint(*p.taint)):
			verb := "can make"
			if o.alwaysMakes(p) {
				verb = "makes"
			}
			c.report(finding{
				rule: "nodes/nodepool-differs", severity: warning, subject: "pool " + p.Name, at: p.Positions.At("dedicated"), related: nodePoolAt(o.NodePool),
				message: fmt.Sprintf("NodePool %q %s nodes of the pool without the taint %s, and pods without a grant can land there; give it the taint, or requirements that rule such nodes out", o.Name, verb, describeTaint(*p.taint)),
			})
		}
	}
}

func nodePoolAt(np capability.NodePool) []diag.Related {
	if !np.Source.Start.IsValid() {
		return nil
	}
	return []diag.Related{{Range: np.Source, Message: fmt.Sprintf("NodePool %q", np.Name)}}
}

func (c *compilation) reportMissingNodePool(p *pool, name, index string) {
	var names []string
	for _, np := range c.facts.NodePools {
		names = append(names, np.Name)
	}
	message := fmt.Sprintf("there is no NodePool %q", name)
	if near, ok := diag.Nearest(name, names); ok {
		message += fmt.Sprintf("; did you mean %q?", near)
	} else if len(names) > 0 {
		message += "; there are " + quoted(names)
	}
	c.report(finding{rule: "nodes/no-nodepool", severity: warning, subject: "pool " + p.Name, at: p.Positions.At("karpenter", "nodePools", index), message: message})
}

// reportUnmakeable reports a pool of which Karpenter can never make a node, and
// what about it no NodePool offers.
func (c *compilation) reportUnmakeable(p *pool, offers []offer) {
	f := finding{rule: "nodes/unmakeable", severity: warning, subject: "pool " + p.Name, at: p.Positions.At("nodes")}
	terms := p.expr.Terms()
	switch {
	case len(offers) == 0:
		f.message = "there is no NodePool, so Karpenter can never make such a node"
	case slices.ContainsFunc(terms, func(t corev1.NodeSelectorTerm) bool { return len(t.MatchFields) > 0 }):
		f.message = "Karpenter can never make such a node: it gives nodes names of its own; describe the pool by labels"
	case len(terms) == 1:
		names := c.nodePoolNames(p)
		f.message = fmt.Sprintf("Karpenter can never make such a node: %s; kubectl sched compile -o nodes says what to add to NodePool %s", unoffered(terms[0], offers, names), quoted(names))
		if key := firstUnoffered(terms[0], offers); key != "" {
			f.at = p.Positions.At("nodes", "labels", key)
		}
		for _, o := range offers {
			if slices.Contains(names, o.Name) {
				f.related = append(f.related, nodePoolAt(o.NodePool)...)
			}
		}
	default:
		f.message = fmt.Sprintf("Karpenter can never make such a node: none of its NodePools (%s) offers any of what the pool is described by", nodePoolList(offers))
	}
	c.report(f)
}

func nodePoolList(offers []offer) string {
	names := make([]string, len(offers))
	for i, o := range offers {
		names[i] = o.Name
	}
	return quoted(names)
}

// unofferedBy returns the requirements that none of the NodePools meets.
func unofferedBy(term corev1.NodeSelectorTerm, offers []offer) []corev1.NodeSelectorRequirement {
	var none []corev1.NodeSelectorRequirement
	for _, r := range offers[0].misses(term) {
		everywhere := true
		for _, o := range offers[1:] {
			everywhere = everywhere && slices.ContainsFunc(o.misses(term), func(m corev1.NodeSelectorRequirement) bool { return m.Key == r.Key })
		}
		if everywhere {
			none = append(none, r)
		}
	}
	return none
}

// firstUnoffered returns the first label that none of the NodePools offers.
func firstUnoffered(term corev1.NodeSelectorTerm, offers []offer) string {
	for _, r := range unofferedBy(term, offers) {
		return r.Key
	}
	return ""
}

// unoffered says what of the term the NodePools do not offer: the one that is to
// make such nodes, if it is there; else what none of them offers; else, if each
// part is offered by some, what the one that comes nearest lacks.
func unoffered(term corev1.NodeSelectorTerm, offers []offer, names []string) string {
	for _, o := range offers {
		if slices.Contains(names, o.Name) {
			return fmt.Sprintf("NodePool %q does not offer %s, nor does another one", o.Name, describeRequirements(o.misses(term)))
		}
	}
	if none := unofferedBy(term, offers); len(none) > 0 {
		return fmt.Sprintf("none of its NodePools (%s) offers %s", nodePoolList(offers), describeRequirements(none))
	}
	nearest := offers[0]
	for _, o := range offers[1:] {
		if len(o.misses(term)) < len(nearest.misses(term)) {
			nearest = o
		}
	}
	return fmt.Sprintf("none of its NodePools (%s) offers all of it at once, and %q, the nearest, does not offer %s", nodePoolList(offers), nearest.Name, describeRequirements(nearest.misses(term)))
}

func describeRequirements(list []corev1.NodeSelectorRequirement) string {
	parts := make([]string, len(list))
	for i, r := range list {
		e, err := nodeexpr.FromTerm(corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{r}})
		if parts[i] = e.String(); err != nil {
			parts[i] = r.Key
		}
	}
	return strings.Join(parts, ", ")
}

// differs reports that a NodePool is not what its pool asks for.
func (c *compilation) differs(p *pool, o offer, at diag.Range, format string, args ...any) {
	c.report(finding{
		rule: "nodes/nodepool-differs", severity: warning, subject: "pool " + p.Name, at: at, related: nodePoolAt(o.NodePool),
		message: fmt.Sprintf("NodePool %q ", o.Name) + fmt.Sprintf(format, args...) + "; kubectl sched compile -o nodes emits the patch",
	})
}

// checkNodePoolTaint looks for the pool's taint among those of a NodePool that is
// to make its nodes.
func (c *compilation) checkNodePoolTaint(p *pool, o offer) {
	instead := func(q *pool) bool {
		return q != p && q.taint != nil && nested(p, q) && q.taint.MatchTaint(p.taint) && slices.ContainsFunc(o.Taints, isTaint(*q.taint))
	}
	if p.taint == nil || slices.ContainsFunc(o.Taints, isTaint(*p.taint)) || c.anyPool(instead) {
		return
	}
	at := p.Positions.At("dedicated", "taint")
	i := slices.IndexFunc(o.Taints, func(t corev1.Taint) bool { return t.Key == p.taint.Key })
	switch {
	case i >= 0:
		c.differs(p, o, at, "gives its nodes the taint %s, and the pool asks for %s", describeTaint(o.Taints[i]), describeTaint(*p.taint))
	case slices.ContainsFunc(o.StartupTaints, isTaint(*p.taint)):
		c.differs(p, o, at, "has the taint %s among its startupTaints, which are taken off once a node is up; it belongs among its taints", describeTaint(*p.taint))
	default:
		c.differs(p, o, at, "makes nodes of the pool without its taint %s", describeTaint(*p.taint))
	}
}

// checkNodePoolLabels compares the labels and requirements of a NodePool with
// those of the pool that it is to make nodes for. Where no NodePool can make any,
// what tells the nodes has been said.
func (c *compilation) checkNodePoolLabels(p *pool, e NodeEffect, o offer, makeable bool) {
	for _, key := range sortedKeys(e.Labels) {
		at := p.Positions.At("labels", key)
		if _, own := p.Labels[key]; !own {
			if !makeable {
				continue
			}
			at = p.Positions.At("nodes", "labels", key)
		}
		value, labelled := o.Labels[key]
		switch {
		case labelled && value != e.Labels[key]:
			c.differs(p, o, at, "gives its nodes the label %s=%s, and the pool asks for %s=%s", key, value, key, e.Labels[key])
		case !labelled && !nodeexpr.Implies(o.expr, nodeexpr.In(nodeexpr.Label(key), e.Labels[key])):
			c.differs(p, o, at, "does not give its nodes the label %s=%s", key, e.Labels[key])
		}
	}
	if len(e.Selector) != 1 || !makeable {
		return
	}
	var wrong []corev1.NodeSelectorRequirement
	for _, r := range o.misses(e.Selector[0]) {
		if _, said := e.Labels[r.Key]; !said {
			wrong = append(wrong, r)
		}
	}
	if len(wrong) > 0 {
		c.differs(p, o, p.Positions.At("nodes"), "makes no node with %s, as the pool is described", describeRequirements(wrong))
	}
}
