package lint

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// spreadTaintedNodes looks for domains all of whose nodes keep the pods off.
func spreadTaintedNodes(t *template) {
	if !t.caps().NodesKnown {
		return
	}
	t.eachSpread(func(i int, c corev1.TopologySpreadConstraint) {
		if c.WhenUnsatisfiable != corev1.DoNotSchedule || c.NodeTaintsPolicy != nil || selectsNothing(c) {
			return
		}
		tainted, usable := map[string][]string{}, map[string]bool{}
		for _, n := range t.allowedNodes() {
			domain, ok := n.Labels[c.TopologyKey]
			switch {
			case !ok:
			case t.reach().keptOff[n]:
				tainted[domain] = append(tainted[domain], n.Name)
			default:
				usable[domain] = true
			}
		}
		var nodes []string
		domains := 0
		for _, domain := range slices.Sorted(maps.Keys(tainted)) {
			if !usable[domain] {
				nodes = append(nodes, tainted[domain]...)
				domains++
			}
		}
		if domains == 0 || len(usable) == 0 {
			return
		}
		f := t.report(diag.Warning, fmt.Sprintf("the spread over %q counts %d of %d domains that the pods cannot use, since they do not tolerate the taints of %s; set nodeTaintsPolicy: Honor, or pods beyond maxSkew in each other domain stay Pending", c.TopologyKey, domains, domains+len(usable), named(nodes)),
			workload.SpreadConstraints, i)
		f.Fix = t.insert("add nodeTaintsPolicy: Honor", "nodeTaintsPolicy: Honor", workload.SpreadConstraints, i)
	})
}
