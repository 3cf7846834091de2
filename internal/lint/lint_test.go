package lint_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
	"github.com/kubectl-sched/kubectl-sched/internal/lint"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
	"github.com/kubectl-sched/kubectl-sched/test/golden"
)

// TestGolden checks manifests.yaml of each testdata/*.txtar against the nodes of
// nodes.yaml (without it, none are known) and compares the findings with "want".
func TestGolden(t *testing.T) {
	t.Parallel()
	golden.Run(t, func(t *testing.T, input *txtar.Archive) []txtar.File {
		var nodes []capability.Node
		if err := yaml.UnmarshalStrict(golden.File(input, "nodes.yaml"), &nodes); err != nil {
			t.Fatal(err)
		}
		request := compiler.Request{
			Placement:    &policy.Placement{},
			Workloads:    read(t, golden.File(input, "manifests.yaml")),
			Capabilities: capability.Capabilities{Nodes: nodes, NodesKnown: nodes != nil},
		}
		plan, findings := compiler.Compile(request)
		if len(findings) > 0 {
			t.Fatal(findings)
		}
		return golden.Result("want", show(lint.Check(lint.Input{Request: request, Plan: plan})))
	})
}

func read(t *testing.T, manifests []byte) []*workload.Workload {
	t.Helper()
	set, findings := workload.Read(t.Context(), workload.Input{Files: []string{"-"}, Stdin: bytes.NewReader(manifests)}, workload.Options{})
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	return set.Workloads
}

func show(findings diag.Findings) string {
	var b strings.Builder
	for _, f := range findings {
		fmt.Fprintf(&b, "%s %s %s\n", f.Severity, f.Rule, f)
		if f.Fix != nil {
			fmt.Fprintf(&b, "    fix: %s\n", f.Fix.Message)
		}
	}
	return b.String()
}

// TestCompiledIn holds that what a policy mends is not reported any more, and
// that what it does not is.
func TestCompiledIn(t *testing.T) {
	t.Parallel()
	workloads := read(t, []byte(`apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  template:
    metadata: {labels: {app: web}}
    spec:
      topologySpreadConstraints:
      - {topologyKey: topology.kubernetes.io/zone, maxSkew: 1, whenUnsatisfiable: DoNotSchedule}
      - {topologyKey: kubernetes.io/hostname, maxSkew: 1, whenUnsatisfiable: DoNotSchedule}
`))
	anywhere := policy.Positions{"": diag.At(diag.Pos{File: "p.cue", Line: 1, Column: 1})}
	request := compiler.Request{Workloads: workloads, Placement: &policy.Placement{Policies: []policy.Policy{{
		Name: "even", Level: policy.Mandatory, Positions: anywhere,
		Spread: map[string]policy.Spread{"zone": {Strength: policy.Require, MaxSkew: 1, Of: policy.Subject{Kind: policy.EachWorkload}}},
	}}}}
	plan, findings := compiler.Compile(request)
	if findings.HasErrors() {
		t.Fatal(findings)
	}
	got := show(lint.Check(lint.Input{Request: request, Plan: plan}))
	const want = `error workload/spread-no-selector -:10:9: Deployment default/web: the spread over "kubernetes.io/hostname" has no labelSelector, so that it counts no pods and constrains nothing; count its own pods, with labelSelector: {matchLabels: {app: web}}
    fix: write labelSelector: {matchLabels: {app: web}}
`
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if before := show(lint.Check(lint.Input{Request: request})); strings.Count(before, "spread-no-selector") != 2 {
		t.Errorf("without the plan:\n%s", before)
	}
}
