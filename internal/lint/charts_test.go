package lint_test

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/internal/cluster/facts"
	"github.com/kubectl-sched/kubectl-sched/internal/cluster/snapshot"
	"github.com/kubectl-sched/kubectl-sched/internal/lint"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/load"
	"github.com/kubectl-sched/kubectl-sched/test/golden"
)

// charts holds whole renderings of charts that people install, with the nodes of a
// cluster that all find a place on.
const charts = "../../test/charts"

// chartsCluster is a snapshot with those nodes, as YAML.
func chartsCluster(t *testing.T) []byte {
	t.Helper()
	return clusterOf(t, filepath.Join(charts, "nodes.yaml"))
}

// clusterOf is a snapshot with the fake nodes of a file.
func clusterOf(t *testing.T, pools string) []byte {
	t.Helper()
	data, err := os.ReadFile(pools)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Pools []struct {
			Name, Region  string
			NodeName      string
			Count         int
			Zones, Taints []string
			Labels        map[string]string
			Capacity      map[string]any
		}
	}
	if err := yaml.UnmarshalStrict(data, &file); err != nil {
		t.Fatal(err)
	}
	var docs []string
	for _, p := range file.Pools {
		for i := range p.Count {
			name := cmp.Or(p.NodeName, fmt.Sprintf("%s-%d", p.Name, i))
			labels := map[string]string{
				"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
				"topology.kubernetes.io/zone": p.Zones[i%len(p.Zones)], "topology.kubernetes.io/region": p.Region,
			}
			maps.Copy(labels, p.Labels)
			var taints []map[string]string
			for _, taint := range p.Taints {
				what, effect, _ := strings.Cut(taint, ":")
				key, value, _ := strings.Cut(what, "=")
				taints = append(taints, map[string]string{"key": key, "value": value, "effect": effect})
			}
			capacity := map[string]any{"cpu": "16", "memory": "64Gi", "pods": "110"}
			maps.Copy(capacity, p.Capacity)
			node, err := yaml.Marshal(map[string]any{
				"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": name, "labels": labels},
				"spec": map[string]any{"taints": taints}, "status": map[string]any{"capacity": capacity},
			})
			if err != nil {
				t.Fatal(err)
			}
			docs = append(docs, string(node))
		}
	}
	return []byte(strings.Join(docs, "---\n"))
}

// readCluster reads a snapshot from YAML.
func readCluster(t *testing.T, text []byte) *snapshot.Snapshot {
	t.Helper()
	file := filepath.Join(t.TempDir(), "snapshot.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := snapshot.ReadFile(file, snapshot.ReadOptions{File: file})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// manifestsIn returns the manifests below the folder, by file.
func manifestsIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for name, text := range golden.Files(t, dir, ".yaml") {
		texts[filepath.Join(dir, name)] = text
	}
	return texts
}

// inputOf is the input for manifests, by file, and the policies in the folder, which
// may be empty.
func inputOf(t *testing.T, texts map[string]string, policies string, s *snapshot.Snapshot) lint.Input {
	t.Helper()
	request := compiler.Request{Placement: &policy.Placement{}, Now: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)}
	if policies != "" {
		placement, findings := load.Evaluate(t.Context(), load.Options{Paths: []string{policies}})
		if findings.HasErrors() {
			t.Fatal(findings)
		}
		request.Placement = placement
	}
	if s != nil {
		request.Capabilities = facts.Capabilities(s)
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		all = append(all, strings.TrimPrefix(texts[name], "---\n"))
	}
	set, findings := workload.Read(t.Context(), workload.Input{Files: []string{"-"}, Stdin: strings.NewReader(strings.Join(all, "\n---\n"))}, workload.Options{})
	if findings.HasErrors() {
		t.Fatal(findings)
	}
	request.Workloads = set.Workloads
	request.Capabilities = withManifests(request.Capabilities, set.Others)
	in := lint.Input{Request: request, Others: set.Others, Snapshot: s}
	in.Plan, _ = compiler.Compile(request)
	return in
}

// right are findings that are true of what works: a reader should know, or would
// mend it in the chart.
var right = map[string][]string{
	// The preference and toleration are for clusters that have such nodes.
	"pgkeeper": {"workload/toleration-idle CronJob pgkeeper-system/pgkeeper-catalog-refresh"},
	// Without its policy the driver is not on every node: that is what the policy is for.
	"blockvol": {"workload/daemonset-skips DaemonSet kube-system/blockvol-csi-node-windows", "workload/daemonset-skips DaemonSet kube-system/blockvol-csi-node"},
	// The chart writes replicas beside its autoscaler, and a budget for one pod.
	"harbourgate":       {"workload/replicas-owned Deployment harbourgate/harbourgate-controller", "workload/pdb-blocks-drain PodDisruptionBudget harbourgate/harbourgate-defaultbackend"},
	"web-spot-fallback": {"workload/replicas-owned Deployment shop/checkout"},
	// Grants are there and no guard is, which is allowed.
	"strimzi":             {"policy/unguarded-pool pool streams"},
	"kafka-local-volumes": {"policy/unguarded-pool pool storage"},
	// Its policy is for production, and no cluster is named here.
	"tenant-gpu-pool": {"policy/unguarded-pool pool gpu", "workload/too-large Deployment ml-vision/defects-api"},
	"nightly-batch":   {"policy/unguarded-pool pool batch"},
}

// TestChartsAndExamplesAreClean holds that nothing is found in what works that is
// not true, with policies and without, from files alone and with a cluster.
func TestChartsAndExamplesAreClean(t *testing.T) {
	t.Parallel()
	cluster := readCluster(t, chartsCluster(t))
	check := func(t *testing.T, name string, inputs map[string]lint.Input) {
		t.Helper()
		seen := map[string]bool{}
		for kind, in := range inputs {
			for _, f := range lint.Check(in) {
				what := f.Rule + " " + f.Subject
				seen[what] = true
				if !slices.Contains(right[name], what) {
					t.Errorf("%s: %s %s", kind, f.Rule, f)
				}
			}
		}
		for _, what := range right[name] {
			if !seen[what] {
				t.Errorf("%s is not found any more", what)
			}
		}
	}
	folders, err := filepath.Glob(filepath.Join(charts, "*", "placement"))
	if err != nil || len(folders) < 6 {
		t.Fatalf("%d charts, %v", len(folders), err)
	}
	for _, policies := range folders {
		dir := filepath.Dir(policies)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			texts := manifestsIn(t, dir)
			check(t, filepath.Base(dir), map[string]lint.Input{
				"files": inputOf(t, texts, "", nil), "cluster": inputOf(t, texts, "", cluster),
				"policies": inputOf(t, texts, policies, nil), "all": inputOf(t, texts, policies, cluster),
			})
		})
	}
	exampleNodes := readCluster(t, clusterOf(t, "../../test/e2e/testdata/examples_nodes.yaml"))
	examples, err := filepath.Glob("../../examples/*/placement")
	if err != nil || len(examples) < 8 {
		t.Fatalf("%d examples, %v", len(examples), err)
	}
	for _, policies := range examples {
		dir := filepath.Dir(policies)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			texts := map[string]string{}
			if manifests := filepath.Join(dir, "manifests"); exists(manifests) {
				texts = manifestsIn(t, manifests)
			}
			check(t, filepath.Base(dir), map[string]lint.Input{"files": inputOf(t, texts, policies, nil), "all": inputOf(t, texts, policies, exampleNodes)})
		})
	}
}

// TestExampleConfigurationIsClean is for the scheduler's configurations among the
// examples, which name a plugin of somebody's own and run where no other scheduler
// holds the lease.
func TestExampleConfigurationIsClean(t *testing.T) {
	t.Parallel()
	texts := map[string]string{}
	data, err := os.ReadFile("../../examples/run-it-yourself/config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	texts["config.yaml"] = string(data)
	for _, f := range lint.Check(inputOf(t, texts, "", nil)) {
		if f.Rule != "scheduler/lease" && !strings.Contains(f.Message, `plugin "Inventory" is neither`) {
			t.Errorf("%s %s", f.Rule, f)
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
