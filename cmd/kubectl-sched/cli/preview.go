package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/kubectl-sched/kubectl-sched/internal/cluster/snapshot"
	"github.com/kubectl-sched/kubectl-sched/internal/preview"
	"github.com/kubectl-sched/kubectl-sched/internal/simulate"
	"github.com/kubectl-sched/kubectl-sched/policy"
)

// snapshotFrom reads the snapshot, or takes one of the cluster.
func (a *app) snapshotFrom(ctx context.Context, from snapshotSource, config *genericclioptions.ConfigFlags) (*snapshot.Snapshot, error) {
	if from.file != "" {
		s, err := readSnapshot(from.file)
		if err != nil {
			return nil, err
		}
		return s, s.CheckAge(a.now(), from.maxAge)
	}
	client, err := connectTo(config)
	if err != nil {
		return nil, err
	}
	makeRoomForCluster()
	return a.takeSnapshot(ctx, client, contextOf(config))
}

// previewOf compiles the policies, if there are any, for the cluster of the
// snapshot, and returns what to preview. An error may be one that is printed
// already.
func (a *app) previewOf(ctx context.Context, p *pipeline, s *snapshot.Snapshot, policies bool) (*preview.Request, *poolMap, error) {
	request := &preview.Request{Snapshot: s}
	pools := &poolMap{of: preview.Pools{}}
	if !policies {
		return request, pools, nil
	}
	p.snapshot, p.live, p.installing = s, !p.manifests.given(), true
	if p.cluster == allClusters {
		return nil, nil, usageError{fmt.Errorf("a snapshot is of one cluster; name it with --cluster")}
	}
	plans, findings, err := p.compilePlans(ctx)
	if err != nil {
		return nil, nil, err
	}
	if findings.HasErrors() {
		return nil, nil, a.failOn(findings)
	}
	a.printFindings(findings)
	if len(plans) > 1 {
		var names []string
		for _, plan := range plans {
			names = append(names, plan.Name())
		}
		return nil, nil, usageError{fmt.Errorf("the policies come out differently for %s; say with --cluster of which the snapshot is", strings.Join(names, " and "))}
	}
	if len(plans) == 1 {
		request.Plan, request.Workloads = plans[0].Plan, plans[0].Workloads
		if plans[0].Surface == policy.SurfaceAdmission {
			a.complain("note: policies of the admission surface reach pods that are made anew; the simulation rolls the workloads out as if all were")
		}
	}
	pools.read(p.placement, s)
	return request, pools, nil
}

// poolMap know the pool of each node.
type poolMap struct {
	of    preview.Pools
	grows map[string]bool // pools whose nodes somebody makes
}

// read takes in the pools of the placement.
func (p *poolMap) read(placement *policy.Placement, s *snapshot.Snapshot) {
	p.of, p.grows = preview.PoolsOf(placement, s), map[string]bool{}
	for _, pool := range placement.Pools {
		switch pool.ManagedBy {
		case policy.ManagedKarpenter, policy.ManagedNodeGroup:
			p.grows[pool.Name] = true
		case policy.ManagedKubelet, policy.ManagedLive:
		}
	}
}

// names are those of the pools that nodes of the snapshot are in, sorted.
func (p *poolMap) names(s *snapshot.Snapshot) []string {
	names := map[string]bool{}
	for _, n := range s.Nodes {
		if pool := p.of.Of(n); pool != "" {
			names[pool] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// template is a node of the pool, the first by name; nil if there is none.
func (p *poolMap) template(s *snapshot.Snapshot, pool string) *corev1.Node {
	for _, n := range s.Nodes {
		if p.of.Of(n) == pool {
			return n
		}
	}
	return nil
}

// elastic are the pools that can get more nodes: those of the policies that
// Karpenter or a node group makes, and Karpenter's NodePools.
func (p *poolMap) elastic(s *snapshot.Snapshot) []simulate.Pool {
	grows := maps.Clone(p.grows)
	if grows == nil {
		grows = map[string]bool{}
	}
	for _, u := range s.NodePools {
		grows[u.GetName()] = true
	}
	var pools []simulate.Pool
	for _, name := range slices.Sorted(maps.Keys(grows)) {
		template := p.template(s, name)
		if template == nil {
			continue
		}
		pool := simulate.Pool{Name: name, Template: template}
		for _, u := range s.NodePools {
			if n, limited := preview.RoomFor(u, template); u.GetName() == name && limited {
				pool.Limit, pool.Full = n, n == 0
			}
		}
		pools = append(pools, pool)
	}
	return pools
}

// shortKeys are what --lose calls the usual labels.
var shortKeys = map[string]string{"zone": corev1.LabelTopologyZone, "region": corev1.LabelTopologyRegion, "node": corev1.LabelHostname}

// labelled returns the nodes that KEY=VALUE describes.
func (p *poolMap) labelled(s *snapshot.Snapshot, said string) ([]string, error) {
	key, value, ok := strings.Cut(said, "=")
	if !ok || key == "" || value == "" {
		return nil, usageError{fmt.Errorf("--lose %q is not KEY=VALUE", said)}
	}
	var nodes, values []string
	for _, n := range s.Nodes {
		has := n.Labels[cmp.Or(shortKeys[key], key)]
		if key == "pool" {
			has = p.of.Of(n)
		}
		if has == value {
			nodes = append(nodes, n.Name)
		}
		if has != "" {
			values = append(values, has)
		}
	}
	switch {
	case len(nodes) > 0:
	case key == "pool" && len(values) == 0:
		return nil, usageError{fmt.Errorf("--lose %s: no node of the snapshot is in any pool that is known", said)}
	case len(values) == 0:
		return nil, usageError{fmt.Errorf("--lose %s: no node of the snapshot has the label %q", said, cmp.Or(shortKeys[key], key))}
	default:
		slices.Sort(values)
		return nil, usageError{fmt.Errorf("--lose %s: no node of the snapshot is so; %s", said, didYouMean(value, slices.Compact(values)))}
	}
	return nodes, nil
}
