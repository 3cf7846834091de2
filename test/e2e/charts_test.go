package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// chart is what must come of one folder of test/charts.
type chart struct {
	// contested says that the chart itself sets fields which the policies change,
	// so that nothing is written before somebody says that it may be.
	contested bool
	// landings are where the policies want pods.
	landings []landing
}

var chartsByName = map[string]chart{
	"blockvol": {contested: true, landings: []landing{
		{workload: "kube-system/deploy/blockvol-csi-controller", by: "pool", only: []string{"system"}},
		{workload: "kube-system/deploy/blockvol-csi-controller", by: "node", most: 1},
		{workload: "kube-system/deploy/snapshot-controller", by: "pool", only: []string{"system"}},
		// Every node that runs Linux, whatever its taints.
		{workload: "kube-system/ds/blockvol-csi-node", by: "node", count: 21, most: 1},
		{workload: "kube-system/ds/blockvol-csi-node-windows", by: "pool", only: []string{"windows"}, count: 1},
	}},
	"harbourgate": {landings: []landing{
		{workload: "harbourgate/deploy/harbourgate-controller", by: "pool", only: []string{"edge"}},
		{workload: "harbourgate/deploy/harbourgate-controller", by: "zone", skew: 1},
	}},
	"pgkeeper": {contested: true, landings: []landing{
		{workload: "pgkeeper-system/deploy/pgkeeper", by: "pool", only: []string{"system", "spot"}},
		{workload: "pgkeeper-system/deploy/pgkeeper", by: "zone", skew: 1},
	}},
	"promstack": {contested: true, landings: []landing{
		{workload: "observability/ds/watch-node-exporter", by: "node", count: 21, most: 1},
		{workload: "observability/deploy/watch-grafana", by: "pool", only: []string{"system"}},
		{workload: "observability/deploy/watch-operator", by: "pool", only: []string{"system"}},
	}},
	"strimzi": {landings: []landing{
		{workload: "streams/deploy/strimzi-cluster-operator", by: "pool", only: []string{"system", "spot"}},
	}},
	"weft": {landings: []landing{
		{workload: "weft/deploy/weft-destination", by: "zone", skew: 1},
		{workload: "weft/deploy/weft-identity", by: "zone", skew: 1},
		{workload: "weft/deploy/weft-proxy-injector", by: "zone", skew: 1},
		{workload: "weft-cni/ds/weft-cni", by: "node", most: 1},
	}},
}

// TestCharts installs the whole renderings of charts, applies their policies, and
// looks at where every pod lands. Then the policies are taken back, and every
// object is what it was before them.
func TestCharts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, filepath.Join("..", "charts", "nodes.yaml"))
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := writeKubeconfig(kubeconfig, w.RESTConfig(), "default"); err != nil {
		t.Fatal(err)
	}
	folders, err := filepath.Glob(filepath.Join("..", "charts", "*", "placement"))
	if err != nil || len(folders) != len(chartsByName) {
		t.Fatalf("%d charts, %v; want those of the table", len(folders), err)
	}
	// The charts share nodes, but no names: side by side.
	t.Run("charts", func(t *testing.T) {
		for _, placement := range folders {
			name := filepath.Base(filepath.Dir(placement))
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				c, err := newClient(w.RESTConfig(), "default")
				if err != nil {
					t.Fatal(err)
				}
				dir := t.TempDir()
				if err := os.CopyFS(dir, os.DirFS(filepath.Dir(placement))); err != nil {
					t.Fatal(err)
				}
				testChart(t, c, dir, kubeconfig, name, chartsByName[name])
			})
		}
	})
}

func testChart(t *testing.T, c *client, dir, kubeconfig, name string, want chart) {
	t.Helper()
	objects := readFolder(t, dir)
	installed := c.install(t, objects)
	apply := []string{"apply", "--set", name, "--wait"}
	if want.contested {
		_, errs, code := runIn(t, dir, kubeconfig, apply...)
		if code != 2 || !strings.Contains(strings.Join(strings.Fields(errs), " "), `is owned by "helm"`) {
			t.Fatalf("apply over the chart's own fields: exit code %d\n%s", code, errs)
		}
		c.asInstalled(t, installed)
		apply = append(apply, "--force-conflicts")
	}
	mustRun(t, dir, kubeconfig, apply...)
	for _, landing := range want.landings {
		landing.check(t.Context(), t, c)
	}
	if out, errs, code := runIn(t, dir, kubeconfig, "diff", "--set", name); code != 0 || out != "" {
		t.Errorf("diff after apply: exit code %d\n%s%s", code, out, errs)
	}
	if status := mustRun(t, dir, kubeconfig, "status", "--set", name); !strings.Contains(status, "0 drifts, 0 violations") {
		t.Errorf("status after apply:\n%s", status)
	}
	mustRun(t, dir, kubeconfig, "delete", "--set", name)
	c.asInstalled(t, installed)
	// Nothing is left in the way of the chart's next version.
	c.install(t, objects)
	c.asInstalled(t, installed)
}

// install applies the objects as helm does, and returns them as they are then.
func (c *client) install(t *testing.T, objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	t.Helper()
	installed := make([]*unstructured.Unstructured, 0, len(objects))
	for _, object := range objects {
		answeredByNobody(t, object)
		live, err := c.apply(t.Context(), object, "helm")
		if err != nil {
			t.Fatalf("%s %s: %v", object.GetKind(), object.GetName(), err)
		}
		installed = append(installed, live)
	}
	return installed
}

// answeredByNobody lets the webhooks of an object pass: what they call does not
// run on fake nodes. They are called all the same.
func answeredByNobody(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	if !strings.HasSuffix(object.GetKind(), "WebhookConfiguration") {
		return
	}
	webhooks, _, err := unstructured.NestedSlice(object.Object, "webhooks")
	if err != nil {
		t.Fatal(err)
	}
	for _, webhook := range webhooks {
		webhook := webhook.(map[string]any)
		webhook["failurePolicy"], webhook["timeoutSeconds"] = "Ignore", int64(1)
	}
	if err := unstructured.SetNestedSlice(object.Object, webhooks, "webhooks"); err != nil {
		t.Fatal(err)
	}
}

// asInstalled holds that the objects are as they were, and that none was made
// anew.
func (c *client) asInstalled(t *testing.T, installed []*unstructured.Unstructured) {
	t.Helper()
	for _, before := range installed {
		mapping, err := c.mapping(t.Context(), before.GroupVersionKind())
		if err != nil {
			t.Fatal(err)
		}
		now, err := c.resource(mapping, before.GetNamespace()).Get(t.Context(), before.GetName(), metav1.GetOptions{})
		if err != nil {
			t.Errorf("%s %s: %v", before.GetKind(), before.GetName(), err)
			continue
		}
		if different := differs(before, now); different != "" {
			t.Errorf("%s %s/%s is not as it was installed:\n%s", before.GetKind(), before.GetNamespace(), before.GetName(), different)
		}
	}
}
