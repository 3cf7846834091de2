package workload

import (
	"context"
	"fmt"
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

// TestKustomizationThatDoubles holds that layers which include the next one twice are
// refused before they are built, and that few layers are built.
func TestKustomizationThatDoubles(t *testing.T) {
	t.Parallel()
	layers := func(n int) string {
		files := map[string]string{"l0/kustomization.yaml": "resources: [a.yaml]\n", "l0/a.yaml": fmt.Sprintf(deployment, "a")}
		for i := 1; i <= n; i++ {
			files[fmt.Sprintf("l%d/kustomization.yaml", i)] = "resources: [a, b]\n"
			for _, name := range []string{"a", "b"} {
				files[fmt.Sprintf("l%d/%s/kustomization.yaml", i, name)] = fmt.Sprintf("namePrefix: %s-\nresources: [../../l%d]\n", name, i-1)
			}
		}
		return filepath.Join(folder(t, files), fmt.Sprintf("l%d", n))
	}
	for _, n := range []int{14, 200} {
		dir := layers(n)
		set, findings := Read(t.Context(), Input{Kustomize: dir}, Options{})
		if len(findings) != 1 || findings[0].Rule != "input/limit" || findings[0].Range.Start.File != dir || len(set.Workloads) > 0 {
			t.Errorf("%d layers: %v", n, findings)
		}
	}
	if set, findings := Read(t.Context(), Input{Kustomize: layers(3)}, Options{}); len(findings) > 0 || len(set.Workloads) != 8 {
		t.Errorf("3 layers come to %d workloads: %v", len(set.Workloads), findings)
	}
	// One file with as many documents is the same.
	many := folder(t, map[string]string{"kustomization.yaml": "resources: [a.yaml]\n", "a.yaml": strings.Repeat(fmt.Sprintf(deployment, "a")+"\n---\n", 6000)})
	if _, findings := Read(t.Context(), Input{Kustomize: many}, Options{}); len(findings) != 1 || findings[0].Rule != "input/limit" {
		t.Errorf("6,000 documents: %.2v", findings)
	}
}

// TestKustomizationLoadsNothing holds that a URL is refused wherever kustomize would take
// it for a file, and that one which is only text is not.
func TestKustomizationLoadsNothing(t *testing.T) {
	t.Parallel()
	const url = "http://127.0.0.1:1/x"
	for name, text := range map[string]string{
		"resources": "resources: [" + url + "]", "bases": "bases: [" + url + "]", "components": "components: [" + url + "]",
		"crds": "crds: [" + url + "]", "configurations": "configurations: [" + url + "]", "openapi": "openapi: {path: " + url + "}",
		"patches": "patches: [{path: " + url + "}]", "patchesJson6902": "patchesJson6902: [{path: " + url + ", target: {version: v1, kind: A, name: a}}]",
		"patchesStrategicMerge": "patchesStrategicMerge: [" + url + "]", "replacements": "replacements: [{path: " + url + "}]",
		"files": "configMapGenerator: [{name: a, files: [" + url + "]}]", "a key": "configMapGenerator: [{name: a, files: [k=" + url + "]}]",
		"envs": "secretGenerator: [{name: a, envs: [" + url + "]}]", "env": "configMapGenerator: [{name: a, env: " + url + "}]",
		"generators": "generators: [" + url + "]", "transformers": "transformers: [" + url + "]", "validators": "validators: [" + url + "]",
		"inline": "generators:\n- |-\n  apiVersion: builtin\n  kind: ConfigMapGenerator\n  metadata: {name: a}\n  files: [" + url + "]",
		"plugin": "transformers: [plugin.yaml]", "kustomization of plugins": "generators: [plugins]",
	} {
		dir := folder(t, map[string]string{
			"kustomization.yaml": text + "\n", "plugin.yaml": "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: a}\npath: " + url + "\n",
			"plugins/kustomization.yaml": "resources: [" + url + "]\n",
		})
		_, findings := Read(t.Context(), Input{Kustomize: dir}, Options{})
		if len(findings) != 1 || findings[0].Rule != "input/remote" || !findings[0].Range.Start.IsValid() {
			t.Errorf("%s: %v", name, findings)
		}
	}
	dir := folder(t, map[string]string{
		"kustomization.yaml": "resources: [a.yaml]\ncommonAnnotations: {path: " + url + "}\nconfigMapGenerator: [{name: a, literals: [path=" + url + "]}]\npatches:\n- target: {kind: Deployment}\n  patch: |-\n    - {op: add, path: /metadata/annotations/url, value: " + url + "}\n",
		"a.yaml":             strings.Replace(fmt.Sprintf(deployment, "a"), "metadata:\n", "metadata:\n  annotations: {a: "+url+"}\n", 1),
	})
	if _, findings := Read(t.Context(), Input{Kustomize: dir}, Options{}); len(findings) > 0 {
		t.Errorf("what is only text: %v", findings)
	}
}
