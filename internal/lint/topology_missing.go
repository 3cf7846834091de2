package lint

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// topologyMissing looks for nodes without the label that a constraint of the
// manifest tells domains by.
func topologyMissing(t *template) {
	nodes := t.usableNodes()
	if len(nodes) == 0 {
		return
	}
	lacking := func(key string) []string {
		t.reach().of(key)
		return t.reach().lacking[key]
	}
	t.eachSpread(func(i int, c corev1.TopologySpreadConstraint) {
		names := lacking(c.TopologyKey)
		hard := c.WhenUnsatisfiable == corev1.DoNotSchedule
		switch {
		case len(names) == 0:
		case hard && len(names) == len(nodes):
			t.report(diag.Error, fmt.Sprintf("no node that could take the pods has the label %q, so that all pods stay Pending; label the nodes, or spread over a key that they have", c.TopologyKey), workload.SpreadConstraints, i, "topologyKey")
		case hard:
			t.report(diag.Warning, fmt.Sprintf("the label %q is missing on %s, where the spread never lets a pod; add it, or require nodes that have it", c.TopologyKey, named(names)), workload.SpreadConstraints, i, "topologyKey")
		default:
			t.report(diag.Warning, fmt.Sprintf("the label %q is missing on %s: pods there are not counted, and the spread's score leaves it out; add the label", c.TopologyKey, named(names)), workload.SpreadConstraints, i, "topologyKey")
		}
	})
	for _, a := range t.affinityTerms() {
		names := lacking(a.TopologyKey)
		at := append(a.path(), "topologyKey")
		switch {
		case len(names) == 0:
		case a.field == workload.PodAntiAffinity:
			t.report(diag.Warning, fmt.Sprintf("the label %q is missing on %s, where the anti-affinity keeps nobody apart; add the label", a.TopologyKey, named(names)), a.field, at...)
		case len(names) == len(nodes):
			t.report(diag.Error, fmt.Sprintf("no node that could take the pods has the label %q, so that all pods stay Pending; label the nodes, or use a key that they have", a.TopologyKey), a.field, at...)
		default:
			t.report(diag.Warning, fmt.Sprintf("the label %q is missing on %s, where the affinity never lets a pod; add it, or require nodes that have it", a.TopologyKey, named(names)), a.field, at...)
		}
	}
}

// named lists nodes for a message, at most eight of them.
func named(names []string) string {
	const limit = 8
	more := ""
	if len(names) > limit {
		more = fmt.Sprintf(" and %d more", len(names)-limit)
		names = names[:limit]
	}
	if len(names) == 1 && more == "" {
		return fmt.Sprintf("node %q", names[0])
	}
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = fmt.Sprintf("%q", n)
	}
	return "nodes " + strings.Join(quoted, ", ") + more
}
