package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// kustomize itself runs the function, as "kustomize build
// --enable-alpha-plugins --enable-exec" does.
func TestFnUnderKustomize(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The function is this very binary, which behaves as kubectl-sched under that
	// name.
	link := filepath.Join(dir, "kubectl-sched")
	if err := os.Link(program, link); err != nil { // another disk
		text, err := os.ReadFile(program)
		if err == nil {
			err = os.WriteFile(link, text, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	files := map[string]string{
		"kustomization.yaml": "resources: [web.yaml]\nnamePrefix: a-\nnamespace: shop\ntransformers: [fn.yaml]\n",
		"web.yaml":           "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec:\n  template:\n    metadata:\n      labels: {app: web}\n    spec:\n      containers: []\n",
		"fn.yaml": "apiVersion: kubectl-sched.github.io/v1alpha1\nkind: Placement\nmetadata:\n  name: placement\n  annotations:\n    config.kubernetes.io/function: |\n" +
			"      exec: {path: ./kubectl-sched, args: [fn]}\nspec:\n  policies: [placement]\n",
		"placement/p.cue": "package placement\npolicies: near: {\n\tworkloads: namespaces: [\"shop\"]\n\tnodes: require: zones: [\"a\"]\n}\n",
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	options := krusty.MakeDefaultOptions()
	options.PluginConfig = types.EnabledPluginConfig(types.BploUseStaticallyLinked)
	options.PluginConfig.FnpLoadingOptions.EnableExec = true
	resources, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatal(err)
	}
	got, err := resources.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"name: a-web\n", "nodeAffinity:", "kubectl-sched.github.io/placement:"} {
		if !strings.Contains(string(got), want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
}
