package compiler

import (
	"cmp"
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-sched/kubectl-sched/internal/workload"
)

// maxWeight is the API's highest weight of a preference.
const maxWeight = 100

// weighedTerm is a preferred term with all that asks for it.
type weighedTerm struct {
	term    corev1.NodeSelectorTerm
	key     string
	weight  int32
	reason  string
	origins []Origin
	// wins are the mustWin preferences that it is a part of.
	wins []string
}

// settlePreferred unites the preferred terms of the policies with the
// manifest's. Equal terms of policies add up; one that the manifest has too is
// raised to the policies' weight, if that is more.
func (d *draft) settlePreferred() {
	wished := addUp(d.preferred)
	if len(wished) == 0 {
		return
	}
	var own []corev1.PreferredSchedulingTerm
	if a := d.after.Affinity; a != nil && a.NodeAffinity != nil {
		own = a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution
	}
	out := slices.Clone(own)
	var changed []weighedTerm
	for _, w := range wished {
		same, raised := false, false
		for i := range out {
			if keyOf(canonicalTerm(out[i].Preference)) != w.key {
				continue
			}
			same = true
			if out[i].Weight < w.weight {
				out[i].Weight, raised = w.weight, true
			}
		}
		if same && !raised {
			continue
		}
		if !same {
			out = append(out, corev1.PreferredSchedulingTerm{Weight: w.weight, Preference: w.term})
		}
		changed = append(changed, w)
	}
	if len(changed) == 0 {
		return
	}
	var origins []Origin
	for _, w := range changed {
		origins = append(origins, w.origins...)
	}
	if !d.carries(workload.NodeAffinity, uniqueOrigins(origins)...) {
		return
	}
	d.nodeAffinity().PreferredDuringSchedulingIgnoredDuringExecution = out
	for _, w := range changed {
		d.effect(preferredField, corev1.PreferredSchedulingTerm{Weight: w.weight, Preference: w.term}, w.reason, w.origins...)
	}
}

// addUp joins equal terms and adds their weights, up to the API's limit. The
// result is in the order of weight, then of the terms.
func addUp(terms []preferredTerm) []weighedTerm {
	var out []weighedTerm
	for _, t := range terms {
		t.term = canonicalTerm(t.term)
		key := keyOf(t.term)
		i := slices.IndexFunc(out, func(w weighedTerm) bool { return w.key == key })
		if i < 0 {
			out = append(out, weighedTerm{term: t.term, key: key, weight: t.weight, reason: t.reason, origins: []Origin{t.origin}})
			i = len(out) - 1
			if t.wins != "" {
				out[i].wins = []string{t.wins}
			}
			continue
		}
		if t.wins != "" && !slices.Contains(out[i].wins, t.wins) {
			out[i].wins = append(out[i].wins, t.wins)
		}
		out[i].weight += t.weight
		out[i].origins = append(out[i].origins, t.origin)
	}
	for i := range out {
		if out[i].weight > maxWeight {
			out[i].weight = maxWeight
			out[i].reason += "; the policies' weights add up to more than 100, which is the most that the API takes"
		} else if len(out[i].origins) > 1 {
			out[i].reason += "; the weight is the sum of the policies'"
		}
	}
	slices.SortStableFunc(out, func(a, b weighedTerm) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.key, b.key))
	})
	return out
}

// canonicalTerm returns the term with everything in order, and once.
func canonicalTerm(t corev1.NodeSelectorTerm) corev1.NodeSelectorTerm {
	t = *t.DeepCopy()
	for _, requirements := range []*[]corev1.NodeSelectorRequirement{&t.MatchExpressions, &t.MatchFields} {
		list := *requirements
		for i := range list {
			list[i].Values = slices.Compact(slices.Sorted(slices.Values(list[i].Values)))
		}
		slices.SortFunc(list, func(a, b corev1.NodeSelectorRequirement) int {
			return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Operator, b.Operator), slices.Compare(a.Values, b.Values))
		})
		*requirements = slices.CompactFunc(list, func(a, b corev1.NodeSelectorRequirement) bool {
			return a.Key == b.Key && a.Operator == b.Operator && slices.Equal(a.Values, b.Values)
		})
	}
	return t
}

// keyOf writes an API value as a key to compare it by. The API's types always
// have a JSON form.
func keyOf(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(data)
}
