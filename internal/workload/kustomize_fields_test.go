package workload

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestKustomizationFields(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"kustomization.yaml": "resources: []\ncommonLabels: web\nnamePrefix: [a]\nimagess: []\npatches:\n- paht: x\nhelmCharts:\n- {name: x}\n",
	})
	_, findings := Read(context.Background(), Input{Kustomize: dir}, Options{})
	want := []string{
		`input/kustomize DIR/kustomization.yaml:2:1: "commonLabels" must be a map, not a string`,
		`input/kustomize DIR/kustomization.yaml:3:1: "namePrefix" must be a string, not a list`,
		`input/kustomize DIR/kustomization.yaml:4:1: a kustomization has no field "imagess"`,
		`input/kustomize DIR/kustomization.yaml:5:1: "patches" has no field "paht"`,
		`input/kustomize DIR/kustomization.yaml:7:1: charts in a kustomization (helmCharts) are not rendered, since that runs helm; give the output of "helm template" with -f`,
	}
	if diff := cmp.Diff(want, lines(findings, dir)); diff != "" {
		t.Error(diff)
	}
}

// TestKustomizeSpeaksWithoutGo builds what only kustomize itself can refuse.
func TestKustomizeSpeaksWithoutGo(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"kustomization.yaml": "resources: [a.yaml]\n", "a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: 3\n"})
	_, findings := Read(context.Background(), Input{Kustomize: dir}, Options{})
	if len(findings) == 0 {
		t.Fatal("no finding")
	}
	for _, f := range findings {
		if text := f.String(); strings.Contains(text, "Go ") || strings.Contains(text, "MalformedYAMLError") || !strings.HasPrefix(f.Range.Start.File, filepath.Dir(dir)) {
			t.Errorf("it says %s", text)
		}
	}
}
