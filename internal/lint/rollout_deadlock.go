package lint

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// rolloutDeadlock is for workloads that no policy changes; of the others the
// compiler says the same, with the policy's part in it.
func rolloutDeadlock(t *template) {
	r, replicas := t.w.Rollout, t.w.Replicas
	if !t.caps().NodesKnown || t.change != nil && len(t.change.Effects) > 0 || r == nil || r.Strategy != "RollingUpdate" || replicas == nil {
		return
	}
	i := slices.IndexFunc(t.affinityTerms(), func(a affinityTerm) bool {
		own := len(a.Namespaces) == 0 && a.NamespaceSelector == nil || slices.Contains(a.Namespaces, t.w.Namespace)
		return a.field == workload.PodAntiAffinity && a.TopologyKey == corev1.LabelHostname && own && len(a.MatchLabelKeys)+len(a.MismatchLabelKeys) == 0 && t.selectsOwn(a.LabelSelector)
	})
	if i < 0 {
		return
	}
	hosts := t.domains(corev1.LabelHostname)
	term := t.affinityTerms()[i]
	switch {
	case int(*replicas) > len(hosts):
		t.report(diag.Warning, fmt.Sprintf("one pod on each node leaves room for %d of %d pods on the nodes that can take them; the rest stay Pending", len(hosts), *replicas), term.field, term.path()...)
	case int(*replicas) == len(hosts) && r.MaxSurge > 0 && r.MaxUnavailable == 0:
		f := t.report(diag.Warning, fmt.Sprintf("one pod on each node leaves no node for the extra pod of a rollout, and no old pod may go first (maxUnavailable comes to 0 of %d), so that every rollout hangs; set maxSurge: 0 and maxUnavailable: 1", *replicas), term.field, term.path()...)
		f.Fix = &diag.Fix{Message: "in the workload's strategy.rollingUpdate set maxSurge: 0 and maxUnavailable: 1"}
	}
}
