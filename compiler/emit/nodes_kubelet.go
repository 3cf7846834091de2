package emit

import (
	"fmt"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/compiler/nodelabel"
)

// kubelet emits what kubelets are started with, below the folder: taints as
// configuration (registerWithTaints), and labels, which it has no field for, as
// a flag.
func (e *nodeEmitter) kubelet(folder string, n compiler.NodeEffect) {
	labels, refused := settable(nodelabel.Kubelet, n)
	notes := append([]string{about(n), newNodes(n)}, refused...)
	notes = append(notes, demands(n)...)
	if len(n.Taints) > 0 {
		flag := "--register-with-taints=" + strings.Join(taintPairs(n.Taints), ",")
		e.add(folder+n.Pool+".kubelet.yaml", append([]string{"For the kubelets' configuration file: merge it in. The same as a flag: " + flag}, notes...),
			e.yaml(map[string]any{"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "registerWithTaints": plainTaints(n.Taints)}))
	}
	if len(labels) > 0 || len(n.Taints) == 0 {
		body := ""
		if len(labels) > 0 {
			body = fmt.Sprintf("KUBELET_EXTRA_ARGS=\"--node-labels=%s\"\n", strings.Join(pairs(labels), ","))
		}
		e.add(folder+n.Pool+".kubelet.env", append([]string{"For the kubelets' command line: add it to the other labels."}, notes...), body)
	}
}
