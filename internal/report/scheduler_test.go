package report_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-sched/kubectl-sched/internal/install"
	"github.com/kubectl-sched/kubectl-sched/internal/report"
)

// controls are characters that stand in JSON as they are, and may not in YAML.
const controls = "a\x7fb\u0085c\u009bd"

// TestObjects holds that objects are written whole, whatever is in them.
func TestObjects(t *testing.T) {
	t.Parallel()
	want := []*unstructured.Unstructured{
		{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}, "data": map[string]any{"note": controls}}},
		{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "b", "generation": int64(3)}}},
	}
	var out bytes.Buffer
	if err := report.Objects(&out, report.YAML, want); err != nil {
		t.Fatal(err)
	}
	var got []*unstructured.Unstructured
	for document := range bytes.SplitSeq(out.Bytes(), []byte("---\n")) {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, u); err != nil {
			t.Fatalf("%v\n%s", err, out.String())
		}
		got = append(got, u)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestSchedulerForTools holds that what the cluster says is in the document as it is.
func TestSchedulerForTools(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := report.Scheduler(&out, report.YAML, &install.Status{Missing: controls}, report.Options{}); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Kind      string
		Scheduler struct{ Missing string }
	}
	if err := yaml.Unmarshal(out.Bytes(), &got); err != nil || got.Kind != "SchedulerStatus" || got.Scheduler.Missing != controls {
		t.Errorf("%v, %+v of\n%s", err, got, out.String())
	}
}
