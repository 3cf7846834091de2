package compiler

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-sched/kubectl-sched/compiler/profile"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// prepareMustWin notes which scores must outweigh all others.
func (c *compilation) prepareMustWin(r *rule) {
	want := func(score profile.Score, what string, path ...string) {
		r.need(profile.MustWin(score, fmt.Sprintf("%s says which nodes are better, and no field of a pod how much that counts beside other scores, so a profile gives %s its weight, and scores every node, not a sample", what, score), r.author.wishOrigin(path...)))
	}
	if n := r.Nodes; n != nil {
		if n.Prefer != nil && n.Prefer.MustWin {
			want(profile.NodeScore, "preferred node affinity", "nodes", "prefer", "mustWin")
		}
		if n.Disfavor != nil && n.Disfavor.MustWin {
			want(profile.NodeScore, "preferred node affinity", "nodes", "disfavor", "mustWin")
		}
	}
	for _, name := range sortedKeys(r.Spread) {
		if s := r.Spread[name]; s.MustWin && s.Strength == policy.Prefer {
			want(profile.SpreadScore, "a soft spread constraint", "spread", name, "mustWin")
		}
	}
	for intent, all := range map[string]map[string]policy.Colocation{"together": r.Together, "apart": r.Apart} {
		for _, name := range sortedKeys(all) {
			if col := all[name]; col.MustWin && col.Strength == policy.Prefer {
				want(profile.PodScore, "preferred pod affinity", intent, name, "mustWin")
			}
		}
	}
}

// wins reports whether the template's result has anything that the score could
// make win, and that nothing in the pod itself stands against it, which no weight
// of the score would outvote: a pod's preferences of one kind are one score.
func (d *draft) wins(w profile.Wish) bool {
	score, ok := w.Wins()
	switch {
	case !ok:
		return true
	case score == profile.NodeScore:
		return d.nodePreferencesWin(w.Origin)
	case score == profile.SpreadScore:
		return d.spreadWins(w.Origin)
	}
	return d.podPreferencesWin(w.Origin)
}

// nodePreferencesWin compares the weights of the mustWin terms with those of the
// others. NodeAffinity adds up the weights of the terms that a node meets and
// scales the sum so that the best node has 100 (helper.DefaultNormalizeScore).
func (d *draft) nodePreferencesWin(o profile.Origin) bool {
	a := d.after.Affinity
	if a == nil || a.NodeAffinity == nil {
		return false
	}
	terms := a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution
	groups := map[string][]int32{}
	var total, against int32
	var related []diag.Related
	wished := addUp(d.preferred)
	for i, t := range terms {
		total += t.Weight
		j := slices.IndexFunc(wished, func(x weighedTerm) bool { return x.key == keyOf(canonicalTerm(t.Preference)) })
		if j >= 0 && len(wished[j].wins) > 0 {
			group := wished[j].key
			if len(wished[j].wins) == 1 {
				group = wished[j].wins[0]
			}
			groups[group] = append(groups[group], t.Weight)
			continue
		}
		against += t.Weight
		message := fmt.Sprintf("a preference of weight %d", t.Weight)
		if j >= 0 {
			related = append(related, relatedOrigins(wished[j].origins, "has "+message)...)
		} else {
			related = append(related, diag.Related{Range: d.manifestAt(workload.NodeAffinity, "preferredDuringSchedulingIgnoredDuringExecution", i), Message: message + " in the manifest"})
		}
	}
	if len(groups) == 0 {
		return false
	}
	gap := smallestStep(groups)
	// Points are whole numbers of 100, so that a difference is rounded down.
	if gap > against && (gap-against)*100/total >= 1 {
		return true
	}
	d.report(finding{
		rule: "compile/cannot-win", policy: o.Policy, at: o.Range, related: related,
		message: fmt.Sprintf("nodes that mustWin prefers differ by as little as %d of the weights, and the pod's other node preferences add up to %d, all in one score of 100 points, so they can outvote it; lower their weights, raise this one's (to 100 at most), or let them be mustWin too", gap, against),
	})
	return false
}

// smallestStep returns by how little two nodes can differ that meet different
// terms of the groups, of each of which a node meets one term at most.
func smallestStep(groups map[string][]int32) int32 {
	sums := map[int32]bool{0: true}
	for _, name := range sortedKeys(groups) {
		next := maps.Clone(sums)
		for _, weight := range groups[name] {
			for sum := range sums {
				next[sum+weight] = true
			}
		}
		sums = next
	}
	ordered := slices.Sorted(maps.Keys(sums))
	step := ordered[len(ordered)-1]
	for i := 1; i < len(ordered); i++ {
		step = min(step, ordered[i]-ordered[i-1])
	}
	return step
}

// spreadWins looks for soft constraints that are not to win: PodTopologySpread
// adds all of a pod's up, and what each gives has no bound.
func (d *draft) spreadWins(o profile.Origin) bool {
	winners := map[string]bool{}
	for _, s := range d.spreads {
		if s.mustWin && !s.require {
			winners[s.key] = true
		}
	}
	found := false
	for i, c := range d.after.TopologySpreadConstraints {
		switch {
		case c.WhenUnsatisfiable != corev1.ScheduleAnyway:
		case winners[c.TopologyKey]:
			found = true
		default:
			d.cannotWin(o, fmt.Sprintf("the soft spread over %q adds to the same score without a bound, and could outvote it; let it be mustWin too, or require one of the two", c.TopologyKey),
				d.manifestAt(workload.SpreadConstraints, i))
			return false
		}
	}
	return found
}

// podPreferencesWin looks for preferences about other pods that are not to win:
// InterPodAffinity adds all up, for every pod that is there.
func (d *draft) podPreferencesWin(o profile.Origin) bool {
	found := false
	for _, apart := range []bool{false, true} {
		groups := groupAffinities(d.affinities, apart, false)
		side := d.podTerms(apart)
		for i, t := range side.preferred {
			if slices.ContainsFunc(groups, func(g affinityGroup) bool { return g.mustWin && g.key == canonicalAffinity(t.PodAffinityTerm) }) {
				found = true
				continue
			}
			d.cannotWin(o, fmt.Sprintf("the preference about pods with %s counts for each of them in the same score, and could outvote it; let it be mustWin too, or require one of the two", describeSelector(t.PodAffinityTerm.LabelSelector)),
				d.manifestAt(side.field, "preferredDuringSchedulingIgnoredDuringExecution", i))
			return false
		}
	}
	return found
}

func (d *draft) cannotWin(o profile.Origin, message string, other diag.Range) {
	d.report(finding{
		rule: "compile/cannot-win", policy: o.Policy, at: o.Range, message: message,
		related: []diag.Related{{Range: other, Message: "the other preference, or the template that gets it"}},
	})
}
