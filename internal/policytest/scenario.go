package policytest

import (
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-sched/kubectl-sched/internal/simulate"
	"github.com/kubectl-sched/kubectl-sched/policy"
)

// shortKeys are what a test calls the usual labels.
var shortKeys = map[string]string{"zone": corev1.LabelTopologyZone, "region": corev1.LabelTopologyRegion, "node": corev1.LabelHostname}

// elastic are the groups that can get more nodes.
func (r *run) elastic() []simulate.Pool {
	var pools []simulate.Pool
	for _, group := range slices.Sorted(maps.Keys(r.test.Nodes)) {
		if r.test.Nodes[group].Grows {
			pools = append(pools, simulate.Pool{Name: group, Template: r.templates[group]})
		}
	}
	return pools
}

// steps are what happens after the workloads were applied.
func (r *run) steps(n names) []simulate.Step {
	var steps []simulate.Step
	for i, s := range r.test.After {
		at := []string{"after", strconv.Itoa(i)}
		switch {
		case len(s.Drain) > 0:
			for k, name := range s.Drain {
				r.nodeNamed(append(slices.Clone(at), "drain", strconv.Itoa(k)), name)
			}
			steps = append(steps, simulate.Drain{Nodes: s.Drain})
		case len(s.Lose) > 0:
			steps = append(steps, simulate.Lose{Nodes: r.lost(append(at, "lose"), s.Lose)})
		case len(s.Scale) > 0:
			for _, said := range slices.Sorted(maps.Keys(s.Scale)) {
				if ref, ok := r.one(n, append(slices.Clone(at), "scale", said), said); ok {
					steps = append(steps, simulate.Scale{Workload: ref, Replicas: int32(s.Scale[said])})
				}
			}
		case len(s.Rollout) > 0:
			for k, said := range s.Rollout {
				if ref, ok := r.one(n, append(slices.Clone(at), "rollout", strconv.Itoa(k)), said); ok {
					steps = append(steps, simulate.Restart{Workload: ref})
				}
			}
		case len(s.AddNodes) > 0:
			steps = append(steps, r.added(append(at, "addNodes"), s)...)
		case s.Replay:
			steps = append(steps, simulate.Replay{})
		}
	}
	return steps
}

// nodeNamed notes a node that is not there.
func (r *run) nodeNamed(at []string, name string) {
	var known []string
	for _, n := range r.snapshot.Nodes {
		if n.Name == name {
			return
		}
		known = append(known, n.Name)
	}
	r.bad(ruleUnknown, at, "there is no node %q%s", name, suggest(name, known))
}

// lost are the nodes with all of the labels.
func (r *run) lost(at []string, labels map[string]string) []string {
	var nodes []string
	for _, n := range r.snapshot.Nodes {
		all := true
		for key, value := range labels {
			has := n.Labels[key]
			if short := shortKeys[key]; short != "" {
				has = n.Labels[short]
			} else if key == "pool" {
				has = r.pools.Of(n)
			}
			all = all && has == value
		}
		if all {
			nodes = append(nodes, n.Name)
		}
	}
	if len(nodes) == 0 {
		r.bad(ruleUnknown, at, "no node of the test is so, and there is nothing to lose")
	}
	return nodes
}

// added are the steps that add nodes.
func (r *run) added(at []string, s policy.TestStep) []simulate.Step {
	var steps []simulate.Step
	for _, pool := range slices.Sorted(maps.Keys(s.AddNodes)) {
		template := r.templates[pool]
		if template == nil {
			for _, n := range r.snapshot.Nodes {
				if r.pools.Of(n) == pool {
					template = n
					break
				}
			}
		}
		if template == nil {
			r.bad(ruleUnknown, append(slices.Clone(at), pool), "no node is in a pool or group %q, so that it is not known what one is like%s", pool, suggest(pool, r.poolNames()))
			continue
		}
		steps = append(steps, simulate.AddNodes{Template: template, Count: s.AddNodes[pool]})
	}
	return steps
}

// poolNames are the pools and groups of the test's nodes, sorted.
func (r *run) poolNames() []string {
	set := map[string]bool{}
	for _, n := range r.snapshot.Nodes {
		if pool := r.pools.Of(n); pool != "" {
			set[pool] = true
		}
	}
	for group := range r.test.Nodes {
		set[group] = true
	}
	return slices.Sorted(maps.Keys(set))
}
