package compiler

import (
	"slices"

	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
	"github.com/kubectl-sched/kubectl-sched/policy"
)

// PoolMembers returns, for each pool of the placement, the names of the nodes
// that are in it once what apply writes is written, sorted; pools without a node
// are left out. Pools that cannot be made sense of, which Compile reports, are
// left out too.
func PoolMembers(placement *policy.Placement, caps capability.Capabilities) map[string][]string {
	c := newCompilation(Request{Placement: placement, Capabilities: caps, Surface: policy.SurfaceLive})
	c.findCluster()
	c.preparePools()
	c.foresee()
	members := map[string][]string{}
	for name, p := range c.pools {
		if p.broken {
			continue
		}
		for _, n := range c.facts.Nodes {
			if p.expr.Matches(n.Labels, n.Name) {
				members[name] = append(members[name], n.Name)
			}
		}
		slices.Sort(members[name])
	}
	return members
}
