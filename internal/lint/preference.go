package lint

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/kubectl-sched/kubectl-sched/compiler/profile"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

func preferenceRules() []Rule {
	return []Rule{
		{
			ID: "workload/lone-preference", Severity: diag.Info, Needs: Files, each: lonePreference,
			Doc: "The weight of a single preferred term means nothing: it is scaled until the best node has the full score, and other scores can outvote it.",
			Fix: "Require the nodes, or let a policy prefer them with mustWin: it outweighs the other scores by a profile of the bundled scheduler.",
		},
		{
			ID: "workload/preference-too-weak", Severity: diag.Info, Needs: Files, each: preferenceTooWeak,
			Doc: "The scores of preferred terms are scaled to 100 together. A term whose weight is less than a twentieth of all of them moves the sum of scores, with the scheduler's default weights, by less than other plugins do for a few percent of a node's CPU.",
			Fix: "Give the terms weights that are nearer to each other.",
		},
		{
			ID: "workload/preference-idle", Severity: diag.Info, Needs: Nodes, each: preferenceIdle,
			Doc: "A preferred term that every node meets which can take the pods, or none, makes no difference. Of one that only keeps away from nodes nothing is said where there are none of those.",
			Fix: "Prefer labels that some of the nodes have.",
		},
	}
}

const preferredTermsKey = "preferredDuringSchedulingIgnoredDuringExecution"

// lonePreference follows the scheduler's NodeAffinity, which scales its scores
// until the highest is 100.
func lonePreference(t *template) {
	mine := preferredTerms(t.t.Pods)
	if len(mine) != 1 || len(preferredTerms(t.pods)) != 1 || mine[0].Weight == 1 {
		return
	}
	t.report("", fmt.Sprintf("the weight of a single preferred term means nothing, and %d is no stronger than 1: other scores can outvote it; require the nodes, or let a policy prefer them with mustWin, which outweighs the other scores by a profile", mine[0].Weight),
		workload.NodeAffinity, preferredTermsKey, 0, "weight")
}

// leastShare is the share of all weights below which a term cannot matter.
const leastShare = 20

func preferenceTooWeak(t *template) {
	total := 0
	for _, term := range preferredTerms(t.pods) {
		total += int(term.Weight)
	}
	weights := profile.Of(profile.NewNeed()).Weights()
	others := int64(0)
	for w := range maps.Values(weights) {
		others += 100 * w
	}
	for i, term := range preferredTerms(t.t.Pods) {
		w := int(term.Weight)
		if w*leastShare >= total {
			continue
		}
		most := 100 * weights["NodeAffinity"] * int64(w) / int64(total)
		t.report("", fmt.Sprintf("of the weights of all preferred terms, %d, this is %d: it moves the score of a node by %d of %d points at most, and cannot matter against the others; give it at least %d", total, w, most, others, total/leastShare+1),
			workload.NodeAffinity, preferredTermsKey, i, "weight")
	}
}

func preferenceIdle(t *template) {
	nodes := t.usableNodes()
	if len(nodes) < 2 {
		return
	}
	for i, term := range preferredTerms(t.t.Pods) {
		met, known := t.reach().meeting(term)
		if !known {
			continue
		}
		switch met {
		case len(nodes):
			if !slices.ContainsFunc(term.Preference.MatchExpressions, asksFor) {
				continue // It keeps away from nodes that are not there at the moment.
			}
			t.report("", fmt.Sprintf("all %d nodes that can take the pods meet the term, so that it makes no difference; prefer labels that some of them have", len(nodes)), workload.NodeAffinity, preferredTermsKey, i)
		case 0:
			t.report("", fmt.Sprintf("none of the %d nodes that can take the pods meets the term, so that it makes no difference%s", len(nodes), t.unknownKey(term)), workload.NodeAffinity, preferredTermsKey, i)
		}
	}
}

// meeting counts the usable nodes that meet the term; false where it is none.
func (r *reach) meeting(term corev1.PreferredSchedulingTerm) (int, bool) {
	key := term.Preference.String()
	if n, ok := r.met[key]; ok {
		return n, true
	}
	parsed, err := nodeaffinity.NewPreferredSchedulingTerms([]corev1.PreferredSchedulingTerm{term})
	if err != nil || term.Weight < 1 {
		return 0, false
	}
	n := 0
	for _, node := range r.usable {
		if parsed.Score(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name, Labels: node.Labels}}) > 0 {
			n++
		}
	}
	if r.met == nil {
		r.met = map[string]int{}
	}
	r.met[key] = n
	return n, true
}

// unknownKey says which label of the term no node has, and which may have been
// meant.
func (t *template) unknownKey(term corev1.PreferredSchedulingTerm) string {
	known := map[string]bool{}
	for _, n := range t.caps().Nodes {
		for key := range n.Labels {
			known[key] = true
		}
	}
	for _, e := range term.Preference.MatchExpressions {
		if known[e.Key] {
			continue
		}
		if near, ok := diag.Nearest(e.Key, sortedKeys(known)); ok {
			return fmt.Sprintf("; no node has the label %q: did you mean %q?", e.Key, near)
		}
		return fmt.Sprintf("; no node has the label %q", e.Key)
	}
	return ""
}

func preferredTerms(pods workload.PodFields) []corev1.PreferredSchedulingTerm {
	if pods.Affinity == nil || pods.Affinity.NodeAffinity == nil {
		return nil
	}
	return slices.Clone(pods.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
}
