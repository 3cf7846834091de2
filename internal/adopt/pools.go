package adopt

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-sched/kubectl-sched/compiler/nodeexpr"
	"github.com/kubectl-sched/kubectl-sched/compiler/nodelabel"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// pool is a dedicated pool that the pieces show: nodes with a label and a taint,
// for workloads that require the one and tolerate the other.
type pool struct {
	policy.Pool
	label selectorLabel
	taint corev1.Taint
	why   string
}

// usesOf are the templates that require a label, and that tolerate a taint.
type usesOf struct {
	labels map[selectorLabel][]*template
	taints map[corev1.Taint][]*template
}

// findPools finds dedicated pools: by the nodes, where they are known, else by who
// requires and tolerates what.
func (w *work) findPools() {
	uses := usesOf{map[selectorLabel][]*template{}, map[corev1.Taint][]*template{}}
	for _, t := range w.templates {
		if t.left != "" {
			continue
		}
		for _, p := range t.pieces {
			if l, ok := requiredLabel(p.wanted.value); ok {
				uses.labels[l] = append(uses.labels[l], t)
			}
			if tol, ok := p.wanted.value.(corev1.Toleration); ok && isExact(tol) && !passing(tol.Key) {
				taint := corev1.Taint{Key: tol.Key, Value: tol.Value, Effect: tol.Effect}
				uses.taints[taint] = append(uses.taints[taint], t)
			}
		}
	}
	var found []*pool
	if w.Capabilities.NodesKnown {
		found = w.poolsOfNodes(uses)
	} else {
		found = poolsOfUses(uses)
	}
	slices.SortFunc(found, func(a, b *pool) int {
		return cmp.Or(-cmp.Compare(likeness(a), likeness(b)), cmp.Compare(a.label.Key, b.label.Key), cmp.Compare(a.label.Value, b.label.Value), cmp.Compare(a.taint.Key, b.taint.Key), cmp.Compare(a.taint.Value, b.taint.Value))
	})
	names := map[string]bool{}
	for _, p := range found {
		if slices.ContainsFunc(w.pools, func(o *pool) bool { return o.label == p.label || o.taint == p.taint }) {
			continue
		}
		p.Name = poolName(p.label)
		for n := 2; names[p.Name]; n++ {
			p.Name = fmt.Sprintf("%s-%d", poolName(p.label), n)
		}
		names[p.Name] = true
		w.describePool(p)
		w.pools = append(w.pools, p)
	}
	slices.SortFunc(w.pools, func(a, b *pool) int { return cmp.Compare(a.Name, b.Name) })
}

// requiredLabel returns the label that a piece requires, if it is one value.
func requiredLabel(value any) (selectorLabel, bool) {
	switch v := value.(type) {
	case selectorLabel:
		return v, true
	case nodeexpr.Requirement:
		if v.Operator == corev1.NodeSelectorOpIn && len(v.Values) == 1 && !v.Key.Field {
			return selectorLabel{v.Key.Name, v.Values[0]}, true
		}
	}
	return selectorLabel{}, false
}

// isExact reports whether the toleration is of one taint alone, as the compiler
// writes those of dedicated pools.
func isExact(t corev1.Toleration) bool {
	return t.Key != "" && (t.Operator == "" || t.Operator == corev1.TolerationOpEqual) && t.TolerationSeconds == nil &&
		(t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute)
}

// passing reports whether a taint says how a node fares, or that it runs the
// control plane, and not whom it is for.
func passing(key string) bool {
	return strings.HasPrefix(key, "node.kubernetes.io/") || strings.HasPrefix(key, "node.cloudprovider.kubernetes.io/") || strings.HasPrefix(key, "node-role.kubernetes.io/")
}

// poolsOfNodes finds the labels and taints that the same nodes have, and no others.
func (w *work) poolsOfNodes(uses usesOf) []*pool {
	with := map[corev1.Taint][]string{}
	labelled := map[selectorLabel][]string{}
	for _, n := range w.Capabilities.Nodes {
		for _, t := range n.Taints {
			if t.Effect != corev1.TaintEffectPreferNoSchedule && !passing(t.Key) {
				taint := corev1.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect}
				with[taint] = append(with[taint], n.Name)
			}
		}
		for k, v := range n.Labels {
			if l := (selectorLabel{k, v}); uses.labels[l] != nil {
				labelled[l] = append(labelled[l], n.Name)
			}
		}
	}
	var out []*pool
	for taint, nodes := range with {
		for l, names := range labelled {
			if slices.Equal(nodes, names) && slices.ContainsFunc(uses.labels[l], func(t *template) bool { return t.tolerates(taint) }) {
				out = append(out, &pool{label: l, taint: taint, why: fmt.Sprintf("the same %s have the label %s=%s and the taint %s, and no others have either", count(len(nodes), "node"), l.Key, l.Value, taint.ToString())})
			}
		}
	}
	return out
}

// poolsOfUses finds the labels and taints that the same workloads require and
// tolerate, and no others, where there is more to it than that one workload does.
func poolsOfUses(uses usesOf) []*pool {
	var out []*pool
	for l, require := range uses.labels {
		for taint, tolerate := range uses.taints {
			p := &pool{label: l, taint: taint}
			if slices.Equal(require, tolerate) && (len(require) > 1 || likeness(p) > 0) {
				p.why = fmt.Sprintf("the same %s require nodes with %s=%s and tolerate the taint %s, and no others do either", count(len(require), "workload"), l.Key, l.Value, taint.ToString())
				out = append(out, p)
			}
		}
	}
	return out
}

// likeness is how much the label and the taint look as if they were of one pool.
func likeness(p *pool) int {
	n := 0
	if p.label.Key == p.taint.Key {
		n += 2
	}
	if p.label.Value == p.taint.Value {
		n++
	}
	return n
}

// tolerates reports whether the template has a toleration of the taint.
func (t *template) tolerates(taint corev1.Taint) bool {
	return slices.ContainsFunc(t.pieces, func(p *piece) bool {
		tol, ok := p.wanted.value.(corev1.Toleration)
		return ok && tol.Key == taint.Key && (tol.Operator == corev1.TolerationOpExists || tol.Value == taint.Value) && (tol.Effect == "" || tol.Effect == taint.Effect)
	})
}

func poolName(l selectorLabel) string {
	if l.Value == "" || l.Value == "true" {
		return word(l.Key[strings.LastIndexByte(l.Key, '/')+1:])
	}
	return word(l.Value)
}

// providers are the makers that have node groups, as the language names them.
var providers = map[nodelabel.Maker]policy.Provider{
	nodelabel.EKS: policy.ProviderEKS, nodelabel.GKE: policy.ProviderGKE, nodelabel.AKS: policy.ProviderAKS,
}

// describePool fills in what the document says of the pool.
func (w *work) describePool(p *pool) {
	value := p.taint.Value
	p.Nodes = policy.NodeTerm{Labels: map[string]policy.Values{p.label.Key: {p.label.Value}}}
	p.Dedicated = &policy.Dedicated{Taint: &policy.Taint{Key: p.taint.Key, Value: &value, Effect: string(p.taint.Effect)}, Guard: policy.GuardOff}
	if value == "" {
		p.Dedicated.Taint.Value = nil
	}
	p.ManagedBy = policy.ManagedNodeGroup
	maker, ok := nodelabel.Group(p.label.Key)
	if !ok {
		return
	}
	if maker == nodelabel.Karpenter {
		p.ManagedBy, p.Karpenter = policy.ManagedKarpenter, &policy.Karpenter{NodePools: []string{p.label.Value}}
		return
	}
	p.NodeGroup = &policy.NodeGroup{Provider: providers[maker], Names: []string{p.label.Value}}
}

// requireByPool says a required label by the pool whose it is, for whom tolerates
// its taint: the compiler gives the toleration to all that require it.
func (w *work) requireByPool(t *template, r nodeexpr.Requirement) []phrase {
	l, ok := requiredLabel(r)
	if !ok {
		return nil
	}
	for _, p := range w.pools {
		if p.label != l || !t.tolerates(p.taint) {
			continue
		}
		name := p.Name
		return []phrase{intent("on-"+name, fmt.Sprintf("nodes of pool %s are required", name), false, func(to *policy.Policy) bool {
			term := policy.NodeTerm{}
			if to.Nodes != nil && to.Nodes.Require != nil {
				term = *to.Nodes.Require
			}
			if len(term.Pools) > 0 {
				return false
			}
			term.Pools = []string{name}
			nodesOf(to).Require = &term
			return true
		})}
	}
	return nil
}

// tolerateByPool says the toleration of a pool's taint: not at all, where the pool
// is required, else by tolerate.pools.
func (w *work) tolerateByPool(t *template, tol corev1.Toleration) []phrase {
	for _, p := range w.pools {
		if !isExact(tol) || p.taint != (corev1.Taint{Key: tol.Key, Value: tol.Value, Effect: tol.Effect}) {
			continue
		}
		name := p.Name
		var out []phrase
		if slices.ContainsFunc(t.pieces, func(o *piece) bool {
			r, ok := o.wanted.value.(nodeexpr.Requirement)
			return ok && len(w.requireByPool(t, r)) > 0 && p.label == selectorLabel{r.Key.Name, r.Values[0]}
		}) {
			out = append(out, phrase{rank: byIntent, says: "tolerated with pool " + name})
		}
		return append(out, intent("tolerate-"+name, fmt.Sprintf("tolerates the taint of pool %s", name), false, func(to *policy.Policy) bool {
			tolerate := policy.Tolerate{}
			if to.Tolerate != nil {
				tolerate = *to.Tolerate
			}
			if tolerate.All || slices.Contains(tolerate.Pools, name) {
				return false
			}
			tolerate.Pools = sorted(append(slices.Clone(tolerate.Pools), name))
			to.Tolerate = &tolerate
			return true
		}))
	}
	return nil
}

// policyPools are the pools as the document has them: those that policies name, or
// all that were found.
func (w *work) policyPools(all bool) []policy.Pool {
	var out []policy.Pool
	for _, p := range w.pools {
		if all || w.names(p.Name) {
			out = append(out, p.Pool)
		}
	}
	return out
}

// names reports whether a policy names the pool.
func (w *work) names(pool string) bool {
	return slices.ContainsFunc(w.policies, func(d *draft) bool {
		n, t := d.policy.Nodes, d.policy.Tolerate
		return n != nil && n.Require != nil && slices.Contains(n.Require.Pools, pool) || t != nil && slices.Contains(t.Pools, pool)
	})
}

// dropPools gives up the pools if an error is about them: they are an offer.
func (c *comparison) dropPools(f diag.Finding) {
	if f.Policy == "" && len(c.pools) > 0 {
		c.pools, c.poolsChanged = nil, true
	}
}

// poolComment is what the pool's comment says.
func (w *work) poolComment(name string) []string {
	for _, p := range w.pools {
		if p.Name == name {
			return []string{
				"Found: " + p.why + ".",
				"grants with guard: \"warn\" would keep others off who tolerate the taint.",
			}
		}
	}
	return nil
}

// reportedPools are the pools that are proposed.
func (w *work) reportedPools() []Pool {
	var out []Pool
	for _, p := range w.pools {
		if w.names(p.Name) {
			out = append(out, Pool{Name: p.Name, Why: p.why})
		}
	}
	return out
}
