package compiler

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
	"github.com/kubectl-sched/kubectl-sched/compiler/nodeexpr"
	"github.com/kubectl-sched/kubectl-sched/compiler/nodelabel"
	"github.com/kubectl-sched/kubectl-sched/policy"
)

// NodeEffect is what a pool asks of its nodes.
type NodeEffect struct {
	Pool      string
	ManagedBy policy.ManagedBy
	// Makers are the names of the NodePools or node groups that make the nodes;
	// nil where the kubelets or we give nodes what the pool asks.
	Makers []string
	// Provider is whose node groups they are; empty where that is not known.
	Provider policy.Provider
	// Taint is the pool's own taint; nil if it is not dedicated.
	Taint *corev1.Taint
	// Taints are all taints that its nodes shall carry: its own, and those of the
	// pools that all of its nodes are in too. Of a live pool they are those of
	// live pools alone.
	Taints []corev1.Taint
	// Labels are the labels that its nodes shall carry and can be given: what the
	// pool says outright, and, unless it is live, what tells its nodes.
	Labels map[string]string
	// Selector describes its nodes: they meet any one of the terms.
	Selector []corev1.NodeSelectorTerm
	// Requirements are what the description demands besides Labels. There are
	// none where it has several terms.
	Requirements []corev1.NodeSelectorRequirement
	// Members are all nodes of the pool, sorted; empty where the nodes are not
	// known.
	Members []string
	// Yielded are those of Members that carry the taint of a pool within this one
	// instead of its own, sorted: a node has but one taint of a key and effect.
	Yielded []string
	// Nodes are the nodes of the pool that lack the taint or a label, sorted;
	// empty where the nodes are not known.
	Nodes []string
	// NodePools are those of Makers that are known, sorted by name.
	NodePools []capability.NodePool
	Level     Level
	Reason    string
	Origins   []Origin
}

// NewNodes says how nodes that join the pool later come by what it asks, as one
// sentence.
func (e NodeEffect) NewNodes() string {
	switch e.ManagedBy {
	case policy.ManagedKarpenter:
		return "Karpenter makes every node with what its NodePool says, and replaces the nodes that were made before"
	case policy.ManagedNodeGroup:
		return "the node group registers every node with it; whether it changes the nodes that are there depends on the provider"
	case policy.ManagedKubelet:
		return "a kubelet that is started so registers its node with it; nodes that are registered already must be changed by hand"
	case policy.ManagedLive:
		return "the next \"kubectl sched apply\" gives it to nodes that join later, and until then they lack it; register them with it to leave no gap"
	}
	return ""
}

// makers of nodes, by provider.
var providers = map[policy.Provider]nodelabel.Maker{
	policy.ProviderEKS: nodelabel.EKS, policy.ProviderGKE: nodelabel.GKE,
	policy.ProviderAKS: nodelabel.AKS, policy.ProviderClusterAPI: nodelabel.ClusterAPI,
}

// Maker returns who gives the nodes their labels; empty where that is us, or not
// known.
func (e NodeEffect) Maker() nodelabel.Maker {
	switch e.ManagedBy {
	case policy.ManagedKarpenter:
		return nodelabel.Karpenter
	case policy.ManagedKubelet:
		return nodelabel.Kubelet
	case policy.ManagedNodeGroup:
		return providers[e.Provider]
	case policy.ManagedLive:
	}
	return ""
}

// foresee gives the known nodes the labels and taints that applying writes
// before it writes any workload, so that all else is judged by what will be.
// Labels that are written can bring a node into another pool, and so on.
func (c *compilation) foresee() {
	c.actual = c.facts.Nodes
	if c.Surface == policy.SurfaceRender || c.Surface == "" {
		return
	}
	nodes := slices.Clone(c.facts.Nodes)
	var live []*pool
	for _, name := range sortedKeys(c.pools) {
		if p := c.pools[name]; p.ManagedBy == policy.ManagedLive && !p.broken {
			live = append(live, p)
		}
	}
	for changed := true; changed; {
		changed = false
		for _, p := range live {
			for i := range nodes {
				changed = p.label(&nodes[i]) || changed
			}
		}
	}
	for _, p := range live {
		for i := range nodes {
			if n := &nodes[i]; p.taint != nil && p.has(n) && !c.yields(p, n) && !carries(n, func(t corev1.Taint) bool { return t.MatchTaint(p.taint) }) {
				n.Taints = append(slices.Clone(n.Taints), *p.taint)
			}
		}
	}
	c.facts.Nodes = nodes
}

// has reports whether the node is the pool's.
func (p *pool) has(n *capability.Node) bool { return p.expr.Matches(n.Labels, n.Name) }

// label gives a node of the pool the labels that it has no value for, and
// reports whether there were any.
func (p *pool) label(n *capability.Node) bool {
	missing := map[string]string{}
	for key, value := range p.Labels {
		if _, ok := n.Labels[key]; !ok {
			missing[key] = value
		}
	}
	if len(missing) == 0 || !p.has(n) {
		return false
	}
	maps.Copy(missing, n.Labels)
	n.Labels = missing
	return true
}

func carries(n *capability.Node, which func(corev1.Taint) bool) bool {
	return slices.ContainsFunc(n.Taints, which)
}

// isTaint reports whether two taints are the same in all but their age.
func isTaint(t corev1.Taint) func(corev1.Taint) bool {
	return func(o corev1.Taint) bool { return o.MatchTaint(&t) && o.Value == t.Value }
}

// nodeEffects says what the pools ask of their nodes.
func (c *compilation) nodeEffects() {
	for _, name := range sortedKeys(c.pools) {
		p := c.pools[name]
		if p.broken || p.expr.IsFalse() {
			continue
		}
		e := NodeEffect{Pool: p.Name, ManagedBy: p.ManagedBy, Taint: p.taint, Selector: p.expr.Terms(), Level: LevelBuiltin}
		told := e.describe(p)
		if p.taint == nil && len(p.Labels) == 0 && !told {
			continue
		}
		c.addOuter(p, &e)
		e.explain(p, told)
		c.findMakers(p, &e)
		for i := range c.facts.Nodes {
			if !p.has(&c.facts.Nodes[i]) {
				continue
			}
			name, taint := c.actual[i].Name, e.Taint
			e.Members = append(e.Members, name)
			if taint != nil && c.yields(p, &c.facts.Nodes[i]) {
				e.Yielded, taint = append(e.Yielded, name), nil
			}
			if e.lacking(&c.actual[i], taint) {
				e.Nodes = append(e.Nodes, name)
			}
		}
		slices.Sort(e.Members)
		slices.Sort(e.Yielded)
		slices.Sort(e.Nodes)
		c.plan.Nodes = append(c.plan.Nodes, e)
	}
}

// describe fills in what the pool's own lines ask for. It reports whether
// whoever makes the nodes is asked for labels that only the description says:
// that is so where the document says who that is, and the nodes do not come
// with them by themselves.
func (e *NodeEffect) describe(p *pool) bool {
	e.Labels = map[string]string{}
	for key, value := range p.Labels {
		if !nodelabel.IsGiven(key) {
			e.Labels[key] = value
		}
	}
	if p.taint != nil {
		e.Taints = []corev1.Taint{*p.taint}
	}
	if p.ManagedBy == policy.ManagedLive || len(e.Selector) != 1 {
		return false
	}
	told := false
	for _, r := range e.Selector[0].MatchExpressions {
		switch {
		case r.Operator == corev1.NodeSelectorOpIn && len(r.Values) == 1 && !nodelabel.IsGiven(r.Key):
			e.Labels[r.Key] = r.Values[0]
			_, said := p.Positions[policy.Pointer("managedBy")]
			told = told || said
		case p.Labels[r.Key] == "":
			e.Requirements = append(e.Requirements, r)
		}
	}
	return told
}

// addOuter adds the taints and labels of the other pools that all of the pool's
// nodes are in.
func (c *compilation) addOuter(p *pool, e *NodeEffect) {
	for _, name := range sortedKeys(c.pools) {
		outer := c.pools[name]
		if outer == p || outer.broken || p.ManagedBy == policy.ManagedLive && outer.ManagedBy != policy.ManagedLive || !nodeexpr.Implies(p.expr, outer.expr) {
			continue
		}
		// Of two pools of the same nodes neither is the outer one.
		if nodeexpr.Implies(outer.expr, p.expr) && !slices.Contains(p.within, outer) {
			continue
		}
		if outer.taint != nil && slices.Contains(p.within, outer) && !slices.ContainsFunc(e.Taints, func(t corev1.Taint) bool { return t.MatchTaint(outer.taint) }) {
			e.Taints = append(e.Taints, *outer.taint)
		}
		for key, value := range outer.Labels {
			if _, ok := e.Labels[key]; !ok {
				e.Labels[key] = value
			}
		}
	}
}

// explain says where the effect comes from, and why it is said so.
func (e *NodeEffect) explain(p *pool, told bool) {
	if p.taint != nil {
		e.Reason = "a taint keeps off every pod that does not tolerate it; who may tolerate it is checked when policies are compiled"
		e.Origins = append(e.Origins, Origin{Range: p.Positions.At("dedicated")})
	} else {
		e.Reason = "the nodes are told by their labels, which whoever makes them has to give them"
	}
	if len(p.Labels) > 0 {
		e.Origins = append(e.Origins, Origin{Range: p.Positions.At("labels")})
	}
	if told || len(e.Origins) == 0 {
		e.Origins = append(e.Origins, Origin{Range: p.Positions.At("nodes")})
	}
	slices.SortFunc(e.Origins, func(a, b Origin) int { return a.Range.Start.Compare(b.Range.Start) })
}

// yields reports whether a narrower pool, by which p is described or that is
// described by p, taints the node instead of it: its pods are the fewer.
func (c *compilation) yields(p *pool, n *capability.Node) bool {
	return c.anyPool(func(q *pool) bool {
		if q == p || q.taint == nil || q.broken || !nested(p, q) || !q.taint.MatchTaint(p.taint) || !q.has(n) || !nodeexpr.Implies(q.expr, p.expr) {
			return false
		}
		return !nodeexpr.Implies(p.expr, q.expr) || slices.Contains(p.within, q)
	})
}

// nested reports whether one of the pools is described by the other, so that it
// is meant that they have nodes in common.
func nested(p, q *pool) bool { return slices.Contains(p.within, q) || slices.Contains(q.within, p) }

// lacking reports whether the node has not got the taint, if there is one, or
// one of the labels.
func (e *NodeEffect) lacking(n *capability.Node, taint *corev1.Taint) bool {
	if taint != nil && !carries(n, isTaint(*taint)) {
		return true
	}
	for key, value := range e.Labels {
		if got, ok := n.Labels[key]; !ok || got != value {
			return true
		}
	}
	return false
}

// findMakers fills in who makes the pool's nodes, and what is known of them.
func (c *compilation) findMakers(p *pool, e *NodeEffect) {
	switch p.ManagedBy {
	case policy.ManagedKarpenter:
		e.Makers = c.nodePoolNames(p)
		for _, np := range c.facts.NodePools {
			if slices.Contains(e.Makers, np.Name) {
				e.NodePools = append(e.NodePools, np)
			}
		}
	case policy.ManagedNodeGroup:
		e.Provider, e.Makers = c.nodeGroups(p)
	case policy.ManagedKubelet, policy.ManagedLive:
	}
}

// nodeGroups returns whose node groups make the pool's nodes, and their names:
// what the document says, else what the labels of the nodes tell.
func (c *compilation) nodeGroups(p *pool) (policy.Provider, []string) {
	var provider policy.Provider
	var names []string
	if p.NodeGroup != nil {
		provider, names = p.NodeGroup.Provider, p.NodeGroup.Names
	}
	told := c.groupsTold(p.has)
	if len(told) == 0 {
		// Not even the names are known, but what kind of cluster it is may be.
		told = c.groupsTold(func(*capability.Node) bool { return true })
		for provider := range told {
			told[provider] = nil
		}
	}
	if provider == "" && len(told) == 1 {
		for only := range told {
			provider = only
		}
	}
	if len(names) == 0 {
		names = sortedKeys(told[provider])
	}
	if len(names) == 0 {
		names = []string{p.Name}
	}
	return provider, names
}

// groupsTold returns the names of the node groups that the labels of the nodes
// tell, by provider.
func (c *compilation) groupsTold(which func(*capability.Node) bool) map[policy.Provider]map[string]bool {
	told := map[policy.Provider]map[string]bool{}
	for i := range c.facts.Nodes {
		n := &c.facts.Nodes[i]
		maker, name, ok := nodelabel.GroupOf(n.Labels)
		if !ok || !which(n) {
			continue
		}
		for provider, m := range providers {
			if m == maker {
				if told[provider] == nil {
					told[provider] = map[string]bool{}
				}
				told[provider][name] = true
			}
		}
	}
	return told
}
