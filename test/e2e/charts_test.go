package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// chartLandings is where the policies of test/charts want pods, by chart.
var chartLandings = map[string][]landing{
	"blockvol": {
		{workload: "kube-system/deploy/blockvol-csi-controller", by: "pool", only: []string{"system"}},
		{workload: "kube-system/deploy/blockvol-csi-controller", by: "node", most: 1},
		{workload: "kube-system/deploy/snapshot-controller", by: "pool", only: []string{"system"}},
		// Every node that runs Linux, whatever its taints.
		{workload: "kube-system/ds/blockvol-csi-node", by: "node", count: 21, most: 1},
		{workload: "kube-system/ds/blockvol-csi-node-windows", by: "pool", only: []string{"windows"}, count: 1},
	},
	"harbourgate": {
		{workload: "harbourgate/deploy/harbourgate-controller", by: "pool", only: []string{"edge"}},
		{workload: "harbourgate/deploy/harbourgate-controller", by: "zone", skew: 1},
	},
	"pgkeeper": {
		{workload: "pgkeeper-system/deploy/pgkeeper", by: "pool", only: []string{"system", "spot"}},
		{workload: "pgkeeper-system/deploy/pgkeeper", by: "zone", skew: 1},
	},
	"promstack": {
		{workload: "observability/ds/watch-node-exporter", by: "node", count: 21, most: 1},
		{workload: "observability/deploy/watch-grafana", by: "pool", only: []string{"system"}},
		{workload: "observability/deploy/watch-operator", by: "pool", only: []string{"system"}},
	},
	"strimzi": {
		{workload: "streams/deploy/strimzi-cluster-operator", by: "pool", only: []string{"system", "spot"}},
	},
	"weft": {
		{workload: "weft/deploy/weft-destination", by: "zone", skew: 1},
		{workload: "weft/deploy/weft-identity", by: "zone", skew: 1},
		{workload: "weft/deploy/weft-proxy-injector", by: "zone", skew: 1},
		{workload: "weft-cni/ds/weft-cni", by: "node", most: 1},
	},
}

// TestCharts creates the whole renderings of charts, applies their policies, and
// looks at where every pod lands. In the files, the same policies go in and out
// again without a trace.
func TestCharts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, filepath.Join("..", "charts", "nodes.yaml"))
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := writeKubeconfig(kubeconfig, w.RESTConfig(), "default"); err != nil {
		t.Fatal(err)
	}
	charts, err := filepath.Glob(filepath.Join("..", "charts", "*", "placement"))
	if err != nil || len(charts) != len(chartLandings) {
		t.Fatalf("%d charts, %v; want those of chartLandings", len(charts), err)
	}
	// The charts share nodes, but no names: side by side.
	t.Run("charts", func(t *testing.T) {
		for _, placement := range charts {
			chart := filepath.Base(filepath.Dir(placement))
			t.Run(chart, func(t *testing.T) {
				t.Parallel()
				c, err := newClient(w.RESTConfig(), "default")
				if err != nil {
					t.Fatal(err)
				}
				dir := t.TempDir()
				if err := os.CopyFS(dir, os.DirFS(filepath.Dir(placement))); err != nil {
					t.Fatal(err)
				}
				for _, object := range readFolder(t, dir) {
					// What webhooks call does not run on fake nodes.
					if strings.HasSuffix(object.GetKind(), "WebhookConfiguration") {
						continue
					}
					if err := c.create(t.Context(), object); err != nil {
						t.Fatalf("%s %s: %v", object.GetKind(), object.GetName(), err)
					}
				}
				mustRun(t, dir, kubeconfig, "apply", "--set", chart, "--force-conflicts", "--wait")
				for _, want := range chartLandings[chart] {
					want.check(t.Context(), t, c)
				}
				if out, errs, code := runIn(t, dir, kubeconfig, "diff", "--set", chart); code != 0 || out != "" {
					t.Errorf("diff after apply: exit code %d\n%s%s", code, out, errs)
				}
				status := mustRun(t, dir, kubeconfig, "status", "--set", chart)
				if !strings.Contains(status, "0 drifts, 0 violations") {
					t.Errorf("status after apply:\n%s", status)
				}
				mustRun(t, dir, kubeconfig, "delete", "--set", chart)
			})
		}
	})
}
