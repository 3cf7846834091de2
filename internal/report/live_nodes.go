package report

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-sched/kubectl-sched/internal/apply"
)

// nodeLines says what happens to nodes, a line for each taint or label, and how
// nodes that join later come by it.
func nodeLines(c *apply.ChangeSet) []string {
	type what struct {
		text string
		gone bool
	}
	var order []what
	nodes, evicts := map[what][]string{}, map[what]bool{}
	var pools []string
	for _, n := range c.Nodes {
		w := what{text: n.Mark().String()}
		switch n.Action {
		case apply.Create, apply.Update:
			w.text += fmt.Sprintf(" (pool %s)", n.Pool)
			evicts[w] = n.Taint.Effect == corev1.TaintEffectNoExecute
			if !slices.Contains(pools, n.Pool) {
				pools = append(pools, n.Pool)
			}
		case apply.Delete:
			w.gone = true
		default:
			continue
		}
		if nodes[w] == nil {
			order = append(order, w)
		}
		nodes[w] = append(nodes[w], n.Name)
	}
	var lines []string
	for _, w := range order {
		line := fmt.Sprintf("gives %s %s", nodeNames(nodes[w]), w.text)
		switch {
		case w.gone:
			line = fmt.Sprintf("takes %s off %s", w.text, nodeNames(nodes[w]))
		case evicts[w]:
			line += ", which evicts the pods that do not tolerate it"
		}
		lines = append(lines, line)
	}
	if len(pools) > 0 {
		lines = append(lines, fmt.Sprintf("  nodes that join pool %s later get it by applying again; until then they lack it", strings.Join(pools, ", ")))
	}
	return lines
}

// nodeNames names a handful of nodes.
func nodeNames(names []string) string {
	const most = 5
	switch {
	case len(names) == 1:
		return "Node " + names[0]
	case len(names) > most:
		return fmt.Sprintf("%d Nodes (%s and %d more)", len(names), strings.Join(names[:most], ", "), len(names)-most)
	}
	return "Nodes " + strings.Join(names, ", ")
}
