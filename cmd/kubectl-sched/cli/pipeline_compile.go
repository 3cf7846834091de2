package cli

import (
	"context"
	"fmt"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/internal/cluster/capture"
	"github.com/kubectl-sched/kubectl-sched/internal/lint"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// compilePlans loads, reads and compiles for every targeted cluster. Clusters
// that come out the same share one entry. With an Error among the findings the
// plans are incomplete and nothing may be written. What has errors does not keep
// the rest from being compiled, so that one run finds all there is to mend.
//
// A policy that matches no workload in any of the clusters is a Warning.
func (p *pipeline) compilePlans(ctx context.Context) ([]clusterPlan, diag.Findings, error) {
	placement, findings := p.loadPlacement(ctx)
	if placement == nil {
		return nil, findings, nil
	}
	targets, err := p.targets(placement)
	if err != nil {
		return nil, nil, err
	}
	set, fs := p.readWorkloads(ctx, placement)
	findings = append(findings, fs...)
	unread := fs.HasErrors()
	p.incomplete = findings.HasErrors()
	if p.incomplete && p.live {
		return nil, findings.Sort(), nil
	}
	p.workloads = set.Workloads
	var plans []clusterPlan
	for _, target := range orNone(targets) {
		workloads := set.Workloads
		if p.live {
			workloads, fs = p.liveWorkloads(ctx, placement, target)
			findings = append(findings, fs...)
			if fs.HasErrors() {
				continue
			}
			p.workloads = append(p.workloads, workloads...)
			p.app.objects = append(p.app.objects, ignorable(workloads, nil)...)
		}
		plan, fs := p.compileFor(ctx, placement, target, workloads)
		findings = append(findings, fs...)
		if plan != nil {
			plans = append(plans, clusterPlan{Clusters: nameOf(target), Plan: plan, Surface: p.surfaceOf(target, policy.SurfaceRender), Workloads: workloads})
		}
	}
	if p.live || p.manifests.given() && !unread {
		findings = append(findings, unmatched(placement, plans, p.extentOf())...)
	}
	return collapse(plans), findings.Sort(), ctx.Err()
}

// compileFor compiles the workloads for one cluster, nil for the only, nameless
// one. The plan is nil if the cluster's facts cannot be read.
func (p *pipeline) compileFor(ctx context.Context, placement *policy.Placement, target *policy.Cluster, workloads []*workload.Workload) (*compiler.Plan, diag.Findings) {
	caps, findings := p.capabilities(ctx, target)
	if findings.HasErrors() {
		return nil, findings
	}
	request := compiler.Request{
		Placement:    placement,
		Workloads:    workloads,
		Capabilities: caps,
		Surface:      p.surfaceOf(target, policy.SurfaceRender),
		Set:          p.setName,
		WithPlaced:   p.explained != "",
		Installing:   p.installing,
		Now:          p.app.now(),
		Incomplete:   p.incomplete,
	}
	plan, fs := compiler.CompileContext(ctx, request)
	if p.judge != nil && ctx.Err() == nil {
		fs = append(fs, p.judged(ctx, target, request, plan)...)
	}
	return plan, append(findings, fs...)
}

// judged is what judge finds. A cluster that is asked anyway is asked for all that
// rules look at.
func (p *pipeline) judged(ctx context.Context, target *policy.Cluster, r compiler.Request, plan *compiler.Plan) diag.Findings {
	in := lint.Input{Request: r, Plan: plan, Snapshot: p.snapshot}
	if p.set != nil {
		in.Others = p.set.Others
	}
	if p.snapshot != nil || !p.withCluster || p.incomplete {
		return p.judge(in)
	}
	client, err := p.connect(target)
	if err != nil {
		return unreachable(err)
	}
	makeRoomForCluster()
	s, findings, err := capture.Capture(ctx, client, capture.Options{Now: p.app.now})
	if err != nil {
		return append(findings, unreachable(err)...)
	}
	in.Snapshot = s
	return append(findings, p.judge(in)...)
}

// orNone returns pointers to the clusters, or one nil for no clusters.
func orNone(clusters []policy.Cluster) []*policy.Cluster {
	if len(clusters) == 0 {
		return []*policy.Cluster{nil}
	}
	pointers := make([]*policy.Cluster, len(clusters))
	for i := range clusters {
		pointers[i] = &clusters[i]
	}
	return pointers
}

func nameOf(c *policy.Cluster) []string {
	if c == nil {
		return nil
	}
	return []string{c.Name}
}

// targets returns the clusters to compile for: none for a document without a
// clusters block (which is one compilation all the same).
func (p *pipeline) targets(placement *policy.Placement) ([]policy.Cluster, error) {
	names := make([]string, len(placement.Clusters))
	for i, c := range placement.Clusters {
		names[i] = c.Name
	}
	switch {
	case p.cluster == "" || p.cluster == allClusters:
		return placement.Clusters, nil
	case len(names) == 0:
		return nil, usageError{fmt.Errorf("--cluster %q: the policies have no clusters block", p.cluster)}
	}
	c := placement.Cluster(p.cluster)
	if c == nil {
		return nil, usageError{fmt.Errorf("--cluster %q: there is no such cluster; %s", p.cluster, didYouMean(p.cluster, append(names, allClusters)))}
	}
	return []policy.Cluster{*c}, nil
}
