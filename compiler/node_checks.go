package compiler

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
	"github.com/kubectl-sched/kubectl-sched/compiler/nodelabel"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// checkNodePlan holds the pools against each other, the known nodes and the
// known NodePools.
func (c *compilation) checkNodePlan() {
	effects := map[string]NodeEffect{}
	for _, e := range c.plan.Nodes {
		effects[e.Pool] = e
	}
	required := c.requiredPools()
	for _, name := range sortedKeys(c.pools) {
		p := c.pools[name]
		if p.broken || p.expr.IsFalse() {
			continue
		}
		e, asks := effects[name]
		c.checkSettable(p, e)
		if c.facts.NodesKnown {
			c.checkEmptyPool(p, required[name])
			if asks {
				c.checkTaints(p, e)
				c.checkLabels(p)
				c.checkMadeByOthers(p)
			}
		}
		if asks && p.ManagedBy == policy.ManagedLive {
			c.checkWritten(p)
		}
		if p.ManagedBy == policy.ManagedKarpenter && c.facts.NodePoolsKnown {
			c.checkNodePools(p, e)
		}
	}
	c.checkOverlaps(effects)
}

// requiredPools returns the pools that policies in force require, and those that
// they are described by.
func (c *compilation) requiredPools() map[string]bool {
	required := map[string]bool{}
	var add func(name string)
	add = func(name string) {
		p := c.pools[name]
		if p == nil || required[name] {
			return
		}
		required[name] = true
		for _, inner := range p.Nodes.Pools {
			add(inner)
		}
	}
	for _, r := range c.rules {
		for _, u := range r.nodes.poolUses {
			add(u.pool.Name)
		}
	}
	return required
}

// members calls visit for each of the pool's nodes, as it is and not as it will
// be.
func (c *compilation) members(p *pool, visit func(*capability.Node)) {
	for i := range c.facts.Nodes {
		if p.has(&c.facts.Nodes[i]) {
			visit(&c.actual[i])
		}
	}
}

// checkEmptyPool reports a pool of which there is no node. That matters where a
// policy requires it; otherwise it may be meant for another cluster.
func (c *compilation) checkEmptyPool(p *pool, required bool) {
	found := false
	c.members(p, func(*capability.Node) { found = true })
	if found {
		return
	}
	f := finding{rule: "nodes/empty-pool", severity: info, subject: "pool " + p.Name, at: p.Positions.At("nodes")}
	f.message = fmt.Sprintf("none of the %d known nodes is in it%s", len(c.facts.Nodes), c.nearMiss(p))
	switch {
	case p.ManagedBy == policy.ManagedKarpenter:
		f.message += "; Karpenter makes them when pods ask for them"
	case required:
		f.severity = warning
		f.message += "; pods that require it stay Pending until there is one"
	}
	c.report(f)
}

// nearMiss says which label of the description no node has, or which values
// nodes have instead.
func (c *compilation) nearMiss(p *pool) string {
	terms := p.expr.Terms()
	if len(terms) != 1 {
		return ""
	}
	for _, r := range terms[0].MatchExpressions {
		if r.Operator != corev1.NodeSelectorOpIn {
			continue
		}
		values := map[string]bool{}
		for i := range c.facts.Nodes {
			if v, ok := c.facts.Nodes[i].Labels[r.Key]; ok {
				values[v] = true
			}
		}
		if slices.ContainsFunc(r.Values, func(v string) bool { return values[v] }) {
			continue
		}
		if len(values) == 0 {
			return fmt.Sprintf(": none has the label %q", r.Key)
		}
		return fmt.Sprintf(": of label %q they have %s", r.Key, quoted(sortedKeys(values)))
	}
	return ""
}

// weight is how much it matters that nodes differ from what the pool asks, and
// what puts it right.
func (c *compilation) weight(p *pool) (diag.Severity, string) {
	switch p.ManagedBy {
	case policy.ManagedLive:
		if c.Surface == policy.SurfaceLive || c.Surface == policy.SurfaceAdmission {
			return info, "kubectl sched apply will write it"
		}
		return warning, "kubectl sched apply writes it"
	case policy.ManagedKarpenter:
		return warning, "give it to the NodePool (kubectl sched compile -o nodes), and Karpenter replaces them"
	case policy.ManagedNodeGroup:
		return warning, "give it to the node group (kubectl sched compile -o nodes)"
	case policy.ManagedKubelet:
		return warning, "start their kubelets with it (kubectl sched compile -o nodes); they register it but once, so change the nodes that are there by hand"
	}
	return warning, ""
}

// checkTaints compares the taints of the nodes with that of a dedicated pool.
func (c *compilation) checkTaints(p *pool, e NodeEffect) {
	if p.taint == nil {
		return
	}
	severity, remedy := c.weight(p)
	var missing []string
	other := map[string][]string{}
	c.members(p, func(n *capability.Node) {
		if carries(n, isTaint(*p.taint)) || slices.Contains(e.Yielded, n.Name) {
			return
		}
		for _, t := range n.Taints {
			if t.Key == p.taint.Key {
				other[describeTaint(t)] = append(other[describeTaint(t)], n.Name)
				return
			}
		}
		missing = append(missing, n.Name)
	})
	at := p.Positions.At("dedicated", "taint")
	subject := "pool " + p.Name
	if len(missing) > 0 {
		c.report(finding{
			rule: "nodes/lacks-taint", severity: severity, subject: subject, at: at,
			message: fmt.Sprintf("%s, so pods without a grant can land there; %s", have(missing, "no taint "+describeTaint(*p.taint)), remedy),
		})
	}
	for _, taint := range sortedKeys(other) {
		c.report(finding{
			rule: "nodes/other-taint", severity: warning, subject: subject, at: at,
			message: fmt.Sprintf("%s, and the pool asks for %s; give the pool that taint, or the nodes the pool's", have(other[taint], "the taint "+taint), describeTaint(*p.taint)),
		})
	}
	c.checkStrays(p)
}

// checkStrays reports nodes that carry the pool's taint and are not in the pool,
// so that none of its pods goes there. A taint of another's making may well be
// on nodes of all sorts.
func (c *compilation) checkStrays(p *pool) {
	var strays []string
	for i := range c.facts.Nodes {
		meant := func(q *pool) bool {
			return q.taint != nil && isTaint(*q.taint)(*p.taint) && !q.broken && q.has(&c.facts.Nodes[i])
		}
		if carries(&c.actual[i], isTaint(*p.taint)) && !c.anyPool(meant) {
			strays = append(strays, c.actual[i].Name)
		}
	}
	if len(strays) == 0 {
		return
	}
	f := finding{
		rule: "nodes/stray-taint", severity: info, subject: "pool " + p.Name, at: p.Positions.At("dedicated", "taint"),
		message: fmt.Sprintf("%s without being in it, so that no pod of the pool goes there; describe the pool so that they are, or take the taint off", have(strays, "its taint "+describeTaint(*p.taint))),
	}
	if strings.HasPrefix(p.taint.Key, ourDomain) {
		f.severity = warning
	}
	c.report(f)
}

// ourDomain is the prefix of the taints that nobody but us gives a meaning.
const ourDomain = "kubectl-sched.github.io/"

func (c *compilation) anyPool(which func(*pool) bool) bool {
	return slices.ContainsFunc(sortedKeys(c.pools), func(name string) bool { return which(c.pools[name]) })
}

// checkLabels compares the labels of the nodes with those that the pool asks for.
// Those that tell its nodes they have.
func (c *compilation) checkLabels(p *pool) {
	severity, remedy := c.weight(p)
	for _, key := range sortedKeys(p.Labels) {
		want := p.Labels[key]
		var missing []string
		other := map[string][]string{}
		c.members(p, func(n *capability.Node) {
			switch got, ok := n.Labels[key]; {
			case !ok:
				missing = append(missing, n.Name)
			case got != want:
				other[got] = append(other[got], n.Name)
			}
		})
		subject, at := "pool "+p.Name, p.Positions.At("labels", key)
		if len(missing) > 0 {
			c.report(finding{
				rule: "nodes/lacks-label", severity: severity, subject: subject, at: at,
				message: fmt.Sprintf("%s; %s", have(missing, fmt.Sprintf("no label %s=%s", key, want)), remedy),
			})
		}
		for _, value := range sortedKeys(other) {
			c.report(finding{
				rule: "nodes/other-label", severity: warning, subject: subject, at: at,
				message: fmt.Sprintf("%s, and the pool asks for %s=%s; change one of the two", have(other[value], fmt.Sprintf("the label %s=%s", key, value)), key, want),
			})
		}
	}
}

// have says what nodes have: `nodes "a", "b" have no taint x`.
func have(nodes []string, what string) string { return ofNodes(nodes, "has", "have") + " " + what }

// ofNodes names a handful of nodes, and one of two verbs for them.
func ofNodes(nodes []string, one, several string) string {
	const most = 5
	switch {
	case len(nodes) == 1:
		return fmt.Sprintf("node %q %s", nodes[0], one)
	case len(nodes) > most:
		return fmt.Sprintf("%d nodes (%s and %d more) %s", len(nodes), quoted(nodes[:most]), len(nodes)-most, several)
	}
	return fmt.Sprintf("nodes %s %s", quoted(nodes), several)
}

// checkMadeByOthers reports nodes that somebody else makes than the pool says:
// what the pool asks for then never comes to new nodes.
func (c *compilation) checkMadeByOthers(p *pool) {
	expected := map[policy.ManagedBy]bool{policy.ManagedKarpenter: true, policy.ManagedNodeGroup: false}
	karpenters, known := expected[p.ManagedBy]
	by := map[string][]string{}
	c.members(p, func(n *capability.Node) {
		maker, name, ok := nodelabel.GroupOf(n.Labels)
		if ok && (!known || karpenters != (maker == nodelabel.Karpenter)) {
			what := fmt.Sprintf("node group %q of %s", name, maker)
			if maker == nodelabel.Karpenter {
				what = fmt.Sprintf("Karpenter's NodePool %q", name)
			}
			by[what] = append(by[what], n.Name)
		}
	})
	for _, what := range sortedKeys(by) {
		consequence := "what the pool asks of its nodes has to be said there; set managedBy accordingly"
		if p.ManagedBy == policy.ManagedLive {
			consequence = "it makes new ones without what the pool asks, until the next kubectl sched apply; to leave no gap say it there, and set managedBy accordingly"
		}
		c.report(finding{
			rule: "nodes/other-maker", severity: info, subject: "pool " + p.Name, at: p.Positions.At("managedBy"),
			message: fmt.Sprintf("%s made by %s; %s", ofNodes(by[what], "was", "were"), what, consequence),
		})
	}
}

// checkWritten reports a live pool in a cluster that nothing is applied to.
func (c *compilation) checkWritten(p *pool) {
	if c.facts.cluster == nil || c.facts.cluster.Surface != policy.SurfaceRender {
		return
	}
	c.report(finding{
		rule: "nodes/never-written", severity: warning, subject: "pool " + p.Name, at: p.Positions.At("managedBy"),
		message: fmt.Sprintf("its nodes are written by kubectl sched apply, and nothing is applied to cluster %q, whose surface is \"render\"; say who makes its nodes, or give the cluster another surface", c.facts.cluster.Name),
		related: []diag.Related{{Range: c.facts.cluster.Positions.At("surface"), Message: fmt.Sprintf("cluster %q", c.facts.cluster.Name)}},
	})
}

// checkSettable reports labels that nobody can give a node, or not the one who
// is to.
func (c *compilation) checkSettable(p *pool, e NodeEffect) {
	subject := "pool " + p.Name
	for _, key := range sortedKeys(p.Labels) {
		if nodelabel.IsGiven(key) {
			c.report(finding{
				rule: "nodes/given-label", subject: subject, at: p.Positions.At("labels", key),
				message: fmt.Sprintf("label %q says what a node is or who made it, and cannot be given to it; say it under nodes, to pick nodes by it", key),
			})
		}
	}
	maker := e.Maker()
	if maker == "" {
		return
	}
	for _, key := range sortedKeys(e.Labels) {
		why := maker.Refusal(key)
		if why == "" || nodelabel.IsGiven(key) || c.allHave(p, key, e.Labels[key]) {
			continue
		}
		at := p.Positions.At("labels", key)
		if _, own := p.Labels[key]; !own {
			at = p.Positions.At("nodes", "labels", key)
		}
		c.report(finding{
			rule: "nodes/unsettable-label", severity: warning, subject: subject, at: at,
			message: fmt.Sprintf("%s cannot give its nodes the label %q, because %s; %s can", maker, key, why, nodelabel.Setters(key)),
		})
	}
	if p.taint == nil {
		return
	}
	if why := maker.TaintRefusal(p.taint.Key); why != "" {
		c.report(finding{
			rule: "nodes/unsettable-taint", severity: warning, subject: subject, at: p.Positions.At("dedicated", "taint", "key"),
			message: fmt.Sprintf("%s cannot give its nodes the taint %q, because %s; use a key of a domain of your own", maker, p.taint.Key, why),
		})
	}
}

// allHave reports whether the pool has nodes, all with the label: then somebody
// gives it to them.
func (c *compilation) allHave(p *pool, key, value string) bool {
	some, all := false, true
	c.members(p, func(n *capability.Node) { some, all = true, all && n.Labels[key] == value })
	return some && all
}
