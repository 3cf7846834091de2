package cli

import (
	"reflect"

	"github.com/kubectl-sched/kubectl-sched/compiler"
)

// collapse joins the plans of clusters that come out the same, keeping the
// order of the first of each.
func collapse(plans []clusterPlan) []clusterPlan {
	var joined []clusterPlan
next:
	for _, p := range plans {
		for i := range joined {
			if joined[i].Surface == p.Surface && same(joined[i].Plan, p.Plan) {
				joined[i].Clusters = append(joined[i].Clusters, p.Clusters...)
				continue next
			}
		}
		joined = append(joined, p)
	}
	return joined
}

// same reports whether two plans differ in nothing but the cluster's name.
func same(a, b *compiler.Plan) bool {
	x, y := *a, *b
	x.Cluster, y.Cluster = "", ""
	x.Changes, y.Changes = nil, nil
	if len(a.Changes) != len(b.Changes) || !reflect.DeepEqual(x, y) {
		return false
	}
	for i := range a.Changes {
		if !sameChange(a.Changes[i], b.Changes[i]) {
			return false
		}
	}
	return true
}

// sameChange compares without descending into the workload, which holds
// functions: from manifests both plans have the very same one.
func sameChange(a, b compiler.Change) bool {
	if a.Workload != b.Workload {
		return false
	}
	a.Workload, b.Workload = nil, nil
	return reflect.DeepEqual(a, b)
}
