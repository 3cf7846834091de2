package emit

import (
	"fmt"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/compiler/nodelabel"
)

// eks emits what managed node groups of EKS are told, for eksctl, for Terraform
// and for the AWS command line. Effects are spelled as Kubernetes does for eksctl
// (its example 34-taints), and in capitals for the API (Taint in its reference).
func (e *nodeEmitter) eks(n compiler.NodeEffect) {
	labels, refused := settable(nodelabel.EKS, n)
	taints, more := tainting(nodelabel.EKS, n)
	notes := append(append([]string{about(n), newNodes(n)}, refused...), more...)
	notes = append(notes, demands(n)...)

	groups := make([]map[string]any, len(n.Makers))
	for i, name := range n.Makers {
		groups[i] = map[string]any{"name": name}
		if len(labels) > 0 {
			groups[i]["labels"] = labels
		}
		if len(taints) > 0 {
			groups[i]["taints"] = plainTaints(taints)
		}
	}
	e.add("eks/"+n.Pool+".eksctl.yaml", append([]string{"For eksctl: merge it into your ClusterConfig."}, notes...),
		e.yaml(map[string]any{"apiVersion": "eksctl.io/v1alpha5", "kind": "ClusterConfig", "managedNodeGroups": groups}))

	e.add("eks/"+n.Pool+".tf", append([]string{fmt.Sprintf("For Terraform: in resource \"aws_eks_node_group\" of %s.", groupNames(n))}, notes...),
		terraformLabels("labels", labels, 0)+terraformTaints(taints, 0))

	var commands strings.Builder
	for _, name := range n.Makers {
		parts := []string{"aws eks update-nodegroup-config", `--cluster-name "$CLUSTER"`, "--nodegroup-name " + name}
		if len(labels) > 0 {
			parts = append(parts, fmt.Sprintf("--labels 'addOrUpdateLabels={%s}'", strings.Join(pairs(labels), ",")))
		}
		if len(taints) > 0 {
			list := make([]string, len(taints))
			for i, t := range taints {
				list[i] = fmt.Sprintf("{key=%s,value=%s,effect=%s}", t.Key, t.Value, upperEffect(t.Effect))
			}
			parts = append(parts, fmt.Sprintf("--taints 'addOrUpdateTaints=[%s]'", strings.Join(list, ",")))
		}
		if len(labels)+len(taints) > 0 {
			commands.WriteString(command(parts...))
		}
	}
	e.add("eks/"+n.Pool+".sh", append([]string{"For the AWS command line: it changes the group, and the nodes that it has."}, notes...), commands.String())
}

func groupNames(n compiler.NodeEffect) string {
	if len(n.Makers) == 1 {
		return fmt.Sprintf("node group %q", n.Makers[0])
	}
	return fmt.Sprintf("node groups %q", n.Makers)
}
