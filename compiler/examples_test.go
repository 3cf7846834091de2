package compiler_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/load"
)

// TestExamples compiles every example over its own manifests, for each of its
// clusters: there is no error, everything has a reason and a line, and every
// policy is for something.
func TestExamples(t *testing.T) {
	t.Parallel()
	dirs, err := filepath.Glob("../examples/*/placement")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("examples: %v, %v", dirs, err)
	}
	for _, dir := range dirs {
		t.Run(filepath.Base(filepath.Dir(dir)), func(t *testing.T) {
			t.Parallel()
			placement := loaded(t, dir)
			clusters := []string{""}
			for _, c := range placement.Clusters {
				clusters = append(clusters, c.Name)
			}
			if len(clusters) > 1 {
				clusters = clusters[1:]
			}
			matched := map[string]bool{}
			for _, cluster := range clusters {
				workloads, namespaces := exampleManifests(t, filepath.Join(filepath.Dir(dir), "manifests"))
				plan, findings := compiler.Compile(compiler.Request{
					Placement: placement, Workloads: workloads,
					Now:          time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC),
					Capabilities: capability.Capabilities{Cluster: cluster, Namespaces: namespaces},
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

// exampleManifests reads the workloads of the kinds that the test reader knows,
// and the labels of the namespaces.
func exampleManifests(t *testing.T, dir string) ([]*workload.Workload, map[string]map[string]string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	kind := regexp.MustCompile(`(?m)^kind: (\w+)`)
	var workloads []*workload.Workload
	namespaces := map[string]map[string]string{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, doc := range bytes.Split(data, []byte("\n---\n")) {
			m := kind.FindSubmatch(doc)
			switch {
			case m == nil:
			case string(m[1]) == "Namespace":
				var n corev1.Namespace
				if err := yaml.Unmarshal(doc, &n); err != nil {
					t.Fatal(err)
				}
				namespaces[n.Name] = n.Labels
			case testKinds[string(m[1])].templates != nil:
				workloads = append(workloads, workloadsOf(t, doc)...)
			}
		}
	}
	return workloads, namespaces
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
			plan, findings := compiler.Compile(compiler.Request{Placement: loaded(t, dir), Workloads: []*workload.Workload{deployment(workload.PodFields{})}})
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
