package emit

import (
	"strings"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/compiler/nodelabel"
)

// clusterAPI emits what MachineDeployments of Cluster API are told, as patches.
// It keeps the labels of a few domains on nodes by itself, so those go to the
// Machines; all else goes through kubeadm to the kubelet that registers the node.
func (e *nodeEmitter) clusterAPI(n compiler.NodeEffect) {
	labels, refused := settable(nodelabel.ClusterAPI, n)
	synced, registered := map[string]string{}, map[string]string{}
	for key, value := range labels {
		if nodelabel.SyncedByClusterAPI(key) {
			synced[key] = value
		} else {
			registered[key] = value
		}
	}
	registration := map[string]any{}
	if len(registered) > 0 {
		registration["kubeletExtraArgs"] = []map[string]string{{"name": "node-labels", "value": strings.Join(pairs(registered), ",")}}
	}
	if len(n.Taints) > 0 {
		registration["taints"] = plainTaints(n.Taints)
	}
	var documents []string
	for _, name := range n.Makers {
		if len(synced) > 0 {
			documents = append(documents, e.yaml(map[string]any{
				"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineDeployment", "metadata": map[string]string{"name": name},
				"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{"labels": synced}}},
			}))
		}
		if len(registration) > 0 {
			documents = append(documents, e.yaml(map[string]any{
				"apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": "KubeadmConfigTemplate", "metadata": map[string]string{"name": name},
				"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"joinConfiguration": map[string]any{"nodeRegistration": registration}}}},
			}))
		}
	}
	notes := append([]string{
		"For Cluster API: patches of the MachineDeployment and of its KubeadmConfigTemplate, which may have another name. Lists here stand for whole lists.",
		about(n), newNodes(n), "A change of the KubeadmConfigTemplate comes to new machines alone: roll the MachineDeployment out.",
	}, refused...)
	e.add("cluster-api/"+n.Pool+".yaml", append(notes, demands(n)...), strings.Join(documents, "---\n"))
}
