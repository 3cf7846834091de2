package compiler

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// affinityWish is one term of pod affinity or, with apart, of anti-affinity.
type affinityWish struct {
	apart    bool
	term     corev1.PodAffinityTerm
	required bool
	weight   int32
	reason   string
	origin   Origin
	// own says that the term counts the workload's own pods.
	own bool
	// mustWin counts for preferences.
	mustWin bool
	// plain says that revisions and runs are not told apart; noted where the pods
	// are not known yet.
	plain bool
}

// order is by what does not depend on the workload, so that it is the same on
// every surface.
func (a affinityWish) order(o affinityWish) int {
	static := func(w affinityWish) string {
		if w.own {
			return ""
		}
		return canonicalAffinity(w.term)
	}
	return cmp.Or(cmp.Compare(a.term.TopologyKey, o.term.TopologyKey), cmp.Compare(static(a), static(o)))
}

func (a affinityWish) intent() string {
	if a.apart {
		return "apart"
	}
	return "together"
}

func gatherTogether(d *draft, r *rule) { d.gatherColocations(r, r.Together, false) }

func gatherApart(d *draft, r *rule) { d.gatherColocations(r, r.Apart, true) }

// gatherColocations is the together and the apart intent.
func (d *draft) gatherColocations(r *rule, all map[string]policy.Colocation, apart bool) {
	intent := affinityWish{apart: apart}.intent()
	for _, name := range sortedKeys(all) {
		col := all[name]
		path := []string{intent, name}
		key, ok := d.topology(r, cmp.Or(col.On, "node"), intent, name, "on")
		if !ok {
			continue
		}
		if d.isDaemonSet() && col.Of.Kind == policy.EachWorkload {
			d.colocateDaemonSet(apart, key, col, r.author.origin(path...))
			continue
		}
		sub, problem := d.counted(r, col.Of)
		if problem != nil {
			d.report(finding{rule: problem.rule, policy: r.Name, at: r.author.at(append(slices.Clone(path), problem.path...)...), message: problem.message})
			continue
		}
		wish := affinityWish{
			apart:    apart,
			required: col.Strength == policy.Require,
			weight:   int32(col.Weight),
			origin:   r.author.origin(path...),
			own:      col.Of.Kind == policy.EachWorkload,
			mustWin:  col.MustWin,
			term: corev1.PodAffinityTerm{
				LabelSelector:     sub.selector,
				Namespaces:        sub.namespaces,
				NamespaceSelector: sub.namespaceSelector,
				TopologyKey:       key,
			},
		}
		wish.reason = "pod affinity says exactly this"
		if apart {
			wish.reason = "pod anti-affinity says exactly this"
		}
		// What is required holds for old and new pods alike; a preference is
		// about where the pods end up, so it does not mind those that go away.
		runs := d.t.RunLabel != "" && slices.Contains(sub.matchLabelKeys, d.t.RunLabel)
		if len(sub.matchLabelKeys) > 0 && !col.Plain && (!wish.required || runs) && d.c.facts.supports(31) {
			wish.term.MatchLabelKeys = sub.matchLabelKeys
			wish.reason += "; matchLabelKeys counts the pods of one revision or run alone"
		}
		d.affinities = append(d.affinities, wish)
	}
}

// colocateDaemonSet judges what is asked of pods that run one on each node.
func (d *draft) colocateDaemonSet(apart bool, key string, col policy.Colocation, o Origin) {
	switch {
	case apart && key == corev1.LabelHostname:
	case col.Strength == policy.Prefer:
		d.report(finding{
			rule: "compile/daemonset-spread", severity: info, policy: o.Policy, at: o.Range,
			message: "a DaemonSet runs one pod on each of its nodes, so a preference for where they are to each other has nothing to choose",
		})
	default:
		d.report(finding{
			rule: "compile/daemonset-spread", policy: o.Policy, at: o.Range,
			message: "a DaemonSet runs one pod on each of its nodes, so nothing can be required of where its pods are to each other; leave DaemonSets out with not: {kinds: [\"DaemonSet\"]}",
		})
	}
}

// canonicalAffinity writes a term so that two which say the same come out alike.
func canonicalAffinity(t corev1.PodAffinityTerm) string {
	namespaceSelector := "none"
	if t.NamespaceSelector != nil {
		namespaceSelector = canonicalSelector(t.NamespaceSelector)
	}
	return keyOf([]any{
		t.TopologyKey, canonicalSelector(t.LabelSelector), slices.Sorted(slices.Values(t.Namespaces)), namespaceSelector,
		slices.Sorted(slices.Values(t.MatchLabelKeys)), slices.Sorted(slices.Values(t.MismatchLabelKeys)),
	})
}

// affinityGroup is one term with all that asks for it.
type affinityGroup struct {
	affinityWish
	key     string
	origins []Origin
}

// groupAffinities joins equal terms of one side and one strength; the weights
// of preferences add up.
func groupAffinities(wishes []affinityWish, apart, required bool) []affinityGroup {
	var out []affinityGroup
	for _, w := range slices.SortedStableFunc(slices.Values(wishes), affinityWish.order) {
		if w.apart != apart || w.required != required {
			continue
		}
		key := canonicalAffinity(w.term)
		i := slices.IndexFunc(out, func(g affinityGroup) bool { return g.key == key })
		if i < 0 {
			out = append(out, affinityGroup{affinityWish: w, key: key, origins: []Origin{w.origin}})
			continue
		}
		out[i].mustWin = out[i].mustWin || w.mustWin
		out[i].weight = min(maxWeight, out[i].weight+w.weight)
		out[i].origins = append(out[i].origins, w.origin)
	}
	return out
}

// settlePodAffinity unites the pod affinity and anti-affinity terms with the
// manifest's.
func (d *draft) settlePodAffinity() {
	if len(d.affinities) == 0 || d.reportTornApart() {
		return
	}
	for _, apart := range []bool{false, true} {
		d.settleRequiredPods(apart)
		d.settlePreferredPods(apart)
	}
}

func (d *draft) settleRequiredPods(apart bool) {
	side := d.podTerms(apart)
	out := slices.Clone(side.required)
	for _, g := range groupAffinities(d.affinities, apart, true) {
		if slices.ContainsFunc(out, func(t corev1.PodAffinityTerm) bool { return canonicalAffinity(t) == g.key }) || !d.carries(side.field, g.origins...) {
			continue
		}
		out = append(out, g.term)
		d.effect(string(side.field)+".requiredDuringSchedulingIgnoredDuringExecution", g.term, g.reason, g.origins...)
	}
	if len(out) > len(side.required) {
		d.setPodTerms(apart, out, side.preferred)
	}
}

func (d *draft) settlePreferredPods(apart bool) {
	side := d.podTerms(apart)
	out := slices.Clone(side.preferred)
	changed := false
	for _, g := range groupAffinities(d.affinities, apart, false) {
		want := corev1.WeightedPodAffinityTerm{Weight: g.weight, PodAffinityTerm: g.term}
		i := slices.IndexFunc(out, func(t corev1.WeightedPodAffinityTerm) bool { return canonicalAffinity(t.PodAffinityTerm) == g.key })
		if i >= 0 && out[i].Weight >= g.weight || !d.carries(side.field, g.origins...) {
			continue
		}
		if i < 0 {
			out = append(out, want)
		} else {
			out[i].Weight = g.weight
		}
		changed = true
		d.effect(string(side.field)+".preferredDuringSchedulingIgnoredDuringExecution", want,
			g.reason+"; weights only count beside the pod's other preferences", g.origins...)
	}
	if changed {
		d.setPodTerms(apart, side.required, out)
	}
}

// podTerms are the lists of pod affinity or anti-affinity of the result so far.
type podTerms struct {
	field     workload.Field
	required  []corev1.PodAffinityTerm
	preferred []corev1.WeightedPodAffinityTerm
}

func (d *draft) podTerms(apart bool) podTerms {
	out := podTerms{field: workload.PodAffinity}
	if apart {
		out.field = workload.PodAntiAffinity
	}
	a := d.after.Affinity
	switch {
	case a == nil:
	case apart && a.PodAntiAffinity != nil:
		out.required, out.preferred = a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution
	case !apart && a.PodAffinity != nil:
		out.required, out.preferred = a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution
	}
	return out
}

func (d *draft) setPodTerms(apart bool, required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
	a := d.affinity()
	if apart {
		a.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required, PreferredDuringSchedulingIgnoredDuringExecution: preferred}
		return
	}
	a.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required, PreferredDuringSchedulingIgnoredDuringExecution: preferred}
}

// reportTornApart reports pods that are required both together and apart over
// the same domains, by two policies or by a policy and the manifest.
func (d *draft) reportTornApart() bool {
	torn := false
	key := func(t corev1.PodAffinityTerm) string {
		t.MatchLabelKeys = nil
		return canonicalAffinity(t)
	}
	report := func(a Origin, t corev1.PodAffinityTerm, related ...diag.Related) {
		torn = true
		d.report(finding{
			rule: "compile/contradiction", policy: a.Policy, at: a.Range, related: related,
			message: fmt.Sprintf("pods with %s are required both together and apart by %q, which no placement can do; take one of them out", describeSelector(t.LabelSelector), t.TopologyKey),
		})
	}
	for i, a := range d.affinities {
		if !a.required {
			continue
		}
		for _, b := range d.affinities[i+1:] {
			if b.required && a.apart != b.apart && key(a.term) == key(b.term) {
				report(a.origin, a.term, relatedOrigins([]Origin{b.origin}, "requires them "+b.intent())...)
			}
		}
		for j, t := range d.podTerms(!a.apart).required {
			if key(t) == key(a.term) {
				field := d.podTerms(!a.apart).field
				report(a.origin, a.term, diag.Related{
					Range:   d.manifestAt(field, "requiredDuringSchedulingIgnoredDuringExecution", j),
					Message: "the manifest's " + strings.TrimPrefix(string(field), "affinity."),
				})
			}
		}
	}
	return torn
}
