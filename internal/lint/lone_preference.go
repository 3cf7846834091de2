package lint

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// lonePreference follows the scheduler's NodeAffinity, which scales its scores
// until the highest is 100.
func lonePreference(t *template) {
	mine := preferredTerms(t.t.Pods)
	if len(mine) != 1 || len(preferredTerms(t.pods)) != 1 || mine[0].Weight == 1 {
		return
	}
	t.report(diag.Info, fmt.Sprintf("the weight of a single preferred term means nothing, and %d is no stronger than 1: other scores can outvote it; require the nodes, or rank several terms by weight", mine[0].Weight),
		workload.NodeAffinity, "preferredDuringSchedulingIgnoredDuringExecution", 0, "weight")
}

func preferredTerms(pods workload.PodFields) []corev1.PreferredSchedulingTerm {
	if pods.Affinity == nil || pods.Affinity.NodeAffinity == nil {
		return nil
	}
	return pods.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution
}
