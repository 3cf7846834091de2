package preview

import (
	"maps"
	"slices"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/internal/cluster/facts"
	"github.com/kubectl-sched/kubectl-sched/internal/cluster/snapshot"
	"github.com/kubectl-sched/kubectl-sched/policy"
)

// PoolsOf maps the snapshot's nodes to the pools of the placement. A node of several
// is shown in the smallest.
func PoolsOf(placement *policy.Placement, s *snapshot.Snapshot) Pools {
	members := compiler.PoolMembers(placement, facts.Capabilities(s))
	pools := Pools{}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		for _, node := range members[name] {
			if other := pools[node]; other == "" || len(members[name]) < len(members[other]) {
				pools[node] = name
			}
		}
	}
	return pools
}
