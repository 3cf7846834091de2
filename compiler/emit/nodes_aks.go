package emit

import (
	"fmt"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/compiler/nodelabel"
)

// aks emits what node pools of AKS are told, for Terraform and for the Azure
// command line; both have taints as key=value:Effect.
func (e *nodeEmitter) aks(n compiler.NodeEffect) {
	labels, refused := settable(nodelabel.AKS, n)
	taints, more := tainting(nodelabel.AKS, n)
	notes := append(append([]string{about(n), newNodes(n)}, refused...), more...)
	notes = append(notes, demands(n)...)
	for _, name := range n.Makers {
		if !isAKSName(name) {
			notes = append(notes, fmt.Sprintf("A node pool of AKS cannot be called %q (at most 12 lower-case letters and digits); name it under nodeGroup: names.", name))
		}
	}

	body := terraformLabels("node_labels", labels, 0)
	if len(taints) > 0 {
		body += fmt.Sprintf("node_taints = [\"%s\"]\n", strings.Join(taintPairs(taints), `", "`))
	}
	e.add("aks/"+n.Pool+".tf", append([]string{fmt.Sprintf("For Terraform: in resource \"azurerm_kubernetes_cluster_node_pool\" of %s.", groupNames(n))}, notes...), body)

	var commands strings.Builder
	for _, name := range n.Makers {
		parts := []string{"az aks nodepool update", `--resource-group "$RESOURCE_GROUP"`, `--cluster-name "$CLUSTER"`, "--name " + name}
		if len(labels) > 0 {
			parts = append(parts, "--labels "+strings.Join(pairs(labels), " "))
		}
		if len(taints) > 0 {
			parts = append(parts, "--node-taints '"+strings.Join(taintPairs(taints), ",")+"'")
		}
		if len(labels)+len(taints) > 0 {
			commands.WriteString(command(parts...))
		}
	}
	e.add("aks/"+n.Pool+".sh", append([]string{
		"For the Azure command line. The lists here stand for the node pool's whole lists: add what it has already.",
	}, notes...), commands.String())
}

// isAKSName reports whether a node pool of AKS may have the name, as its
// documentation says for Linux pools.
func isAKSName(name string) bool {
	if len(name) > 12 || name == "" || name[0] < 'a' || name[0] > 'z' {
		return false
	}
	return !strings.ContainsFunc(name, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
}
