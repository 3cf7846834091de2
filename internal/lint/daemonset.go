package lint

import (
	"fmt"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// daemonSetSkips is for DaemonSets without a policy; of the others the compiler
// says the same at the policy's line.
func daemonSetSkips(t *template) {
	if t.w.Group != "apps" || t.w.Kind != "DaemonSet" || !t.Capabilities.NodesKnown || t.change != nil {
		return
	}
	network, _ := workload.Lookup(t.w.Object, append(t.t.PodSpec[:len(t.t.PodSpec):len(t.t.PodSpec)], "hostNetwork")...)
	selected, skipped := compiler.DaemonSetNodes(t.pods, network == true, t.Capabilities.Nodes)
	if len(skipped) == 0 {
		return
	}
	t.report(diag.Warning, fmt.Sprintf("the DaemonSet runs on %d of the %d nodes that it is for, and skips %s; tolerate the taint, or select the other nodes", selected-len(skipped), selected, compiler.DescribeSkipped(skipped)),
		workload.Tolerations)
}
