package lint

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

const requiredTerms = "requiredDuringSchedulingIgnoredDuringExecution"

// termsAreAlternatives looks for required terms that speak of different labels
// each, which looks like a list of demands. Alternatives for real mostly have a
// label in common.
func termsAreAlternatives(t *template) {
	terms := nodeTerms(t.t.Pods)
	if len(terms) < 2 {
		return
	}
	seen := map[string]bool{}
	var names []string
	for _, term := range terms {
		keys := termKeys(term)
		if len(keys) == 0 {
			return
		}
		for key := range keys {
			if seen[key] {
				return
			}
			seen[key] = true
		}
		names = append(names, strings.Join(slices.Sorted(maps.Keys(keys)), " and "))
	}
	t.report(diag.Warning, fmt.Sprintf("the %d node selector terms (on %s) are alternatives: a node that meets one of them will do; if all are meant, write them as one term", len(terms), strings.Join(names, "; on ")),
		workload.NodeAffinity, requiredTerms, "nodeSelectorTerms", 1)
}

func nodeTerms(pods workload.PodFields) []corev1.NodeSelectorTerm {
	if pods.Affinity == nil || pods.Affinity.NodeAffinity == nil || pods.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return nil
	}
	return pods.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
}

func termKeys(term corev1.NodeSelectorTerm) map[string]bool {
	keys := map[string]bool{}
	for _, e := range term.MatchExpressions {
		keys[e.Key] = true
	}
	for _, e := range term.MatchFields {
		keys[e.Key] = true
	}
	return keys
}
