package catalog_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/internal/policytest"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy/load"
)

// onProvider uses the entry for spot nodes of a provider, and says what must come of it on
// its nodes: the pods are on spot nodes, and on the others where there are none.
const onProvider = `package example

import "github.com/kubectl-sched/kubectl-sched/catalog"

_render: catalog.#SpotFallback & {
	workloads: pods: labels: app: "thumbnails"
	provider: %q
}
pools: spot:      _render.#spot
policies: render: _render.#policy
tests: {
	"on spot": {
		snapshot: "lab.yaml"
		manifests: ["thumbnails.yaml"]
		expect: workloads: thumbnails: pools: ["spot"]
	}
	"on-demand when there is no spot": {
		snapshot: "lab.yaml"
		manifests: ["thumbnails.yaml"]
		after: [{lose: pool: "spot"}]
		expect: workloads: thumbnails: placed: 3
	}
}
`

// TestSpotProviders holds that pods find the spot nodes of each provider by the label, and
// through the taint, that its nodes have.
func TestSpotProviders(t *testing.T) {
	t.Parallel()
	for provider, node := range map[string]struct{ label, value, taint string }{
		"karpenter": {"karpenter.sh/capacity-type", "spot", "kubectl-sched.github.io/pool=spot"},
		"eks":       {"eks.amazonaws.com/capacityType", "SPOT", "kubectl-sched.github.io/pool=spot"},
		"gke":       {"cloud.google.com/gke-spot", "true", "cloud.google.com/gke-spot=true"},
		"aks":       {"kubernetes.azure.com/scalesetpriority", "spot", "kubernetes.azure.com/scalesetpriority=spot"},
	} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			taint, value, _ := strings.Cut(node.taint, "=")
			var lab strings.Builder
			lab.WriteString("apiVersion: kubectl-sched.github.io/v1alpha1\nkind: Snapshot\ncluster: lab\n")
			for i := range 3 {
				// Of those that could have the pods, spot nodes are first neither by name nor by room.
				fmt.Fprintf(&lab, `---
apiVersion: v1
kind: Node
metadata: {name: a-%d, labels: {topology.kubernetes.io/zone: z%[1]d}}
status: {allocatable: {cpu: "16", memory: 64Gi, pods: "110"}}
---
apiVersion: v1
kind: Node
metadata: {name: spot-%[1]d, labels: {topology.kubernetes.io/zone: z%[1]d, %q: %q}}
spec: {taints: [{key: %q, value: %q, effect: NoSchedule}]}
status: {allocatable: {cpu: "2", memory: 4Gi, pods: "110"}}
`, i, node.label, node.value, taint, value)
			}
			manifest, err := os.ReadFile(filepath.Join("spot-fallback", "manifests", "thumbnails.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			for name, text := range map[string]string{"placement.cue": fmt.Sprintf(onProvider, provider), "lab.yaml": lab.String(), "thumbnails.yaml": string(manifest)} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			p, findings := load.Evaluate(t.Context(), load.Options{Dir: dir, Paths: []string{"."}})
			if len(findings) > 0 {
				t.Fatal(findings)
			}
			report, err := policytest.Run(t.Context(), policytest.Options{Placement: p, Dir: dir, Now: now})
			if err != nil || len(report.Results) != 2 {
				t.Fatalf("%d results: %v", len(report.Results), err)
			}
			for _, r := range report.Results {
				if !r.Passed() {
					t.Errorf("%s: %v%v", r.Name, r.Errors, r.Failures)
				}
			}

			set, findings := workload.Read(t.Context(), workload.Input{Files: []string{filepath.Join(dir, "thumbnails.yaml")}}, workload.Options{})
			plan, fs := compiler.Compile(compiler.Request{Placement: p, Workloads: set.Workloads, Now: now})
			if findings = append(findings, fs...); findings.HasErrors() || len(plan.Changes) != 1 {
				t.Fatalf("%d changes: %v", len(plan.Changes), findings)
			}
			fields, err := json.Marshal(plan.Changes[0].After)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{
				fmt.Sprintf(`"matchExpressions":[{"key":%q,"operator":"In","values":[%q]}]`, node.label, node.value),
				fmt.Sprintf(`{"key":%q,"operator":"Equal","value":%q,"effect":"NoSchedule"}`, taint, value),
			} {
				if !strings.Contains(string(fields), want) {
					t.Errorf("it compiles to %s, which has no %s", fields, want)
				}
			}
		})
	}
}
