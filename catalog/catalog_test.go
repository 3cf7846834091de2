package catalog_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
	"github.com/kubectl-sched/kubectl-sched/internal/lint"
	"github.com/kubectl-sched/kubectl-sched/internal/policytest"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/load"
)

// now is when everything here takes place.
var now = time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)

// entries returns the entries of the catalog.
func entries(t *testing.T) []load.Entry {
	t.Helper()
	c, err := load.ReadCatalog()
	if err != nil {
		t.Fatal(err)
	}
	return c.Entries
}

// example evaluates the example of an entry.
func example(t *testing.T, entry string) *policy.Placement {
	t.Helper()
	p, findings := load.Evaluate(t.Context(), load.Options{Paths: []string{entry}})
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	return p
}

// run runs the tests of a placement.
func run(t *testing.T, p *policy.Placement) []policytest.Result {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	report, err := policytest.Run(t.Context(), policytest.Options{Placement: p, Dir: dir, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return report.Results
}

// TestSubjects holds that there is an entry for everything that is promised, and nothing
// that no test reaches.
func TestSubjects(t *testing.T) {
	t.Parallel()
	want := []string{
		"approval-gate", "arch-migration", "batch-packing", "cache-warm", "data-residency", "gpu-gang", "latency-critical",
		"local-volumes", "maintenance-window", "quorum", "shared-gpu", "spot-fallback", "system-daemons", "tenant-pool",
		"web-service", "zone-loss",
	}
	var got []string
	for _, e := range entries(t) {
		got = append(got, e.Name)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	folders, err := filepath.Glob("*/placement.cue")
	if err != nil || len(folders) != len(want) {
		t.Errorf("%d examples for %d entries (%v)", len(folders), len(want), err)
	}
}

// TestDocumented holds that each entry says what it is for, when not to take it and what
// it compiles to, and says of each parameter what it means.
func TestDocumented(t *testing.T) {
	t.Parallel()
	for _, e := range entries(t) {
		if e.Summary == "" || len(e.Summary) > 120 {
			t.Errorf("%s: the first sentence is %q", e.Name, e.Summary)
		}
		for _, begin := range []string{"When: ", "When not: ", "Compiles to "} {
			if !slices.ContainsFunc(e.Doc, func(p string) bool { return strings.HasPrefix(p, begin) }) {
				t.Errorf("%s: no paragraph begins with %q", e.Name, begin)
			}
		}
		if len(e.Results) == 0 || len(e.Parameters) == 0 {
			t.Errorf("%s: %d parameters, %d results", e.Name, len(e.Parameters), len(e.Results))
		}
		for _, p := range e.Parameters {
			if !strings.HasPrefix(p.Doc, p.Path+" ") {
				t.Errorf("%s: the comment of %s is %q", e.Name, p.Path, p.Doc)
			}
		}
	}
}

// TestTests runs the tests beside each entry.
func TestTests(t *testing.T) {
	t.Parallel()
	for _, e := range entries(t) {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			results := run(t, example(t, e.Name))
			if len(results) < 2 {
				t.Errorf("%d tests", len(results))
			}
			for _, r := range results {
				if !r.Passed() {
					t.Errorf("%s: %v%v", r.Name, r.Errors, r.Failures)
				}
			}
		})
	}
}

// TestEachTestCanFail holds that no test passes when the policies and pools of the entry
// say nothing any more.
func TestEachTestCanFail(t *testing.T) {
	t.Parallel()
	for _, e := range entries(t) {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			p := example(t, e.Name)
			for i, q := range p.Policies {
				p.Policies[i] = policy.Policy{
					Name: q.Name, Folder: q.Folder, When: q.When, Workloads: q.Workloads, Level: q.Level, Positions: q.Positions,
				}
			}
			for i, q := range p.Pools {
				p.Pools[i] = policy.Pool{Name: q.Name, Nodes: q.Nodes, ManagedBy: q.ManagedBy, Positions: q.Positions}
			}
			for _, r := range run(t, p) {
				if r.Passed() {
					t.Errorf("%q passes without any placement", r.Name)
				}
			}
		})
	}
}

// TestEachIntentIsTested holds that some test of an entry fails when any one thing that
// the entry says is taken out.
func TestEachIntentIsTested(t *testing.T) {
	t.Parallel()
	for _, e := range entries(t) {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			ofPools := slices.ContainsFunc(e.Results, func(r load.Result) bool { return r.Section == "pools" })
			for _, m := range mutants(example(t, e.Name), ofPools) {
				caught := slices.ContainsFunc(run(t, m.placement), func(r policytest.Result) bool { return !r.Passed() })
				if !caught {
					t.Errorf("all tests pass without %s", m.without)
				}
			}
		})
	}
}

// TestNoFindings holds that compiling and lint find nothing in the examples.
func TestNoFindings(t *testing.T) {
	t.Parallel()
	for _, e := range entries(t) {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			p := example(t, e.Name)
			set, findings := workload.Read(t.Context(), workload.Input{Files: []string{filepath.Join(e.Name, "manifests")}, Recursive: true}, workload.Options{})
			cluster := ""
			if len(p.Clusters) > 0 {
				cluster = p.Clusters[0].Name
			}
			namespaces := map[string]map[string]string{}
			for _, o := range set.Others {
				if o.Kind == "Namespace" {
					namespaces[o.Name] = (&unstructured.Unstructured{Object: o.Object}).GetLabels()
				}
			}
			request := compiler.Request{
				Placement: p, Workloads: set.Workloads, Now: now,
				Capabilities: capability.Capabilities{Cluster: cluster, Namespaces: namespaces},
			}
			plan, fs := compiler.Compile(request)
			findings = append(findings, fs...)
			findings = append(findings, lint.Check(lint.Input{Request: request, Plan: plan, Others: set.Others})...)
			for _, f := range findings {
				t.Errorf("%v [%s]", f, f.Rule)
			}
			if len(plan.Changes) == 0 {
				t.Error("nothing is compiled")
			}
		})
	}
}

// TestFiles holds that all of the files are in the binary, the workloads too.
func TestFiles(t *testing.T) {
	t.Parallel()
	c, err := load.ReadCatalog()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range c.Entries {
		for _, pattern := range []string{"/placement.cue", "/tests.cue", "/manifests/*.yaml"} {
			if found, err := fs.Glob(c.Examples, e.Name+pattern); err != nil || len(found) == 0 {
				t.Errorf("%s%s: %v, %v", e.Name, pattern, found, err)
			}
		}
	}
}
