package lint

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// matchLabelKeysMinor is the minor version from which on matchLabelKeys are
// there without asking (KEP-3243, beta).
const matchLabelKeysMinor = 27

// spreadRollout is for Deployments, which make a new pod elsewhere while the old
// one still counts. A StatefulSet makes a pod anew in the place of the old one.
func spreadRollout(t *template) {
	r := t.w.Rollout
	rolls := t.w.Group == "apps" && t.w.Kind == "Deployment" && r != nil && r.Strategy == "RollingUpdate"
	if !rolls || t.w.Replicas != nil && *t.w.Replicas < 2 || t.caps().Minor != 0 && t.caps().Minor < matchLabelKeysMinor {
		return
	}
	t.eachSpread(func(i int, c corev1.TopologySpreadConstraint) {
		if c.WhenUnsatisfiable != corev1.DoNotSchedule || selectsNothing(c) || slices.Contains(c.MatchLabelKeys, t.t.RevisionLabel) {
			return
		}
		f := t.report(diag.Warning, fmt.Sprintf("the spread over %q counts the old pods of a rollout together with the new ones, which are uneven once the old ones are gone; add matchLabelKeys: [%s]", c.TopologyKey, t.t.RevisionLabel),
			workload.SpreadConstraints, i)
		if keys := fmt.Sprintf("matchLabelKeys: [%s]", t.t.RevisionLabel); len(c.MatchLabelKeys) == 0 {
			f.Fix = t.insert("add "+keys, keys, workload.SpreadConstraints, i)
		}
	})
}
