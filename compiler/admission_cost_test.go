package compiler_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/compiler/admission/admissiontest"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy"
)

// manyPolicies are policies of all intents; those with a number below match
// select every pod of the namespace shop.
func manyPolicies(n, match int) *policy.Placement {
	out := &policy.Placement{Pools: []policy.Pool{
		{Name: "a", Nodes: policy.NodeTerm{Labels: map[string]policy.Values{"pool": {"a"}}}, Positions: anywhere("pools", 0)},
		{Name: "b", Nodes: policy.NodeTerm{Labels: map[string]policy.Values{"class": {"b"}}}, Positions: anywhere("pools", 1)},
	}}
	for i := range n {
		p := policy.Policy{Name: fmt.Sprintf("team-%d", i), Level: policy.Mandatory, Positions: anywhere("policies", i)}
		p.Workloads.Namespaces = []string{fmt.Sprintf("ns-%d", i)}
		if i < match {
			p.Workloads.Namespaces = []string{"shop"}
		}
		p.Nodes = &policy.Nodes{
			Require: &policy.NodeTerm{Labels: map[string]policy.Values{fmt.Sprintf("l-%d", i): {"x", "y"}, "size": {">4"}}},
			Prefer:  &policy.Preference{NodeTerm: policy.NodeTerm{Zones: []string{fmt.Sprintf("z-%d", i)}}, Weight: 5},
		}
		if i%50 == 0 {
			p.Nodes.Require.Pools = []string{"a", "b"}
		}
		p.Tolerate = &policy.Tolerate{Taints: map[string]policy.Taint{"x": {Key: fmt.Sprintf("t-%d", i)}}}
		p.Spread = map[string]policy.Spread{"zone": {Strength: policy.Require, MaxSkew: 1 + i, Of: policy.Subject{Kind: policy.EachWorkload}}}
		p.Apart = map[string]policy.Colocation{"x": {On: "node", Strength: policy.Prefer, Weight: 5, Of: policy.Subject{Kind: policy.ByLabels, Labels: map[string]policy.Values{"app": {fmt.Sprintf("a-%d", i)}}}}}
		out.Policies = append(out.Policies, p)
	}
	return out
}

// crowded is a pod with more placement than any manifest has.
func crowded() *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "shop", Labels: map[string]string{"app": "web"}}}
	for i := range 50 {
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{Key: fmt.Sprintf("own-%d", i), Operator: "Exists"})
	}
	node := &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{}}
	for i := range 8 {
		var term corev1.NodeSelectorTerm
		for j := range 8 {
			term.MatchExpressions = append(term.MatchExpressions, corev1.NodeSelectorRequirement{Key: fmt.Sprintf("own-%d-%d", i, j), Operator: "In", Values: []string{"a", "b"}})
		}
		node.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms = append(node.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms, term)
		node.PreferredDuringSchedulingIgnoredDuringExecution = append(node.PreferredDuringSchedulingIgnoredDuringExecution, corev1.PreferredSchedulingTerm{Weight: 1, Preference: term})
	}
	pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: node, PodAntiAffinity: &corev1.PodAntiAffinity{}}
	for i := range 10 {
		pod.Spec.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution = append(pod.Spec.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution,
			corev1.WeightedPodAffinityTerm{Weight: 1, PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: "zone", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprint(i)}}}})
		pod.Spec.TopologySpreadConstraints = append(pod.Spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
			TopologyKey: fmt.Sprint(i), MaxSkew: 1, WhenUnsatisfiable: "ScheduleAnyway", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprint(i)}},
		})
	}
	return pod
}

// TestAdmissionCost holds sets of many policies far below the API server's
// limits on what an evaluation may cost: all of them (which the API server
// itself checks for each expression) and on what it stores.
func TestAdmissionCost(t *testing.T) {
	t.Parallel()
	plain := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "shop", Labels: map[string]string{"app": "web"}}}
	for _, test := range []struct {
		name            string
		policies, match int
		pod             *corev1.Pod
		share           int64
	}{
		{"none of 200 match", 200, 0, plain, 1000},
		{"5 of 200 match", 200, 5, plain, 300},
		{"5 of 200 match a pod with much of its own", 200, 5, crowded(), 10},
		{"40 of 200 match a pod with much of its own", 200, 40, crowded(), 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			plan, findings := compiler.Compile(compiler.Request{Placement: manyPolicies(test.policies, test.match), Surface: policy.SurfaceAdmission, Now: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)})
			if findings.HasErrors() {
				t.Fatal(findings)
			}
			place := placePolicy(plan)
			data, err := json.Marshal(place)
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			p, err := admissiontest.Compile(place)
			if err != nil {
				t.Fatal(err)
			}
			compiled := time.Since(start)
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
			out, cost, err := p.Mutate(t.Context(), test.pod, namespace)
			if err != nil {
				t.Fatal(err)
			}
			_, asked, err := p.Matches(t.Context(), out, namespace.Name)
			if err != nil {
				t.Fatal(err)
			}
			if asked > celconfig.RuntimeCELCostBudgetMatchConditions/5 {
				t.Errorf("to ask again costs %d, want at most a fifth of %d", asked, celconfig.RuntimeCELCostBudgetMatchConditions)
			}
			start = time.Now()
			if _, _, err := p.Mutate(t.Context(), out, namespace); err != nil {
				t.Fatal(err)
			}
			t.Logf("%d KiB, compiled in %s; cost %d of %d, to ask again %d, twice more in %s", len(data)>>10, compiled, cost, celconfig.RuntimeCELCostBudget, asked, time.Since(start))
			if cost > celconfig.RuntimeCELCostBudget/test.share {
				t.Errorf("cost %d, want at most 1/%d of %d", cost, test.share, celconfig.RuntimeCELCostBudget)
			}
			if len(data) > 400<<10 {
				t.Errorf("the policy has %d KiB", len(data)>>10)
			}
		})
	}
}

// fleet are Deployments that select their pods by fewer labels than they give
// them, which a pod alone does not show.
func fleet(t testing.TB, n int, name string) []*workload.Workload {
	ws := make([]*workload.Workload, n)
	for i := range ws {
		o := object(t, workload.PodFields{})
		o["metadata"] = map[string]any{"name": fmt.Sprintf("%s-%d", name, i), "namespace": "shop"}
		app := fmt.Sprintf("app-%d", i)
		o["spec"].(map[string]any)["selector"] = map[string]any{"matchLabels": map[string]any{"app": app}}
		template := podTemplate(map[string]any{})
		template["metadata"] = map[string]any{"labels": map[string]any{"app": app, "version": "1"}}
		o["spec"].(map[string]any)["template"] = template
		ws[i] = fromObject(t, o)
	}
	return ws
}

func spreading() *policy.Placement {
	return &policy.Placement{Policies: []policy.Policy{{
		Name: "spread", Level: policy.Mandatory, Positions: anywhere("policies", 0),
		Spread: map[string]policy.Spread{"zone": {Strength: policy.Prefer, MaxSkew: 1, Of: policy.Subject{Kind: policy.EachWorkload}}},
	}}}
}

// TestAdmissionKnowsWorkloads holds that the selectors of many workloads are
// found, and cost next to nothing to look up.
func TestAdmissionKnowsWorkloads(t *testing.T) {
	t.Parallel()
	plan, findings := compiler.Compile(compiler.Request{Placement: spreading(), Workloads: fleet(t, 5000, "web"), Surface: policy.SurfaceAdmission})
	if findings.HasErrors() {
		t.Fatal(findings)
	}
	p, err := admissiontest.Compile(placePolicy(plan))
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range []int{0, 2500, 4999} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Labels: map[string]string{"app": fmt.Sprintf("app-%d", i), "version": "1", "pod-template-hash": "x", "injected": "y"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: fmt.Sprintf("web-%d-x", i), Controller: new(true)}},
		}}
		out, cost, err := p.Mutate(t.Context(), pod, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
		if err != nil {
			t.Fatal(err)
		}
		got := out.(*corev1.Pod).Spec.TopologySpreadConstraints
		want := map[string]string{"app": fmt.Sprintf("app-%d", i)}
		if len(got) != 1 || !maps.Equal(got[0].LabelSelector.MatchLabels, want) {
			t.Errorf("workload %d spreads by %s, want the selector %v", i, asJSON(got), want)
		}
		if cost > 10_000 {
			t.Errorf("workload %d costs %d", i, cost)
		}
	}
}

// TestAdmissionTooLarge holds that what the API server cannot store is found
// when it is compiled.
func TestAdmissionTooLarge(t *testing.T) {
	t.Parallel()
	_, findings := compiler.Compile(compiler.Request{
		Placement: spreading(), Workloads: fleet(t, 12_000, strings.Repeat("w", 55)), Surface: policy.SurfaceAdmission,
	})
	if !hasRule(findings, "compile/too-large") {
		t.Errorf("found %v", findings)
	}
}

// BenchmarkAdmission evaluates the mutation of a new pod twice, in both forms in
// which the API server shows a pod to it.
func BenchmarkAdmission(b *testing.B) {
	plain := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "shop", Labels: map[string]string{"app": "web"}}}
	for _, size := range [][2]int{{50, 0}, {50, 3}, {200, 0}, {200, 3}} {
		b.Run(fmt.Sprintf("%d of %d match", size[1], size[0]), func(b *testing.B) {
			plan, findings := compiler.Compile(compiler.Request{Placement: manyPolicies(size[0], size[1]), Surface: policy.SurfaceAdmission})
			if findings.HasErrors() {
				b.Fatal(findings)
			}
			p, err := admissiontest.Compile(placePolicy(plan))
			if err != nil {
				b.Fatal(err)
			}
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
			for b.Loop() {
				if _, _, err := p.Mutate(b.Context(), plain, namespace); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// teams are policies as a platform has them: each in force for the pods of one
// team, some for all.
func teams(n int) *policy.Placement {
	out := &policy.Placement{Pools: []policy.Pool{
		{Name: "spot", Nodes: policy.NodeTerm{Labels: map[string]policy.Values{"capacity": {"spot"}}}, Positions: anywhere("pools", 0)},
	}}
	for i := range n {
		p := policy.Policy{Name: fmt.Sprintf("team-%d", i), Level: policy.Mandatory, Positions: anywhere("policies", i)}
		p.Workloads.Namespaces = []string{"shop"}
		if i%10 == 0 {
			p.Nodes = &policy.Nodes{Forbid: &policy.NodeTerm{Labels: map[string]policy.Values{"kind": {fmt.Sprintf("k%d", i)}}}}
			p.Tolerate = &policy.Tolerate{Taints: map[string]policy.Taint{"x": {Key: "maintenance"}}}
		} else {
			p.Workloads.Pods = &policy.Pods{Labels: map[string]policy.Values{"team": {fmt.Sprintf("t%d", i)}}}
			p.Nodes = &policy.Nodes{
				Require:  &policy.NodeTerm{Arch: []string{"amd64", "arm64"}},
				Disfavor: &policy.Preference{NodeTerm: policy.NodeTerm{Pools: []string{"spot"}}, Weight: 50},
			}
			p.Spread = map[string]policy.Spread{"zone": {Strength: policy.Require, MaxSkew: i%3 + 1, Of: policy.Subject{Kind: policy.EachWorkload}}}
		}
		out.Policies = append(out.Policies, p)
	}
	return out
}

// BenchmarkTeams measures how long the API server takes for one pod, in the
// first pass of its admission and in the second, and for one that no policy
// selects.
func BenchmarkTeams(b *testing.B) {
	plan, findings := compiler.Compile(compiler.Request{Placement: teams(50), Surface: policy.SurfaceAdmission, Now: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)})
	if findings.HasErrors() {
		b.Fatal(findings)
	}
	p, err := admissiontest.Compile(placePolicy(plan))
	if err != nil {
		b.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "shop", Labels: map[string]string{"team": "t7", "app.kubernetes.io/name": "app-7"}}}
	placed, _, err := p.Mutate(b.Context(), pod, namespace)
	if err != nil {
		b.Fatal(err)
	}
	elsewhere := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "elsewhere"}}
	for _, one := range []struct {
		name      string
		pod       runtime.Object
		namespace *corev1.Namespace
	}{{"first", pod, namespace}, {"second", placed, namespace}, {"none", pod, elsewhere}} {
		b.Run(one.name, func(b *testing.B) {
			for b.Loop() {
				if _, _, err := p.Once(b.Context(), one.pod, one.namespace); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
