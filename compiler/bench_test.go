package compiler_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy"
)

// large is a document of many policies, of every shape of selection, and a
// fleet of many workloads; each workload is selected by a few policies.
func large(t rapid.TB, policies, workloads int) compiler.Request {
	placement := &policy.Placement{Pools: []policy.Pool{
		{Name: "spot", Nodes: policy.NodeTerm{Labels: map[string]policy.Values{"capacity": {"spot"}}}, Positions: anywhere("pools", 0)},
	}}
	minDomains := 3
	for i := range policies {
		p := policy.Policy{Name: fmt.Sprintf("p%04d", i), Level: policy.Mandatory, Positions: anywhere("policies", i)}
		switch i % 5 {
		case 0:
			p.Workloads.Namespaces = []string{fmt.Sprintf("ns-%d", i%200)}
			p.Workloads.Kinds = []string{"Deployment"}
			p.Nodes = &policy.Nodes{Forbid: &policy.NodeTerm{Pools: []string{"spot"}}}
		case 1:
			p.Workloads.Pods = &policy.Pods{Labels: map[string]policy.Values{"app": {fmt.Sprintf("app-%d", i)}}}
			p.Spread = map[string]policy.Spread{"zone": {Strength: policy.Require, MaxSkew: 1, MinDomains: &minDomains, Of: policy.Subject{Kind: policy.EachWorkload}}}
		case 2:
			p.Workloads.Namespaces = []string{fmt.Sprintf("ns-%d*", i%200)}
			p.Workloads.Names = []string{fmt.Sprintf("*-%d", i)}
			p.Nodes = &policy.Nodes{Require: &policy.NodeTerm{Zones: []string{"a", "b"}}}
		case 3:
			p.Workloads.Labels = map[string]policy.Values{"team": {fmt.Sprintf("team-%d", i)}}
			p.Apart = map[string]policy.Colocation{"r": {On: "node", Strength: policy.Prefer, Weight: 10, Of: policy.Subject{Kind: policy.EachWorkload}}}
		case 4:
			p.Workloads.Pods = &policy.Pods{Labels: map[string]policy.Values{"app": {fmt.Sprintf("app-*%d", i)}}}
			p.Tolerate = &policy.Tolerate{Taints: map[string]policy.Taint{"x": {Key: "x"}}}
		}
		placement.Policies = append(placement.Policies, p)
	}
	var ws []*workload.Workload
	for i := range workloads {
		o := object(t, workload.PodFields{})
		app := map[string]any{"app": fmt.Sprintf("app-%d", i%1000)}
		o["metadata"] = map[string]any{
			"namespace": fmt.Sprintf("ns-%d", i%200), "name": fmt.Sprintf("web-%d", i),
			"labels": map[string]any{"team": fmt.Sprintf("team-%d", i%1000)},
		}
		o["spec"] = map[string]any{
			"selector": map[string]any{"matchLabels": app},
			"template": map[string]any{"metadata": map[string]any{"labels": app}, "spec": map[string]any{}},
		}
		ws = append(ws, fromObject(t, o))
	}
	var nodes []capability.Node
	for i := range 500 {
		nodes = append(nodes, capability.Node{Name: fmt.Sprintf("n%03d", i), Labels: map[string]string{
			zoneLabel: string(rune('a' + i%3)), "kubernetes.io/hostname": fmt.Sprintf("n%03d", i),
		}})
	}
	return compiler.Request{
		Placement: placement, Workloads: ws, Now: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC),
		Capabilities: capability.Capabilities{Nodes: nodes, NodesKnown: true},
	}
}

func BenchmarkCompile(b *testing.B) {
	r := large(b, 1000, 10000)
	for b.Loop() {
		plan, findings := compiler.Compile(r)
		if findings.HasErrors() || len(plan.Changes) < 8000 {
			b.Fatalf("%d changes, %v", len(plan.Changes), findings)
		}
	}
}
