package compiler_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/load"
)

// TestExamples compiles every example that has manifests over them, for each of
// its clusters: there is no error, everything has a reason and a line, and every
// policy is for something.
func TestExamples(t *testing.T) {
	t.Parallel()
	dirs, err := filepath.Glob("../examples/*/manifests")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("examples: %v, %v", dirs, err)
	}
	for _, manifests := range dirs {
		example := filepath.Dir(manifests)
		t.Run(filepath.Base(example), func(t *testing.T) {
			t.Parallel()
			placement := loaded(t, filepath.Join(example, "placement"))
			set := read(t, manifests, nil)
			clusters := []string{""}
			for _, c := range placement.Clusters {
				clusters = append(clusters, c.Name)
			}
			if len(clusters) > 1 {
				clusters = clusters[1:]
			}
			matched := map[string]bool{}
			for _, cluster := range clusters {
				plan, findings := compiler.Compile(compiler.Request{
					Placement: placement, Workloads: set.Workloads,
					Now:          time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC),
					Capabilities: capability.Capabilities{Cluster: cluster, Namespaces: namespacesIn(set)},
				})
				if findings.HasErrors() {
					t.Errorf("cluster %q:\n%v", cluster, findings)
				}
				checkPlan(t, plan)
				for _, c := range plan.Changes {
					for _, p := range c.Policies {
						matched[p] = true
					}
				}
			}
			for _, p := range placement.Policies {
				if !matched[p.Name] {
					t.Errorf("policy %q is in force for no manifest", p.Name)
				}
			}
		})
	}
}

func loaded(t *testing.T, dir string) *policy.Placement {
	t.Helper()
	placement, findings := load.Evaluate(context.Background(), load.Options{Paths: []string{dir}})
	if findings.HasErrors() {
		t.Fatal(findings)
	}
	return placement
}

// namespacesIn returns the labels of the namespaces among the manifests.
func namespacesIn(set *workload.Set) map[string]map[string]string {
	out := map[string]map[string]string{}
	for _, o := range set.Others {
		if o.Kind == "Namespace" && o.Group == "" {
			out[o.Name] = (&unstructured.Unstructured{Object: o.Object}).GetLabels()
		}
	}
	return out
}

// TestTable holds the table of intents to what its readers need: each entry
// is documented, and its example is CUE that loads and does something.
func TestTable(t *testing.T) {
	t.Parallel()
	for _, intent := range compiler.Intents() {
		t.Run(intent.Name, func(t *testing.T) {
			t.Parallel()
			if intent.Doc == "" || intent.Limits == "" || len(intent.Fields) == 0 {
				t.Errorf("incomplete: %+v", intent)
			}
			dir := t.TempDir()
			document := "package p\npools: {gpu: {nodes: labels: class: \"gpu\", dedicated: {}}, spot: {nodes: labels: class: \"spot\", dedicated: {}}}\n" +
				"policies: x: {\nworkloads: names: [\"web\"]\n" + intent.Example + "\n}\n"
			if err := os.WriteFile(filepath.Join(dir, "p.cue"), []byte(document), 0o600); err != nil {
				t.Fatal(err)
			}
			plan, findings := compiler.Compile(compiler.Request{Placement: loaded(t, dir), Workloads: []*workload.Workload{deployment(t, workload.PodFields{})}, Installing: true})
			if findings.HasErrors() {
				t.Fatal(findings)
			}
			checkPlan(t, plan)
			if len(plan.Changes) != 1 || len(plan.Changes[0].Effects) == 0 {
				t.Errorf("the example does nothing: %+v", plan.Changes)
			}
		})
	}
	names := []string{}
	for _, intent := range compiler.Intents() {
		names = append(names, intent.Name)
		if !bytes.Contains([]byte(compiler.Reference()), []byte("\n## "+intent.Name+"\n")) {
			t.Errorf("the reference has no %q", intent.Name)
		}
	}
	if slices.Sort(names); len(slices.Compact(names)) != len(compiler.Intents()) {
		t.Errorf("an intent is listed twice: %v", names)
	}
}
