package load_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"
	cueload "cuelang.org/go/cue/load"

	"github.com/kubectl-sched/kubectl-sched/policy/load"
)

// manyPolicies is a document of n policies of ordinary size, typed as init
// would have it.
func manyPolicies(n int) string {
	var b strings.Builder
	b.WriteString(`package placement

import "github.com/kubectl-sched/kubectl-sched/policy"

clusters: [string]: policy.#Cluster
pools: [string]: policy.#Pool
policies: [string]: policy.#Policy
clusters: "prod": labels: env: "prod"
pools: gpu: {nodes: labels: class: "gpu", dedicated: {}}
`)
	for i := range n {
		fmt.Fprintf(&b, `policies: "p%d": {
	when: env: "prod"
	workloads: {namespaces: ["team-%d"], kinds: ["apps/Deployment"], pods: labels: app: "app-%d"}
	nodes: {
		require: {labels: "example.com/class": ["a", "b"], arch: ["amd64"]}
		prefer: {zones: ["eu-1a", "eu-1b"], weight: 20}
	}
	spread: zone: {strength: "require", maxSkew: 1}
	spread: node: strength: "prefer"
	apart: peers: {on: "node", strength: "prefer", of: labels: app: "app-%d"}
	tolerate: {pools: ["gpu"], taints: t: {key: "example.com/t", effect: "NoSchedule"}}
	priority: class: "team-%d"
}
`, i, i%50, i, i, i%10)
	}
	return b.String()
}

const benchPolicies = 1000

// BenchmarkEvaluate1000 is what a fleet's document costs; compare it with
// BenchmarkCUE1000.
func BenchmarkEvaluate1000(b *testing.B) {
	dir := b.TempDir()
	writeBench(b, dir)
	for b.Loop() {
		p, findings := load.Evaluate(context.Background(), load.Options{Dir: dir, Paths: []string{"placement"}})
		if len(findings) > 0 || len(p.Policies) != benchPolicies {
			b.Fatal(findings)
		}
	}
}

// BenchmarkIsolated1000 adds the child process.
func BenchmarkIsolated1000(b *testing.B) {
	dir := b.TempDir()
	writeBench(b, dir)
	command := childCommand(b)
	for b.Loop() {
		p, findings := load.Isolated(context.Background(), load.Options{Dir: dir, Paths: []string{"placement"}}, load.Limits{}, command)
		if len(findings) > 0 || len(p.Policies) != benchPolicies {
			b.Fatal(findings)
		}
	}
}

// BenchmarkCUE1000 is what CUE alone takes for the same document: load it with
// the schema vendored, build, validate and decode it.
func BenchmarkCUE1000(b *testing.B) {
	dir := b.TempDir()
	writeBench(b, dir)
	writeFile(b, filepath.Join(dir, "cue.mod/module.cue"), "module: \"example.com/bench@v0\"\nlanguage: version: \"v0.15.0\"\n")
	if _, err := load.Vendor(dir); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		inst := cueload.Instances([]string{"."}, &cueload.Config{Dir: filepath.Join(dir, "placement"), Env: []string{"CUE_REGISTRY=none"}})[0]
		v := cuecontext.New().BuildInstance(inst)
		if err := v.Validate(cue.Concrete(true)); err != nil {
			b.Fatal(err)
		}
		var document map[string]any
		if err := v.Decode(&document); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkEvaluateOne is what a single small document costs.
func BenchmarkEvaluateOne(b *testing.B) {
	for b.Loop() {
		if _, findings := load.Evaluate(context.Background(), load.Options{Paths: []string{"../../examples/web-spot-fallback/placement"}}); len(findings) > 0 {
			b.Fatal(findings)
		}
	}
}

// BenchmarkIsolatedOne adds the child process: the difference is what the
// isolation costs.
func BenchmarkIsolatedOne(b *testing.B) {
	command := childCommand(b)
	for b.Loop() {
		if _, findings := load.Isolated(context.Background(), load.Options{Paths: []string{"../../examples/web-spot-fallback/placement"}}, load.Limits{}, command); len(findings) > 0 {
			b.Fatal(findings)
		}
	}
}

func writeBench(tb testing.TB, dir string) {
	tb.Helper()
	writeFile(tb, filepath.Join(dir, "placement", "p.cue"), manyPolicies(benchPolicies))
}
