package apply

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-sched/kubectl-sched/internal/cluster"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
)

// serve makes the cluster serve a custom kind, and returns the lab with clients
// that know of it.
func (l *lab) serve(group, version, kind string) *lab {
	l.Helper()
	plural := strings.ToLower(kind) + "s"
	crd := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": plural + "." + group},
		"spec": map[string]any{
			"group": group, "scope": "Namespaced",
			"names": map[string]any{"kind": kind, "plural": plural, "singular": strings.ToLower(kind)},
			"versions": []any{map[string]any{"name": version, "served": true, "storage": true, "schema": map[string]any{
				"openAPIV3Schema": map[string]any{"type": "object", "properties": map[string]any{
					"spec": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
				}},
			}}},
		},
	}}
	crds := l.client.Dynamic.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	if _, err := crds.Create(l.Context(), crd, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		l.Fatal(err)
	}
	resource := l.client.Dynamic.Resource(schema.GroupVersionResource{Group: group, Version: version, Resource: plural}).Namespace(l.namespace)
	l.eventually(kind+" is served", func(ctx context.Context) bool {
		_, err := resource.List(ctx, metav1.ListOptions{})
		return err == nil
	})
	served := *l
	var err error
	if served.client, err = cluster.Connect(l.config); err != nil {
		l.Fatal(err)
	}
	return &served
}

// TestTemplatesInsideLists is for fields that are inside of a list which the API
// server takes as one whole: they are patched, without a conflict with whoever
// owns the list, and go away again.
func TestTemplatesInsideLists(t *testing.T) {
	t.Parallel()
	l := newLab(t).serve("ray.io", "v1", "RayCluster")
	u := l.create(`apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: ray}
spec:
  headGroupSpec: {template: {spec: {containers: [{name: head, image: x}]}}}
  workerGroupSpecs:
  - {groupName: small, replicas: 2, template: {spec: {containers: [{name: w, image: x}]}}}
  - {groupName: large, replicas: 1, template: {spec: {containers: [{name: w, image: x}], tolerations: [{key: theirs, operator: Exists}]}}}
`)
	a := l.applier(nil)
	// Only the templates without tolerations of somebody else.
	policies := func(w *workload.Workload, fields *workload.PodFields) bool {
		if w.Name != "ray" || len(fields.Tolerations) > 0 {
			return false
		}
		tolerate("gpu")(fields)
		return true
	}
	if got := l.apply(a, policies); got.Updated != 1 {
		t.Fatalf("outcome is %+v", got)
	}
	for pointer, want := range map[string]string{
		"/spec/headGroupSpec/template/spec/tolerations/0/key":      "gpu",
		"/spec/workerGroupSpecs/0/template/spec/tolerations/0/key": "gpu",
		"/spec/workerGroupSpecs/1/template/spec/tolerations/0/key": "theirs",
	} {
		if got, _ := valueAt(l.get(u).Object, pointer); got != want {
			t.Errorf("%s is %v, want %s", pointer, got, want)
		}
	}
	if got := l.apply(a, policies); !got.Unchanged {
		t.Errorf("a second run: %+v", got)
	}
	_, findings := l.prepare(a, policies, matching(tolerate("gpu"), "ray"))
	if len(findings) != 1 || findings[0].Rule != "apply/conflict" {
		t.Errorf("a value that somebody else set: %v", findings)
	}
	// Somebody sorts the list: the fields are found by the name of their group.
	l.patch(u, types.JSONPatchType, `[{"op":"move","from":"/spec/workerGroupSpecs/1","path":"/spec/workerGroupSpecs/0"}]`, "somebody")
	sorted := l.get(u)
	l.delete(a)
	now := l.get(u)
	for pointer, want := range map[string]any{
		"/spec/headGroupSpec/template/spec/tolerations":            nil,
		"/spec/workerGroupSpecs/1/template/spec/tolerations":       nil,
		"/spec/workerGroupSpecs/0/template/spec/tolerations/0/key": "theirs",
	} {
		if got, _ := valueAt(now.Object, pointer); got != want {
			t.Errorf("in the end %s is %v, want %v", pointer, got, want)
		}
	}
	if now.GetUID() != sorted.GetUID() || len(ourEntries(now)) > 0 {
		t.Error("something of ours is left")
	}
}

// TestKindsThatOnlyAPolicyKnew deletes a set, without the policies, that has
// fields in a kind which only their kinds block taught.
func TestKindsThatOnlyAPolicyKnew(t *testing.T) {
	t.Parallel()
	l := newLab(t).serve("lab.example.com", "v1", "Farm")
	u := l.create("apiVersion: lab.example.com/v1\nkind: Farm\nmetadata: {name: farm}\nspec: {pods: {containers: [{name: main, image: x}]}}\n")
	kinds, findings := workload.NewKinds([]workload.KindSpec{{Name: "lab.example.com/Farm", Templates: map[string]workload.TemplateSpec{"": {Path: "spec.pods"}}}})
	if findings.HasErrors() {
		t.Fatal(findings)
	}
	a := l.applier(nil)
	a.Kinds = kinds
	l.apply(a, matching(all(tolerate("gpu"), require("class", "gpu")), "farm"))
	if got, _ := valueAt(l.get(u).Object, "/spec/pods/tolerations/0/key"); got != "gpu" {
		t.Fatalf("the toleration is %v", got)
	}
	if got := l.delete(l.applier(nil)); got.Withdrawn != 1 {
		t.Errorf("outcome is %+v", got)
	}
	l.sameObject(u)
}
