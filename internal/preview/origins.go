package preview

import (
	"strings"

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

// Origins are the policies' lines that made the plugin say what it said of pods of
// the workload, in the order of the plan; none where no policy has a part in it.
func Origins(plan *compiler.Plan, workload simulate.Ref, plugin string) []compiler.Origin {
	if plan == nil {
		return nil
	}
	var origins []compiler.Origin
	seen := map[compiler.Origin]bool{}
	add := func(list []compiler.Origin) {
		for _, o := range list {
			if !seen[o] {
				seen[o] = true
				origins = append(origins, o)
			}
		}
	}
	for _, c := range plan.Changes {
		if c.Workload.Ref() != workload.String() {
			continue
		}
		for _, e := range c.Effects {
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
	return origins
}
