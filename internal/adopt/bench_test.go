package adopt_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/kubectl-sched/kubectl-sched/internal/adopt"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
)

// repository is so many Deployments in namespaces of fifty, of five tiers that share
// placement, each tenth with something of its own.
func repository(t testing.TB, n int) []*workload.Workload {
	t.Helper()
	var out []*workload.Workload
	for i := range n {
		name, tier := fmt.Sprintf("app-%d", i), fmt.Sprintf("tier-%d", i%5)
		labels := map[string]any{"app": name, "tier": tier}
		own := map[string]any{"matchLabels": map[string]any{"app": name}}
		spec := map[string]any{"containers": []any{}}
		if i%5 < 3 {
			spec["topologySpreadConstraints"] = []any{map[string]any{"maxSkew": int64(1), "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": own}}
		}
		if i%5 < 2 {
			term := map[string]any{"weight": int64(100), "podAffinityTerm": map[string]any{"topologyKey": "kubernetes.io/hostname", "labelSelector": own}}
			spec["affinity"] = map[string]any{"podAntiAffinity": map[string]any{"preferredDuringSchedulingIgnoredDuringExecution": []any{term}}}
		}
		if i%5 == 4 {
			spec["tolerations"] = []any{map[string]any{"key": "spot", "operator": "Exists", "effect": "NoSchedule"}}
		}
		if i%10 == 3 {
			spec["nodeSelector"] = map[string]any{"disk": fmt.Sprintf("kind-%d", i%70)}
		}
		w, findings, ok := workload.FromObject(map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": name, "namespace": fmt.Sprintf("team-%d", i/50), "labels": labels},
			"spec": map[string]any{"replicas": int64(3), "selector": own, "template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": spec}},
		}, workload.Options{}, workload.Source{})
		if !ok || findings.HasErrors() {
			t.Fatal(findings)
		}
		out = append(out, w)
	}
	return out
}

// What many share is one policy: the number of policies does not grow with that of
// the workloads.
func TestPoliciesAreFew(t *testing.T) {
	t.Parallel()
	p := propose(t, adopt.Request{Workloads: repository(t, 500)})
	if len(p.Policies) > 40 || p.Proof.Intents < 500 || p.Proof.Left > 0 {
		t.Errorf("%d policies, %+v", len(p.Policies), p.Proof)
	}
}

func BenchmarkPropose(b *testing.B) {
	ws := repository(b, 1000)
	for b.Loop() {
		if _, err := adopt.Propose(context.Background(), adopt.Request{Workloads: ws, Package: "imported", Now: now}); err != nil {
			b.Fatal(err)
		}
	}
}
