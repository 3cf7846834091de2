package compiler

import (
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-sched/kubectl-sched/internal/workload"
)

// tolerationWish is one toleration that a policy asks for.
type tolerationWish struct {
	toleration corev1.Toleration
	reason     string
	origin     Origin
}

// wishToleration asks for a toleration that the policy names itself. Where it
// bears the taint of a dedicated pool, it needs that pool's grant like any other.
func (d *draft) wishToleration(t corev1.Toleration, o Origin, reason string) {
	for _, name := range sortedKeys(d.c.pools) {
		p := d.c.pools[name]
		if p.taint != nil && tolerates([]corev1.Toleration{t}, *p.taint) && !d.usable(p, o) {
			return
		}
	}
	d.tolerations = append(d.tolerations, tolerationWish{t, reason, o})
}

// toleratePool asks for the toleration of a dedicated pool, if it is granted.
func (d *draft) toleratePool(p *pool, o Origin, reason string) {
	if p.taint != nil && d.usable(p, o) {
		d.tolerations = append(d.tolerations, tolerationWish{exactToleration(*p.taint), reason, o})
	}
}

// gatherTolerate is the tolerate intent.
func gatherTolerate(d *draft, r *rule) {
	t := r.Tolerate
	if t == nil {
		return
	}
	for _, name := range sortedKeys(t.Taints) {
		o := r.author.origin("tolerate", "taints", name)
		tol := tolerationOf(t.Taints[name])
		if tol.TolerationSeconds != nil && tol.Effect != corev1.TaintEffectNoExecute {
			d.c.reportOnce("seconds"+r.Name+name, finding{
				rule: "policy/seconds-without-noexecute", policy: r.Name, at: r.author.at("tolerate", "taints", name, "seconds"),
				message: `seconds count for taints that evict, so they need effect: "NoExecute"`,
			})
			continue
		}
		d.wishToleration(tol, o, "a toleration says exactly this")
	}
	resolve := d.c.resolvePool(r.author)
	for i, name := range t.Pools {
		path := []string{"tolerate", "pools", strconv.Itoa(i)}
		p := resolve(name, path...)
		if p == nil {
			continue
		}
		for _, in := range p.within {
			d.toleratePool(in, r.author.origin(path...), fmt.Sprintf("the toleration of the taint of pool %q says exactly this", in.Name))
		}
	}
	switch {
	case t.All && len(t.ExceptPools) > 0:
		d.tolerateAllBut(r)
	case t.All:
		d.wishToleration(corev1.Toleration{Operator: corev1.TolerationOpExists}, r.author.origin("tolerate", "all"), "a toleration without a key tolerates every taint")
	}
}

// tolerateAllBut tolerates the taints that are known, except those of some
// pools, and keeps off those pools' nodes.
func (d *draft) tolerateAllBut(r *rule) {
	o := r.author.origin("tolerate", "exceptPools")
	excluded := map[string]bool{}
	var kept []corev1.Taint
	resolve := d.c.resolvePool(r.author)
	for i, name := range r.Tolerate.ExceptPools {
		path := []string{"tolerate", "exceptPools", strconv.Itoa(i)}
		p := resolve(name, path...)
		if p == nil || p.broken {
			continue
		}
		excluded[name] = true
		if p.taint != nil {
			kept = append(kept, *p.taint)
		}
		s := statement{expr: p.expr, path: path, origin: r.author.origin(path...), field: fmt.Sprintf("pool %q", name)}
		if e, ok := d.c.unless(r.author, s); ok {
			s.expr = e
			d.required = append(d.required, s)
		}
	}
	reason := fmt.Sprintf("the API has no toleration for all taints but some, so those that are known are listed: the built-in ones, those of the other pools, and those of %s; a taint that comes up later is tolerated after the next compilation",
		number(len(d.c.facts.Nodes), "known node"))
	for _, t := range d.knownTaints(excluded, o) {
		if !slices.ContainsFunc(kept, func(k corev1.Taint) bool { return tolerates([]corev1.Toleration{t}, k) }) {
			d.tolerations = append(d.tolerations, tolerationWish{t, reason, o})
		}
	}
}

// knownTaints returns tolerations of the built-in taints, of the dedicated
// pools that are not excluded, and of the known nodes outside the excluded ones.
func (d *draft) knownTaints(excluded map[string]bool, o Origin) []corev1.Toleration {
	out := builtinTaints(d.isDaemonSet())
	for _, name := range sortedKeys(d.c.pools) {
		p := d.c.pools[name]
		if p.taint != nil && !excluded[name] && d.usable(p, o) {
			out = append(out, exactToleration(*p.taint))
		}
	}
	for _, n := range d.c.facts.Nodes {
		if slices.ContainsFunc(sortedKeys(excluded), func(name string) bool { return d.c.pools[name].expr.Matches(n.Labels, n.Name) }) {
			continue
		}
		for _, t := range n.Taints {
			if !transient(t.Key) && !d.guarded(t) {
				out = append(out, exactToleration(t))
			}
		}
	}
	slices.SortFunc(out, compareTolerations)
	return slices.CompactFunc(out, func(a, b corev1.Toleration) bool { return compareTolerations(a, b) == 0 })
}

// guarded reports whether the taint is that of some dedicated pool: those are
// tolerated by grant alone.
func (d *draft) guarded(t corev1.Taint) bool {
	for _, p := range d.c.pools {
		if p.taint != nil && p.taint.MatchTaint(&t) && p.taint.Value == t.Value {
			return true
		}
	}
	return false
}

// builtinTaints are tolerations of the taints that Kubernetes itself sets; of
// those, a DaemonSet's controller adds all but the first by itself.
func builtinTaints(daemonSet bool) []corev1.Toleration {
	tolerate := func(key string, effect corev1.TaintEffect) corev1.Toleration {
		return corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: effect}
	}
	out := []corev1.Toleration{
		tolerate("node-role.kubernetes.io/control-plane", corev1.TaintEffectNoSchedule),
		tolerate(corev1.TaintNodeNetworkUnavailable, corev1.TaintEffectNoSchedule),
		tolerate("node.cloudprovider.kubernetes.io/uninitialized", corev1.TaintEffectNoSchedule),
	}
	if !daemonSet {
		out = append(out, daemonTolerations()...)
	}
	return out
}

// daemonTolerations are those that the DaemonSet controller gives to its pods.
func daemonTolerations() []corev1.Toleration {
	var out []corev1.Toleration
	for _, t := range []corev1.Taint{
		{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoExecute},
		{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute},
		{Key: corev1.TaintNodeDiskPressure, Effect: corev1.TaintEffectNoSchedule},
		{Key: corev1.TaintNodeMemoryPressure, Effect: corev1.TaintEffectNoSchedule},
		{Key: corev1.TaintNodePIDPressure, Effect: corev1.TaintEffectNoSchedule},
		{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule},
	} {
		out = append(out, corev1.Toleration{Key: t.Key, Operator: corev1.TolerationOpExists, Effect: t.Effect})
	}
	return out
}

// settleTolerations unites the tolerations. One that the manifest's imply is
// not added; of those asked for, one that another implies is not either.
func (d *draft) settleTolerations() {
	type group struct {
		toleration corev1.Toleration
		reason     string
		origins    []Origin
	}
	var wished []group
	for _, w := range d.tolerations {
		if slices.ContainsFunc(d.t.Pods.Tolerations, func(t corev1.Toleration) bool { return covers(t, w.toleration) }) {
			continue
		}
		i := slices.IndexFunc(wished, func(g group) bool { return compareTolerations(g.toleration, w.toleration) == 0 })
		if i < 0 {
			wished = append(wished, group{w.toleration, w.reason, []Origin{w.origin}})
			continue
		}
		wished[i].origins = append(wished[i].origins, w.origin)
	}
	slices.SortStableFunc(wished, func(a, b group) int { return compareTolerations(a.toleration, b.toleration) })
	var kept []group
	for i, w := range wished {
		if !slices.ContainsFunc(wished, func(o group) bool { return strictlyCovers(o.toleration, w.toleration) }) {
			kept = append(kept, wished[i])
		}
	}
	var origins []Origin
	for i := range kept {
		for _, w := range wished {
			if strictlyCovers(kept[i].toleration, w.toleration) {
				kept[i].origins = append(kept[i].origins, w.origins...)
			}
		}
		origins = append(origins, kept[i].origins...)
	}
	if len(kept) == 0 || !d.carries(workload.Tolerations, uniqueOrigins(origins)...) {
		return
	}
	out := slices.Clone(d.after.Tolerations)
	for _, w := range kept {
		out = append(out, w.toleration)
		d.effect(string(workload.Tolerations), w.toleration, w.reason, w.origins...)
	}
	d.after.Tolerations = out
}
