package engine

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	fwk "k8s.io/kube-scheduler/framework"
)

// PodGroupPostFilter is upstream's. Victims that are equal in all that it goes by it
// takes as it finds them, node by node (newDomainForWorkloadPreemption), and its sort
// keeps no order: so where a decider knows in which order another scheduler had its pods,
// that is how they must lie when upstream gathers them.
func (p *completePreemption) PodGroupPostFilter(ctx context.Context, state fwk.PodGroupCycleState, group fwk.PodGroupInfo, schedule fwk.PodGroupSchedulingFunc) (*fwk.PodGroupPostFilterResult, *fwk.Status) {
	if p.decider == nil {
		return p.DefaultPreemption.PodGroupPostFilter(ctx, state, group, schedule)
	}
	nodes, err := p.handle.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		return nil, fwk.AsStatus(fmt.Errorf("list the nodes for preemption: %w", err))
	}
	before := map[string]int{}
	for i, node := range nodes {
		before[node.Node().Name] = i
	}
	// Upstream changes copies of the nodes, and gives back the list with which it began.
	asBefore := func(nodes []fwk.NodeInfo) {
		slices.SortFunc(nodes, func(a, b fwk.NodeInfo) int {
			return cmp.Compare(before[a.Node().Name], before[b.Node().Name])
		})
	}
	p.asTheyCame(nodes)
	defer asBefore(nodes)
	return p.DefaultPreemption.PodGroupPostFilter(ctx, state, group, func(ctx context.Context) (*fwk.PodGroupAssignments, *fwk.Status) {
		copies, err := p.handle.SnapshotSharedLister().NodeInfos().List()
		if err != nil {
			return nil, fwk.AsStatus(fmt.Errorf("list the nodes for preemption: %w", err))
		}
		asBefore(copies)
		return schedule(ctx)
	})
}

// asTheyCame brings the nodes, and the pods on each, into the order of the decider. What
// it does not know comes last.
func (p *completePreemption) asTheyCame(nodes []fwk.NodeInfo) {
	rank := func(pod fwk.PodInfo) int {
		if i, known := p.decider.Came(pod.GetPod()); known {
			return i
		}
		return math.MaxInt
	}
	first := map[string]int{}
	for _, node := range nodes {
		pods := node.GetPods()
		slices.SortStableFunc(pods, func(a, b fwk.PodInfo) int { return cmp.Compare(rank(a), rank(b)) })
		first[node.Node().Name] = math.MaxInt
		if len(pods) > 0 {
			first[node.Node().Name] = rank(pods[0])
		}
	}
	slices.SortStableFunc(nodes, func(a, b fwk.NodeInfo) int {
		return cmp.Compare(first[a.Node().Name], first[b.Node().Name])
	})
}
