package compiler_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
	"github.com/kubectl-sched/kubectl-sched/test/golden"
)

// manifestsIn writes the manifests of a case into a folder of its own.
func manifestsIn(t testing.TB, a *txtar.Archive) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "manifests.yaml")
	if err := os.WriteFile(file, golden.File(a, "manifests.yaml"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// read reads manifests, in which there is nothing to complain of.
func read(t testing.TB, path string, kinds *workload.Kinds) *workload.Set {
	t.Helper()
	set, findings := workload.Read(context.Background(), workload.Input{Files: []string{path}}, workload.Options{Kinds: kinds})
	if len(findings) > 0 {
		t.Fatalf("%s:\n%v", path, findings)
	}
	return set
}

// named gives the workloads' file the name by which a case knows it, wherever
// it was written for reading.
func named(ws []*workload.Workload, name string) []*workload.Workload {
	for _, w := range ws {
		locate := w.Source.Locate
		w.Source.File = name
		w.Source.Locate = func(p workload.Path) diag.Range {
			at := locate(p)
			at.Start.File, at.End.File = name, name
			return at
		}
	}
	return ws
}

// kindsOf returns the table of kinds with those that the policies teach.
func kindsOf(t testing.TB, policies []byte) *workload.Kinds {
	t.Helper()
	var root yaml.Node
	if err := yaml.Unmarshal(policies, &root); err != nil {
		t.Fatalf("policy.yaml: %v", err)
	}
	var specs []workload.KindSpec
	if root.Kind != 0 {
		each(root.Content[0], "kinds", func(name string, n *yaml.Node) {
			var k policy.Kind
			decode(t, n, &k)
			spec := workload.KindSpec{Name: name, Templates: map[string]workload.TemplateSpec{}, PodLabels: k.PodLabels}
			for template, at := range k.Templates {
				fields := map[workload.Field]string{}
				for f, path := range at.Fields {
					fields[workload.Field(f)] = path
				}
				spec.Templates[template] = workload.TemplateSpec{Path: at.Path, Fields: fields, Labels: at.Labels}
			}
			specs = append(specs, spec)
		})
	}
	kinds, findings := workload.NewKinds(specs)
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	return kinds
}

// object is a Deployment with the placement.
func object(t rapid.TB, pods workload.PodFields) map[string]any {
	t.Helper()
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&pods)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": "web", "namespace": "shop"},
		"spec": map[string]any{
			"selector": map[string]any{"matchLabels": map[string]any{"app": "web"}},
			"template": podTemplate(spec),
		},
	}
}

// podTemplate is a template of pods with the label "app=web".
func podTemplate(spec map[string]any) map[string]any {
	return map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "web"}}, "spec": spec}
}

// fromObject reads an object that nothing is wrong with.
func fromObject(t rapid.TB, object map[string]any) *workload.Workload {
	t.Helper()
	w, findings, ok := workload.FromObject(object, workload.Options{}, workload.Source{})
	if !ok || findings.HasErrors() {
		t.Fatalf("read %s: %v, %v", asJSON(object), ok, findings)
	}
	return w
}

// deployment returns a Deployment with the placement.
func deployment(t rapid.TB, pods workload.PodFields) *workload.Workload {
	t.Helper()
	return fromObject(t, object(t, pods))
}

func asJSON(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(data)
}
