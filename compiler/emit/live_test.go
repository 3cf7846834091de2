package emit

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
)

// What comes from a cluster goes out as a manifest that can be applied.
func TestLiveManifests(t *testing.T) {
	t.Parallel()
	object := map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": "web", "namespace": "shop", "uid": "1", "annotations": map[string]any{"note": "a\x7fb\u0085c"}, "resourceVersion": "2", "generation": int64(3), "managedFields": []any{}},
		"spec":     map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{}}}},
		"status":   map[string]any{"replicas": int64(1)},
	}
	w, findings, ok := workload.FromObject(object, workload.Options{}, workload.Source{Live: true})
	if !ok || findings.HasErrors() {
		t.Fatal(ok, findings)
	}
	text, findings := LiveManifests(context.Background(), &compiler.Plan{Changes: []compiler.Change{{Workload: w, After: workload.PodFields{PriorityClassName: "high"}}}})
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	want := `apiVersion: apps/v1
kind: Deployment
metadata:
  annotations:
    kubectl-sched.github.io/placement: '{"v":2,"fields":[{"at":"/spec/template/spec/priorityClassName","is":"tXxCma_j"}]}'
    note: "a\x7Fb\Nc"
  name: web
  namespace: shop
spec:
  template:
    spec:
      containers: []
      priorityClassName: high
`
	if d := cmp.Diff(want, string(text)); d != "" {
		t.Errorf("manifest (-want +got):\n%s", d)
	}
}

// The node of a bare pod is not asked for in its manifest: the scheduler has said it.
func TestLivePod(t *testing.T) {
	t.Parallel()
	object := map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "one", "namespace": "shop"},
		"spec": map[string]any{"nodeName": "n1", "containers": []any{}},
	}
	w, findings, ok := workload.FromObject(object, workload.Options{}, workload.Source{Live: true})
	if !ok || findings.HasErrors() {
		t.Fatal(ok, findings)
	}
	text, findings := LiveManifests(context.Background(), &compiler.Plan{Changes: []compiler.Change{{Workload: w, After: workload.PodFields{PriorityClassName: "high"}}}})
	if len(findings) > 0 || strings.Contains(string(text), "nodeName") || !strings.Contains(string(text), "priorityClassName: high") {
		t.Errorf("%v\n%s", findings, text)
	}
	if w.Object["spec"].(map[string]any)["nodeName"] != "n1" {
		t.Error("what was read has changed")
	}
}
