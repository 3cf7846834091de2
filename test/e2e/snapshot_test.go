package e2e

import (
	"os"
	"path/filepath"
	"testing"
)

const snapshotManifests = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      topologySpreadConstraints:
      - {maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}
      containers: [{name: main, image: "registry.example.com/web:1", resources: {requests: {cpu: 100m}, limits: {memory: 64Mi}}}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web, namespace: default}
spec: {minAvailable: 2, selector: {matchLabels: {app: web}}}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly, namespace: default}
spec:
  schedule: "0 3 * * *"
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: "registry.example.com/nightly:1"}]}}}}
`

// TestSnapshotTwice takes snapshots of a cluster in which nothing happens, in both
// forms, and holds that nothing differs between them.
func TestSnapshotTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t, filepath.Join("testdata", "nodes.yaml"))
	c, err := newClient(w.RESTConfig(), "default")
	if err != nil {
		t.Fatal(err)
	}
	objects, err := readManifests([]byte(snapshotManifests))
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if err := c.create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.rolledOut(t.Context(), "deploy/web"); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := writeKubeconfig(kubeconfig, w.RESTConfig(), "default"); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) {
		t.Helper()
		out, err := pluginCommand(t.Context(), dir, kubeconfig, append([]string{"snapshot"}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("snapshot %v: %v\n%s", args, err, out)
		}
	}
	for _, file := range []string{"a.snapshot", "b.snapshot", "c.yaml"} {
		run("-o", file)
	}
	run("diff", "a.snapshot", "b.snapshot")
	run("diff", "b.snapshot", "c.yaml")
	for _, file := range []string{"a.yaml", "b.yaml"} {
		run("-o", file, "--anonymize", "--names", "names")
	}
	run("diff", "a.yaml", "b.yaml")
	if text, err := os.ReadFile(filepath.Join(dir, "c.yaml")); err != nil || len(text) < 1000 {
		t.Errorf("the snapshot is %d bytes long, %v", len(text), err)
	}
}
