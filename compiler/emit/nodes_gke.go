package emit

import (
	"fmt"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/compiler/nodelabel"
)

// gke emits what node pools of GKE are told, for Terraform (effects in capitals,
// as the API's NodeTaint has them) and for gcloud (effects as Kubernetes spells
// them).
func (e *nodeEmitter) gke(n compiler.NodeEffect) {
	labels, refused := settable(nodelabel.GKE, n)
	notes := append([]string{about(n), newNodes(n)}, refused...)
	notes = append(notes, demands(n)...)

	body := "node_config {\n" + terraformLabels("labels", labels, 2) + terraformTaints(n.Taints, 2) + "}\n"
	e.add("gke/"+n.Pool+".tf", append([]string{fmt.Sprintf("For Terraform: in resource \"google_container_node_pool\" of %s.", groupNames(n))}, notes...), body)

	var commands strings.Builder
	for _, name := range n.Makers {
		parts := []string{"gcloud container node-pools update " + name, `--cluster "$CLUSTER"`, `--location "$LOCATION"`}
		// One run changes one of them.
		if len(labels) > 0 {
			commands.WriteString(command(append(parts, "--node-labels '"+strings.Join(pairs(labels), ",")+"'")...))
		}
		if len(n.Taints) > 0 {
			commands.WriteString(command(append(parts, "--node-taints '"+strings.Join(taintPairs(n.Taints), ",")+"'")...))
		}
	}
	e.add("gke/"+n.Pool+".sh", append([]string{
		"For gcloud: it changes the node pool, and the nodes that it has. The lists here stand for the node pool's whole lists: add what it has already.",
	}, notes...), commands.String())
}
