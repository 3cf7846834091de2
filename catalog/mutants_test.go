package catalog_test

import (
	"fmt"
	"maps"
	"slices"

	"github.com/kubectl-sched/kubectl-sched/policy"
)

// mutant is a placement that lacks one thing.
type mutant struct {
	without   string
	placement *policy.Placement
}

// mutants returns the placement without each thing that its policies say, and its pools
// if they come of the entry too.
func mutants(p *policy.Placement, ofPools bool) (all []mutant) {
	policies := func(i int, what string, edit func(*policy.Policy)) {
		m := *p
		m.Policies = slices.Clone(p.Policies)
		edit(&m.Policies[i])
		all = append(all, mutant{fmt.Sprintf("%s of policy %q", what, p.Policies[i].Name), &m})
	}
	for i, q := range p.Policies {
		if q.Nodes != nil {
			for what, term := range map[string]bool{
				"require": q.Nodes.Require != nil, "forbid": q.Nodes.Forbid != nil, "prefer": q.Nodes.Prefer != nil, "disfavor": q.Nodes.Disfavor != nil,
			} {
				if !term {
					continue
				}
				policies(i, "nodes."+what, func(q *policy.Policy) {
					n := *q.Nodes
					switch what {
					case "require":
						n.Require = nil
					case "forbid":
						n.Forbid = nil
					case "prefer":
						n.Prefer = nil
					default:
						n.Disfavor = nil
					}
					q.Nodes = &n
				})
			}
		}
		for key := range q.Spread {
			policies(i, "spread."+key, func(q *policy.Policy) { q.Spread = maps.Clone(q.Spread); delete(q.Spread, key) })
		}
		for key := range q.Together {
			policies(i, "together."+key, func(q *policy.Policy) { q.Together = maps.Clone(q.Together); delete(q.Together, key) })
		}
		for key := range q.Apart {
			policies(i, "apart."+key, func(q *policy.Policy) { q.Apart = maps.Clone(q.Apart); delete(q.Apart, key) })
		}
		if q.Tolerate != nil {
			policies(i, "tolerate", func(q *policy.Policy) { q.Tolerate = nil })
			for name := range q.Tolerate.Taints {
				policies(i, "tolerate.taints."+name, func(q *policy.Policy) {
					tolerate := *q.Tolerate
					tolerate.Taints = maps.Clone(tolerate.Taints)
					delete(tolerate.Taints, name)
					q.Tolerate = &tolerate
				})
			}
			if len(q.Tolerate.ExceptPools) > 0 {
				policies(i, "tolerate.exceptPools", func(q *policy.Policy) { t := *q.Tolerate; t.ExceptPools = nil; q.Tolerate = &t })
			}
		}
		if q.Priority != nil {
			policies(i, "priority", func(q *policy.Policy) { q.Priority = nil })
		}
		if q.Gates != nil {
			if q.Gates.Approval {
				policies(i, "gates.approval", func(q *policy.Policy) { g := *q.Gates; g.Approval = false; q.Gates = &g })
			}
			if q.Gates.Quota != "" {
				policies(i, "gates.quota", func(q *policy.Policy) { g := *q.Gates; g.Quota = ""; q.Gates = &g })
			}
			if q.Gates.Window != nil {
				policies(i, "gates.window", func(q *policy.Policy) { g := *q.Gates; g.Window = nil; q.Gates = &g })
			}
		}
		if q.Cache != nil {
			policies(i, "cache", func(q *policy.Policy) { q.Cache = nil })
		}
		if q.GPUMemory != nil {
			policies(i, "gpuMemory", func(q *policy.Policy) { q.GPUMemory = nil })
			if q.GPUMemory.MinDevice != "" {
				policies(i, "gpuMemory.minDevice", func(q *policy.Policy) { g := *q.GPUMemory; g.MinDevice = ""; q.GPUMemory = &g })
			}
		}
		if q.Gang != nil {
			policies(i, "gang", func(q *policy.Policy) { q.Gang = nil })
			policies(i, "gang.within", func(q *policy.Policy) { g := *q.Gang; g.Within = ""; q.Gang = &g })
		}
		if q.Pack != nil {
			policies(i, "pack", func(q *policy.Policy) { q.Pack = nil })
		}
	}
	pools := func(i int, what string, edit func(*policy.Pool)) {
		m := *p
		m.Pools = slices.Clone(p.Pools)
		edit(&m.Pools[i])
		all = append(all, mutant{fmt.Sprintf("%s of pool %q", what, p.Pools[i].Name), &m})
	}
	for i, q := range p.Pools {
		if q.Dedicated == nil || !ofPools {
			continue
		}
		pools(i, "dedicated", func(q *policy.Pool) { q.Dedicated = nil })
		if q.Dedicated.Guard != policy.GuardOff {
			pools(i, "dedicated.guard", func(q *policy.Pool) { d := *q.Dedicated; d.Guard = policy.GuardOff; q.Dedicated = &d })
		}
	}
	return all
}
