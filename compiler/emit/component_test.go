package emit

import (
	"bytes"
	"context"
	"path"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
)

// build builds the kustomization of the files in memory.
func build(t rapid.TB, files map[string]string) *workload.Set {
	t.Helper()
	disk := filesys.MakeFsInMemory()
	for name, text := range files {
		if err := disk.MkdirAll(path.Dir(name)); err != nil {
			t.Fatal(err)
		}
		if err := disk.WriteFile(name, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(disk, ".")
	if err != nil {
		t.Fatalf("kustomize build: %v\n%v", err, files)
	}
	text, err := resources.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return read(t, text)
}

const overlay = "resources: [base.yaml]\ncomponents: [placement]\n"

// component writes a plan as a Component into the files.
func component(t rapid.TB, p *compiler.Plan, set *workload.Set, files map[string]string) {
	t.Helper()
	out, findings := Component(context.Background(), p, set)
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	for _, f := range out {
		files["placement/"+f.Name] = string(f.After)
	}
}

// objects returns the objects by name, without the fields that are null: a patch
// cannot tell them from those that are not there, nor can the API.
func objects(set *workload.Set) map[string]any {
	all := map[string]any{}
	for _, w := range set.Workloads {
		all[w.Ref()] = prune(w.Object)
	}
	return all
}

func prune(value any) any {
	switch v := value.(type) {
	case map[string]any:
		kept := map[string]any{}
		for key, field := range v {
			if field != nil {
				kept[key] = prune(field)
			}
		}
		return kept
	case []any:
		kept := make([]any, len(v))
		for i := range v {
			kept[i] = prune(v[i])
		}
		return kept
	}
	return value
}

// The base with the Component is the rendered manifests, field by field, and
// stays so on a base that already has the fields.
func TestComponentEqualsManifests(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := manifests.Draw(t, "manifests")
		// What kustomize itself makes of the base is not the question.
		base := build(t, map[string]string{"kustomization.yaml": "resources: [base.yaml]", "base.yaml": text})
		p := plan(t, base.Workloads)
		var rendered bytes.Buffer
		if err := Stream(&rendered, mustManifests(t, p, base), nil); err != nil {
			t.Fatal(err)
		}
		want := objects(read(t, rendered.Bytes()))

		files := map[string]string{"kustomization.yaml": overlay, "base.yaml": text}
		component(t, p, base, files)
		if d := cmp.Diff(want, objects(build(t, files))); d != "" {
			t.Fatalf("the Component over the base (-manifests +component):\n%s\n%s", d, files["placement/kustomization.yaml"])
		}
		files["base.yaml"] = rendered.String()
		if d := cmp.Diff(want, objects(build(t, files))); d != "" {
			t.Fatalf("the Component over what was rendered (-manifests +component):\n%s\n%s", d, files["placement/kustomization.yaml"])
		}
		// A Component for the rendered manifests and no policies takes all away.
		clean := map[string]string{"kustomization.yaml": overlay, "base.yaml": rendered.String()}
		component(t, &compiler.Plan{}, read(t, rendered.Bytes()), clean)
		if d := cmp.Diff(objects(base), objects(build(t, clean))); d != "" {
			t.Fatalf("without the policies (-base +component):\n%s\n%s", d, clean["placement/kustomization.yaml"])
		}
	})
}

func mustManifests(t rapid.TB, p *compiler.Plan, set *workload.Set) []File {
	t.Helper()
	files, findings := Manifests(context.Background(), p, set, nil, false)
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	return files
}

const web = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web.v1, namespace: shop}
spec:
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: c}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: webxv1, namespace: shop}
spec:
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: c}]}
`

// Prefixes, suffixes and namespaces of the kustomization that lists the
// Component, or of one below or above it, make no difference; and a name is no
// regular expression.
func TestComponentUnderPrefixes(t *testing.T) {
	t.Parallel()
	base := read(t, []byte(web))
	p := &compiler.Plan{Changes: []compiler.Change{{Workload: base.Workloads[0], After: workload.PodFields{PriorityClassName: "high"}}}}
	tests := []struct {
		name, want string
		files      map[string]string
	}{
		{"none", "Deployment shop/web.v1", map[string]string{"kustomization.yaml": overlay, "base.yaml": web}},
		{"beside it", "Deployment prod/a-web.v1-z", map[string]string{"kustomization.yaml": overlay + "namePrefix: a-\nnameSuffix: -z\nnamespace: prod\n", "base.yaml": web}},
		{"above it", "Deployment shop/b-a-web.v1", map[string]string{
			"kustomization.yaml": "resources: [in]\nnamePrefix: b-\n", "in/kustomization.yaml": "resources: [base.yaml]\ncomponents: [../placement]\nnamePrefix: a-\n", "in/base.yaml": web,
		}},
		{"below it", "Deployment shop/a-web.v1", map[string]string{
			"kustomization.yaml": "resources: [in]\ncomponents: [placement]\n", "in/kustomization.yaml": "resources: [base.yaml]\nnamePrefix: a-\n", "in/base.yaml": web,
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			component(t, p, base, test.files)
			var got []string
			for _, w := range build(t, test.files).Workloads {
				if w.Templates[0].Current.PriorityClassName == "high" {
					got = append(got, w.Ref())
				}
			}
			if d := cmp.Diff([]string{test.want}, got); d != "" {
				t.Errorf("placed (-want +got):\n%s", d)
			}
		})
	}
}
