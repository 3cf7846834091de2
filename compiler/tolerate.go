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
	// needs are the dedicated pools that must grant it.
	needs []*pool
	// notDaemonSet says that the controller of DaemonSets sees to it itself.
	notDaemonSet bool
}

// tolerations asks for those tolerations that the pools grant.
func (d *draft) tolerate(wishes []tolerationWish) {
	for _, w := range wishes {
		if w.notDaemonSet && d.isDaemonSet() || slices.ContainsFunc(w.needs, func(p *pool) bool { return !d.usable(p, w.origin) }) {
			continue
		}
		d.tolerations = append(d.tolerations, w)
	}
}

// namedToleration is a toleration that the policy names itself. Where it bears
// the taint of a dedicated pool, it needs that pool's grant like any other.
func (c *compilation) namedToleration(t corev1.Toleration, o Origin, reason string) tolerationWish {
	w := tolerationWish{toleration: t, reason: reason, origin: o}
	for _, name := range sortedKeys(c.pools) {
		if p := c.pools[name]; p.taint != nil && tolerates([]corev1.Toleration{t}, *p.taint) {
			w.needs = append(w.needs, p)
		}
	}
	return w
}

// poolTolerations are the tolerations of a pool and of those that its nodes may
// be in, too.
func poolTolerations(p *pool, o Origin, reason string) []tolerationWish {
	var out []tolerationWish
	for _, in := range p.within {
		out = append(out, tolerationWish{toleration: exactToleration(*in.taint), reason: fmt.Sprintf(reason, in.Name), origin: o, needs: []*pool{in}})
	}
	return out
}

// tolerateRule is what a policy's tolerate comes to, whatever the workload.
type tolerateRule struct {
	wishes []tolerationWish
	// required keeps off the nodes of the excluded pools.
	required []statement
}

// gatherTolerate is the tolerate intent.
func gatherTolerate(d *draft, r *rule) {
	d.tolerate(r.tolerate.wishes)
	d.required = append(d.required, r.tolerate.required...)
}

func (c *compilation) prepareTolerate(r *rule) {
	t := r.Tolerate
	if t == nil {
		return
	}
	for _, name := range sortedKeys(t.Taints) {
		o := r.author.origin("tolerate", "taints", name)
		tol := tolerationOf(t.Taints[name])
		if tol.TolerationSeconds != nil && tol.Effect != corev1.TaintEffectNoExecute {
			c.report(finding{
				rule: "policy/seconds-without-noexecute", policy: r.Name, at: r.author.at("tolerate", "taints", name, "seconds"),
				message: `seconds count for taints that evict, so they need effect: "NoExecute"`,
			})
			continue
		}
		r.tolerate.wishes = append(r.tolerate.wishes, c.namedToleration(tol, o, "a toleration says exactly this"))
	}
	resolve := c.resolvePool(r.author)
	for i, name := range t.Pools {
		path := []string{"tolerate", "pools", strconv.Itoa(i)}
		if p := resolve(name, path...); p != nil {
			r.tolerate.wishes = append(r.tolerate.wishes, poolTolerations(p, r.author.origin(path...), "the toleration of the taint of pool %q says exactly this")...)
		}
	}
	switch {
	case t.All && len(t.ExceptPools) > 0:
		c.tolerateAllBut(r)
	case t.All:
		r.tolerate.wishes = append(r.tolerate.wishes, c.namedToleration(corev1.Toleration{Operator: corev1.TolerationOpExists}, r.author.origin("tolerate", "all"), "a toleration without a key tolerates every taint"))
	}
}

// tolerateAllBut tolerates the taints that are known, except those of some
// pools, and keeps off those pools' nodes.
func (c *compilation) tolerateAllBut(r *rule) {
	o := r.author.origin("tolerate", "exceptPools")
	excluded := map[string]bool{}
	var kept []corev1.Taint
	resolve := c.resolvePool(r.author)
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
		if e, ok := c.unless(r.author, s); ok {
			s.expr = e
			r.tolerate.required = append(r.tolerate.required, s)
		}
	}
	reason := fmt.Sprintf("the API has no toleration for all taints but some, so those that are known are listed: the built-in ones, those of the other pools, and those of %s; a taint that comes up later is tolerated after the next compilation",
		number(len(c.facts.Nodes), "known node"))
	for _, w := range c.knownTaints(excluded) {
		if !slices.ContainsFunc(kept, func(k corev1.Taint) bool { return tolerates([]corev1.Toleration{w.toleration}, k) }) {
			w.reason, w.origin = reason, o
			r.tolerate.wishes = append(r.tolerate.wishes, w)
		}
	}
}

// knownTaints returns tolerations of the built-in taints, of the dedicated
// pools that are not excluded, and of the known nodes outside the excluded ones.
func (c *compilation) knownTaints(excluded map[string]bool) []tolerationWish {
	var out []tolerationWish
	for _, t := range builtinTaints() {
		out = append(out, tolerationWish{toleration: t})
	}
	for _, t := range daemonTolerations() {
		out = append(out, tolerationWish{toleration: t, notDaemonSet: true})
	}
	for _, name := range sortedKeys(c.pools) {
		if p := c.pools[name]; p.taint != nil && !excluded[name] {
			out = append(out, tolerationWish{toleration: exactToleration(*p.taint), needs: []*pool{p}})
		}
	}
	for _, n := range c.facts.Nodes {
		if slices.ContainsFunc(sortedKeys(excluded), func(name string) bool { return c.pools[name].expr.Matches(n.Labels, n.Name) }) {
			continue
		}
		for _, t := range n.Taints {
			if !transient(t.Key) && !c.guarded(t) {
				out = append(out, tolerationWish{toleration: exactToleration(t)})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b tolerationWish) int { return compareTolerations(a.toleration, b.toleration) })
	return slices.CompactFunc(out, func(a, b tolerationWish) bool {
		return compareTolerations(a.toleration, b.toleration) == 0 && len(a.needs)+len(b.needs) == 0
	})
}

// guarded reports whether the taint is that of some dedicated pool: those are
// tolerated by grant alone.
func (c *compilation) guarded(t corev1.Taint) bool {
	for _, p := range c.pools {
		if p.taint != nil && p.taint.MatchTaint(&t) && p.taint.Value == t.Value {
			return true
		}
	}
	return false
}

// builtinTaints are tolerations of the taints that Kubernetes itself sets, but
// for daemonTolerations.
func builtinTaints() []corev1.Toleration {
	tolerate := func(key string, effect corev1.TaintEffect) corev1.Toleration {
		return corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: effect}
	}
	return []corev1.Toleration{
		tolerate("node-role.kubernetes.io/control-plane", corev1.TaintEffectNoSchedule),
		tolerate(corev1.TaintNodeNetworkUnavailable, corev1.TaintEffectNoSchedule),
		tolerate("node.cloudprovider.kubernetes.io/uninitialized", corev1.TaintEffectNoSchedule),
	}
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
	added := make([]corev1.Toleration, len(kept))
	for i, w := range kept {
		added[i] = w.toleration
	}
	out := append(withoutDefaults(d.after.Tolerations, added), added...)
	for _, w := range kept {
		d.effect(string(workload.Tolerations), w.toleration, w.reason, w.origins...)
	}
	d.after.Tolerations = out
}

// withoutDefaults leaves out tolerations that say, word for word, what the API
// server gives to every pod that does not say how long it tolerates the two
// taints (its DefaultTolerationSeconds plugin), where one that is added says it.
// A pod whose template says so would never have got them.
func withoutDefaults(own, added []corev1.Toleration) []corev1.Toleration {
	return slices.DeleteFunc(slices.Clone(own), func(t corev1.Toleration) bool {
		isDefault := (t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnreachable) && t.Operator == corev1.TolerationOpExists &&
			t.Effect == corev1.TaintEffectNoExecute && t.TolerationSeconds != nil && *t.TolerationSeconds == 300
		return isDefault && slices.ContainsFunc(added, func(a corev1.Toleration) bool {
			return (a.Key == "" || a.Key == t.Key) && (a.Effect == "" || a.Effect == corev1.TaintEffectNoExecute)
		})
	})
}
