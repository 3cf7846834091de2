package compiler

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
	"github.com/kubectl-sched/kubectl-sched/compiler/nodeexpr"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// checkPools looks at the nodes of the pools that are required, for taints that
// the result does not tolerate.
func (d *draft) checkPools() {
	if d.failed || !d.c.facts.NodesKnown {
		return
	}
	places := map[Origin][]*pool{}
	var order []Origin
	for _, u := range d.poolUses {
		if places[u.origin] == nil {
			order = append(order, u.origin)
		}
		places[u.origin] = append(places[u.origin], u.pool)
	}
	for _, o := range order {
		if !slices.Contains(d.ungranted, o) {
			d.checkPoolTaints(o, places[o])
		}
	}
}

// checkPoolTaints reports taints on the nodes of any of the pools: an error if
// no node is left, else a warning.
func (d *draft) checkPoolTaints(o Origin, pools []*pool) {
	var names, tainted []string
	taints := map[corev1.Taint]bool{}
	free := 0
	for _, p := range pools {
		names = append(names, p.Name)
	}
	for _, n := range d.c.facts.Nodes {
		in := slices.ContainsFunc(pools, func(p *pool) bool { return p.expr.Matches(n.Labels, n.Name) })
		if !in || !d.final.Matches(n.Labels, n.Name) {
			continue
		}
		bad := untolerated(n.Taints, d.after.Tolerations)
		if len(bad) == 0 {
			free++
			continue
		}
		tainted = append(tainted, n.Name)
		for _, t := range bad {
			taints[corev1.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect}] = true
		}
	}
	if len(tainted) == 0 {
		return
	}
	d.tainted = true
	f := finding{rule: "compile/untolerated-taint", policy: o.Policy, at: o.Range}
	for _, p := range pools {
		f.related = append(f.related, diag.Related{Range: p.Positions.At(), Message: fmt.Sprintf("pool %q", p.Name)})
	}
	f.message = fmt.Sprintf("the known nodes of pool %s carry %s, which the pods do not tolerate, so they would stay Pending; tolerate it, or make it the pool's dedicated taint", quoted(names), describeTaints(sortTaints(taints)))
	if free > 0 {
		f.severity = warning
		f.message = fmt.Sprintf("the pods do not tolerate %s on %s of pool %s, and so use its other nodes alone; tolerate it, if that is not meant", describeTaints(sortTaints(taints)), nodesNamed(tainted), quoted(names))
	}
	d.report(f)
}

func sortTaints(set map[corev1.Taint]bool) []corev1.Taint {
	var out []corev1.Taint
	for t := range set {
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b corev1.Taint) int { return strings.Compare(describeTaint(a), describeTaint(b)) })
	return out
}

// checkNodes looks whether any known node is left for the pods.
func (d *draft) checkNodes() {
	if d.failed || !d.c.facts.NodesKnown || len(d.required) == 0 || len(d.ungranted) > 0 {
		return
	}
	o := d.required[0].origin
	var reached []string
	taints := map[corev1.Taint]bool{}
	for _, n := range d.c.facts.Nodes {
		if !d.final.Matches(n.Labels, n.Name) {
			continue
		}
		bad := untolerated(n.Taints, d.after.Tolerations)
		if len(bad) == 0 {
			return
		}
		reached = append(reached, n.Name)
		for _, t := range bad {
			taints[corev1.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect}] = true
		}
	}
	switch {
	case len(reached) == 0:
		d.report(finding{
			rule: "compile/no-node", severity: d.missingNodesWeigh(), policy: o.Policy, at: o.Range,
			message: fmt.Sprintf("none of the %d known nodes is one with %q, so the pods stay Pending until there is one", len(d.c.facts.Nodes), d.final),
		})
	case len(d.poolUses) == 0:
		d.tainted = true
		d.report(finding{
			rule: "compile/untolerated-taint", policy: o.Policy, at: o.Range, related: relatedStatements(d.required[1:]),
			message: fmt.Sprintf("of the known nodes the pods can be on %s alone, and would stay Pending because they do not tolerate %s there; tolerate it", theNodes(reached), describeTaints(sortTaints(taints))),
		})
	}
}

// missingNodesWeigh is how much it matters that no node is there yet: where one
// is made on demand, not much.
func (d *draft) missingNodesWeigh() diag.Severity {
	if slices.ContainsFunc(d.poolUses, func(u poolUse) bool { return u.pool.ManagedBy == policy.ManagedKarpenter }) {
		return info
	}
	return warning
}

// checkPreferredPools looks for dedicated pools that are preferred by pods
// which cannot get onto them.
func (d *draft) checkPreferredPools() {
	for _, r := range d.rules {
		for _, u := range r.nodes.preferredPools {
			for _, p := range u.pool.within {
				if repels(*p.taint) && !tolerates(d.after.Tolerations, *p.taint) {
					d.report(finding{
						rule: "compile/preferred-taint", severity: warning, policy: r.Name, at: u.origin.Range,
						message: fmt.Sprintf("pool %q is preferred, but dedicated, and its taint %s is not tolerated, so the preference has no effect; add tolerate: pools: [%q]", p.Name, describeTaint(*p.taint), p.Name),
						related: []diag.Related{{Range: p.Positions.At("dedicated"), Message: "the pool's taint"}},
					})
				}
			}
		}
	}
}

// checkVolumes looks at the volumes that the pods are bound to, for any that
// cannot be used from the nodes that the policies leave.
func (d *draft) checkVolumes() {
	if d.failed || len(d.required) == 0 {
		return
	}
	manifest := nodeexpr.FromLabels(d.t.Pods.NodeSelector)
	if a := d.t.Pods.Affinity; a != nil && a.NodeAffinity != nil {
		if own, err := nodeexpr.FromSelector(a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution); err == nil {
			manifest, _ = nodeexpr.And(1<<20, manifest, own)
		}
	}
	for _, claim := range slices.Sorted(slices.Values(d.t.Claims)) {
		v, ok := d.c.facts.Volumes[d.w.Namespace+"/"+claim]
		if !ok || v.Affinity == nil || v.Affinity.Required == nil {
			continue
		}
		volume, err := nodeexpr.FromSelector(v.Affinity.Required)
		if err != nil || d.reaches(volume, d.final) || !d.reaches(volume, manifest) {
			continue
		}
		at := d.required[0]
		for _, s := range d.required {
			if !d.reaches(volume, manifest, s.expr) {
				at = s
				break
			}
		}
		d.report(finding{
			rule: "compile/volume-elsewhere", policy: at.origin.Policy, at: at.origin.Range,
			message: fmt.Sprintf("volume %q of claim %q can be used only from nodes with %q, and the policy needs nodes with %q; move the data first, or spare the workload by an exception", v.Name, claim, volume, at.expr),
		})
	}
}

// reaches reports whether some node can meet all expressions: any that could
// exist, or, where the nodes are known, any that does.
func (d *draft) reaches(exprs ...nodeexpr.Expr) bool {
	all, err := nodeexpr.And(1<<12, exprs...)
	if err != nil {
		return true
	}
	if all.IsFalse() || !d.c.facts.NodesKnown {
		return !all.IsFalse()
	}
	return slices.ContainsFunc(d.c.facts.Nodes, func(n capability.Node) bool { return all.Matches(n.Labels, n.Name) })
}

// checkRollout predicts rollouts that can never place their surge pod: every
// node already has a pod that keeps others off, and none of them may go first.
func (d *draft) checkRollout() {
	r := d.w.Rollout
	if d.failed || !d.c.facts.NodesKnown || d.w.Replicas == nil || r == nil || r.Strategy != "RollingUpdate" || len(d.effects) == 0 {
		return
	}
	values := map[string]bool{}
	for _, n := range d.eligibleNodes().nodes {
		if v, ok := n.Labels[corev1.LabelHostname]; ok {
			values[v] = true
		}
	}
	room, at, why := d.roomPerNode(int32(len(values)))
	if room < 0 || *d.w.Replicas < room {
		return
	}
	f := finding{severity: warning, policy: at.Policy, at: at.Range}
	fix := "maxSurge: 0 and maxUnavailable: 1"
	switch {
	case *d.w.Replicas > room:
		f.rule = "compile/too-few-nodes"
		f.message = fmt.Sprintf("%s leaves room for %d of %d pods on the nodes that can take them; the rest stay Pending", why, room, *d.w.Replicas)
	case r.MaxSurge > 0 && r.MaxUnavailable == 0:
		f.rule = "compile/rollout-deadlock"
		f.message = fmt.Sprintf("%s leaves no node for the extra pod of a rollout, and no old pod may go first (maxUnavailable comes to 0 of %d), so every rollout would hang; set %s", why, *d.w.Replicas, fix)
		f.fix = &diag.Fix{Message: "in the workload's strategy.rollingUpdate set " + fix}
		f.related = []diag.Related{{Range: d.w.Source.At("spec", "strategy"), Message: "the rollout's strategy"}}
	default:
		return
	}
	d.report(f)
}

// roomPerNode returns how many of the workload's pods fit on that many nodes,
// by the tightest rule of the result, whose rule that is, and the rule; -1
// where none limits them.
func (d *draft) roomPerNode(nodes int32) (int32, Origin, string) {
	for i, t := range d.podTerms(true).required {
		if len(t.Namespaces) > 0 && !slices.Contains(t.Namespaces, d.w.Namespace) {
			continue
		}
		if t.TopologyKey != corev1.LabelHostname || t.LabelSelector == nil || len(t.MatchLabelKeys) > 0 || !selects(t.LabelSelector, d.t.Labels) {
			continue
		}
		at := Origin{Policy: d.rules[0].Name, Range: d.manifestAt(workload.PodAntiAffinity, "requiredDuringSchedulingIgnoredDuringExecution", i)}
		for _, a := range d.affinities {
			if a.apart && a.required && canonicalAffinity(a.term) == canonicalAffinity(t) {
				at = a.origin
			}
		}
		return nodes, at, "one pod on each node"
	}
	for i, c := range d.after.TopologySpreadConstraints {
		if c.TopologyKey != corev1.LabelHostname || c.WhenUnsatisfiable != corev1.DoNotSchedule || c.MinDomains == nil ||
			*c.MinDomains <= nodes || slices.Contains(c.MatchLabelKeys, d.t.RevisionLabel) {
			continue
		}
		at := Origin{Policy: d.rules[0].Name, Range: d.manifestAt(workload.SpreadConstraints, i)}
		for _, s := range d.spreads {
			if s.key == c.TopologyKey && s.require {
				at = s.origins[0]
			}
		}
		return nodes * c.MaxSkew, at, "a hard spread over nodes with minDomains " + fmt.Sprint(*c.MinDomains)
	}
	return -1, Origin{}, ""
}
