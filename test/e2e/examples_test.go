package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// example is one of examples/, and where its pods must land.
type example struct {
	// cluster is the one of the example's clusters that the sandbox plays; empty
	// for an example that speaks of none.
	cluster string
	// folders are the policy folders; empty means "placement".
	folders []string
	// packageName is that of the example's documents.
	packageName string
	// rendered creates the compiled manifests. Pods that had run before, without
	// the policies, would have bound their volumes elsewhere.
	rendered bool
	// triggered are CronJobs that run once now, as Jobs of the same name.
	triggered []string
	// namespaces narrow a set whose policies select in all namespaces.
	namespaces string
	landings   []landing
}

var examples = map[string]example{
	"web-spot-fallback": {cluster: "prod-eu", packageName: "shop", landings: []landing{
		{workload: "shop/deploy/storefront", by: "pool", only: []string{"spot"}, count: 6},
		{workload: "shop/deploy/storefront", by: "zone", skew: 1, most: 2},
		{workload: "shop/deploy/checkout", by: "pool", only: []string{"general"}, count: 3},
		{workload: "shop/deploy/checkout", by: "zone", most: 1},
		{workload: "shop/deploy/checkout", by: "node", most: 1},
	}},
	"tenant-gpu-pool": {cluster: "prod-eu", packageName: "gpu", landings: []landing{
		{workload: "ml-vision/deploy/defects-api", by: "pool", only: []string{"gpu"}, count: 3},
		{workload: "ml-vision/deploy/defects-api", by: "zone", most: 1},
		{workload: "ml-vision/deploy/labelling-ui", by: "pool", only: []string{"general", "windows"}, count: 2},
	}},
	"kafka-local-volumes": {cluster: "prod-eu", packageName: "kafka", landings: []landing{
		{workload: "kafka/sts/kafka", by: "example.com/disks", only: []string{"local-nvme"}, count: 3},
		{workload: "kafka/sts/kafka", by: "zone", most: 1},
		{workload: "kafka/sts/kafka", by: "node", most: 1},
		{workload: "minio/sts/minio", by: "example.com/disks", only: []string{"local-nvme"}, count: 4},
	}},
	"quorum-five-three-zones": {rendered: true, cluster: "prod-eu", packageName: "quorum", landings: []landing{
		{workload: "coordination/sts/quorum", by: "zone", count: 5, most: 2, skew: 1},
		{workload: "coordination/sts/quorum", by: "node", most: 1},
		{workload: "coordination/deploy/lock-service", by: "zone", only: []string{"eu-central-1a", "eu-central-1b", "eu-central-1c"}, count: 3},
	}},
	"residency-by-region": {rendered: true, cluster: "global-1", packageName: "residency", landings: []landing{
		{workload: "profiles-eu/deploy/profiles", by: "region", only: []string{"eu-central-1"}, count: 4},
		{workload: "profiles-us/deploy/profiles", by: "region", only: []string{"us-east-1"}, count: 4},
		{workload: "profiles-us/deploy/profiles", by: "zone", skew: 1},
		{workload: "profiles-au/sts/consent-log", by: "region", only: []string{"ap-southeast-2"}, count: 1},
	}},
	"org-default-exception": {
		cluster: "prod-eu", packageName: "placement", namespaces: "payments,stores", folders: []string{"placement", "placement/payments"},
		landings: []landing{
			{workload: "payments/sts/ledger", by: "zone", count: 3, most: 1},
			{workload: "payments/deploy/fraud-scoring", by: "pool", only: []string{"spot"}, count: 4},
			{workload: "stores/deploy/inventory", by: "kubernetes.io/os", only: []string{"linux"}, count: 3},
			{workload: "stores/deploy/pos-bridge", by: "kubernetes.io/os", only: []string{"windows"}, count: 1},
		},
	},
	"daemonset-except-pool": {landings: []landing{
		// All nodes but the two that are rented.
		{workload: "observability/ds/node-agent", by: "node", count: 22, most: 1},
		{workload: "observability/ds/node-agent", by: "example.com/provider", only: []string{"<none>"}},
		{workload: "observability/deploy/agent-gateway", by: "node", count: 2, most: 1},
	}},
	"nightly-batch": {
		triggered: []string{"reports/cronjob/sales-report", "billing/cronjob/invoices"},
		landings: []landing{
			{workload: "reports/job/sales-report", by: "pool", only: []string{"batch"}, count: 1},
			{workload: "billing/job/invoices", by: "pool", only: []string{"general", "batch", "windows"}, count: 16},
		},
	},
}

// bundled are the examples whose pods wait for the bundled scheduler; what such
// policies come to is looked at in test/scheduler.
var bundled = []string{"training-tenant"}

// TestExamples creates the manifests of every example, applies its policies to
// what runs, and looks at where the pods land. The same policies, compiled into
// the same manifests with the cluster at hand, come to the same placement.
func TestExamples(t *testing.T) {
	t.Parallel()
	w := newWorld(t, filepath.Join("testdata", "examples_nodes.yaml"))
	c, err := newClient(w.RESTConfig(), "default")
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := writeKubeconfig(kubeconfig, w.RESTConfig(), "default"); err != nil {
		t.Fatal(err)
	}
	more, err := os.ReadFile(filepath.Join("testdata", "examples_more.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := readManifests(more)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if err := c.create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	folders, err := filepath.Glob(filepath.Join("..", "..", "examples", "*", "manifests"))
	folders = slices.DeleteFunc(folders, func(f string) bool { return slices.Contains(bundled, filepath.Base(filepath.Dir(f))) })
	if err != nil || len(folders) != len(examples) {
		t.Fatalf("%d examples with manifests, %v; want those of the table", len(folders), err)
	}
	const far = "residency-by-region"
	t.Run("examples", func(t *testing.T) {
		for _, manifests := range folders {
			name := filepath.Base(filepath.Dir(manifests))
			if name == far {
				continue
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				testExample(t, c, kubeconfig, name, examples[name])
			})
		}
	})
	// Its regions are zones to spread over for everybody else.
	t.Run(far, func(t *testing.T) {
		if err := w.addFile(t.Context(), filepath.Join("testdata", "examples_far.yaml")); err != nil {
			t.Fatal(err)
		}
		testExample(t, c, kubeconfig, far, examples[far])
	})
}

func testExample(t *testing.T, c *client, kubeconfig, name string, x example) {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("..", "..", "examples", name))); err != nil {
		t.Fatal(err)
	}
	args := []string{}
	if len(x.folders) == 0 {
		x.folders = []string{"placement"}
	}
	for _, folder := range x.folders {
		args = append(args, "-p", folder)
	}
	if x.cluster != "" {
		args = append(args, "--cluster", x.cluster)
		live := fmt.Sprintf("package %s\n\nclusters: %q: surface: \"live\"\n", x.packageName, x.cluster)
		if err := os.WriteFile(filepath.Join(dir, "placement", "live.cue"), []byte(live), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	compile := append([]string{"compile", "--with-cluster", "-R", "-f", "manifests"}, args...)
	if x.namespaces != "" {
		args = append(args, "-n", x.namespaces)
	}
	args = append(args, "--set", name)

	objects := readFolder(t, filepath.Join(dir, "manifests"))
	for _, object := range objects {
		if order(object) < 2 {
			createWithSurroundings(t, c, object)
		}
	}
	if x.rendered {
		objects = compiledObjects(t, mustRun(t, dir, kubeconfig, compile...))
	}
	for _, object := range objects {
		if order(object) == 2 || (x.rendered && object.GetKind() == "PriorityClass") {
			createWithSurroundings(t, c, object)
		}
	}
	if !x.rendered {
		mustRun(t, dir, kubeconfig, append([]string{"apply", "--force-conflicts"}, args...)...)
	}
	for _, name := range x.triggered {
		c.trigger(t, name)
	}
	for _, want := range x.landings {
		want.check(t.Context(), t, c)
	}
	for _, object := range compiledObjects(t, mustRun(t, dir, kubeconfig, compile...)) {
		samePlacement(t, c, object)
	}
	if x.rendered {
		return
	}
	if out, errs, code := runIn(t, dir, kubeconfig, append([]string{"diff"}, args...)...); code != 0 || out != "" {
		t.Errorf("diff after apply: exit code %d\n%s%s", code, out, errs)
	}
}

func createWithSurroundings(t *testing.T, c *client, object *unstructured.Unstructured) {
	t.Helper()
	if err := c.surroundings(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	if err := c.create(t.Context(), object); err != nil {
		t.Fatalf("%s %s: %v", object.GetKind(), object.GetName(), err)
	}
}

// trigger makes a Job of a CronJob, as "kubectl create job --from" does.
func (c *client) trigger(t *testing.T, name string) {
	t.Helper()
	cron, err := c.get(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	spec, _, err := unstructured.NestedMap(cron.Object, "spec", "jobTemplate", "spec")
	if err != nil {
		t.Fatal(err)
	}
	job := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "batch/v1", "kind": "Job", "spec": spec,
		"metadata": map[string]any{"name": cron.GetName(), "namespace": cron.GetNamespace()},
	}}
	if err := c.create(t.Context(), job); err != nil {
		t.Fatal(err)
	}
}

// compiledObjects are the objects of what compile printed, with those first that
// others need.
func compiledObjects(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := readManifests([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int { return order(a) - order(b) })
	return objects
}

// samePlacement holds that a compiled manifest and the live object have the same
// placement. What cannot change in a live object is left out.
func samePlacement(t *testing.T, c *client, compiled *unstructured.Unstructured) {
	t.Helper()
	want, found := podSpec(compiled.Object)
	if !found || compiled.GetKind() == "Job" {
		return
	}
	live, err := c.get(t.Context(), fmt.Sprintf("%s/%s.%s/%s", compiled.GetNamespace(), compiled.GetKind(), compiled.GroupVersionKind().Group, compiled.GetName()))
	if err != nil {
		t.Error(err)
		return
	}
	have, _ := podSpec(live.Object)
	for _, field := range []string{"affinity", "tolerations", "topologySpreadConstraints", "priorityClassName"} {
		if d := cmp.Diff(asJSON(t, want[field]), asJSON(t, have[field])); d != "" {
			t.Errorf("%s %s: %s compiled and live differ (-compiled +live):\n%s", compiled.GetKind(), compiled.GetName(), field, d)
		}
	}
}

func asJSON(t *testing.T, value any) string {
	t.Helper()
	data, err := json.MarshalIndent(value, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
