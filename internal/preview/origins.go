package preview

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/internal/simulate"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/args"
)

// fieldsOf are the fields of a pod that a plugin goes by, as effects name them.
var fieldsOf = map[string][]string{
	"NodeAffinity":      {"affinity.nodeAffinity", "nodeSelector"},
	"TaintToleration":   {"tolerations"},
	"PodTopologySpread": {"topologySpreadConstraints"},
	"InterPodAffinity":  {"affinity.podAffinity", "affinity.podAntiAffinity"},
	"SchedulingGates":   {"schedulingGates"},
	"GangScheduling":    {"schedulingGroup", "metadata.labels"},
	args.Gang:           {"schedulingGroup", "metadata.labels"},
	args.GPUMemory:      {"metadata.annotations"},
	args.CacheLocality:  {"metadata.annotations", "metadata.labels"},
}

// Origins are the policies' lines that the plugin goes by for pods of the workload, in
// the order of the plan; none where no policy has a part in it.
func Origins(plan *compiler.Plan, workload simulate.Ref, plugin string) []compiler.Origin {
	return origins(plan, workload, plugin, func(compiler.Effect) bool { return true })
}

// Rejecting are those of Origins by which the plugin can turn a pod away: a preference
// never does.
func Rejecting(plan *compiler.Plan, workload simulate.Ref, plugin string) []compiler.Origin {
	return origins(plan, workload, plugin, func(e compiler.Effect) bool { return !isPreference(e) })
}

// isPreference reports whether the effect only makes some nodes better than others.
func isPreference(e compiler.Effect) bool {
	if c, ok := e.Value.(corev1.TopologySpreadConstraint); ok {
		return c.WhenUnsatisfiable == corev1.ScheduleAnyway
	}
	return strings.HasSuffix(e.Field, ".preferredDuringSchedulingIgnoredDuringExecution")
}

func origins(plan *compiler.Plan, workload simulate.Ref, plugin string, matters func(compiler.Effect) bool) []compiler.Origin {
	if plan == nil {
		return nil
	}
	var found []compiler.Origin
	seen := map[compiler.Origin]bool{}
	add := func(list []compiler.Origin) {
		for _, o := range list {
			if !seen[o] {
				seen[o] = true
				found = append(found, o)
			}
		}
	}
	for _, c := range plan.Changes {
		if c.Workload.Ref() != workload.String() {
			continue
		}
		for _, e := range c.Effects {
			if !matters(e) {
				continue
			}
			for _, field := range fieldsOf[plugin] {
				if strings.HasPrefix(e.Field, field) {
					add(e.Origins)
				}
			}
		}
	}
	if plugin == "TaintToleration" {
		// Who gave the nodes their taint.
		for _, n := range plan.Nodes {
			if n.Taint != nil {
				add(n.Origins)
			}
		}
	}
	return found
}
