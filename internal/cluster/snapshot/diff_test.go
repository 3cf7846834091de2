package snapshot

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestDiff(t *testing.T) {
	t.Parallel()
	before := read(t, `
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Node, metadata: {name: gone}}
- {apiVersion: v1, kind: Node, metadata: {name: kept, labels: {example.com/rack: a}}, status: {capacity: {cpu: 4}, images: [{names: [i]}]}}
- apiVersion: v1
  kind: Pod
  metadata: {name: db-0, namespace: shop, uid: "1"}
  spec: {nodeName: gone, containers: [{name: c}]}
- apiVersion: v1
  kind: Pod
  metadata: {name: web-a, namespace: shop, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web-1, controller: true}]}
  spec: {nodeName: kept, containers: [{name: c}]}
- apiVersion: v1
  kind: Pod
  metadata: {name: same, namespace: shop, uid: "3"}
  spec: {nodeName: kept, containers: [{name: c}]}
- apiVersion: v1
  kind: Pod
  metadata: {name: labelled, namespace: shop}
  spec: {containers: [{name: c}]}
- apiVersion: v1
  kind: Pod
  metadata: {name: waited, namespace: shop}
  spec: {containers: [{name: c}]}
- apiVersion: apps/v1
  kind: ReplicaSet
  metadata: {name: web-1, namespace: shop, ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, controller: true}]}
  spec: {replicas: 2, template: {spec: {containers: [{name: c}]}}}
  status: {replicas: 1}
`)
	after := read(t, `
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Node, metadata: {name: come}}
- apiVersion: v1
  kind: Node
  metadata: {name: kept, labels: {example.com/rack: b}}
  spec: {taints: [{key: k, effect: NoSchedule}]}
  status: {capacity: {cpu: 4}, images: [{names: [other]}]}
- apiVersion: v1
  kind: Pod
  metadata: {name: db-0, namespace: shop, uid: "2"}
  spec: {nodeName: come, containers: [{name: c}]}
- apiVersion: v1
  kind: Pod
  metadata: {name: web-b, namespace: shop, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web-1, controller: true}]}
  spec: {nodeName: kept, containers: [{name: c}]}
- apiVersion: v1
  kind: Pod
  metadata: {name: same, namespace: shop, uid: "4"}
  spec: {nodeName: kept, containers: [{name: c}]}
- apiVersion: v1
  kind: Pod
  metadata: {name: labelled, namespace: shop, labels: {new: label}}
  spec: {containers: [{name: c}]}
- apiVersion: v1
  kind: Pod
  metadata: {name: waited, namespace: shop}
  spec: {nodeName: kept, containers: [{name: c}]}
- apiVersion: apps/v1
  kind: ReplicaSet
  metadata: {name: web-1, namespace: shop, ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, controller: true}]}
  spec: {replicas: 3, template: {spec: {containers: [{name: c}]}}}
  status: {replicas: 2}
`)
	d, err := Diff(before, after)
	if err != nil {
		t.Fatal(err)
	}
	want := []Change{
		{Kind: "Node", List: "nodes", Name: "come", Change: Added},
		{Kind: "Node", List: "nodes", Name: "gone", Change: Removed},
		{Kind: "Node", List: "nodes", Name: "kept", Change: Changed, Fields: []FieldChange{
			{Path: `metadata.labels["example.com/rack"]`, Before: `"a"`, After: `"b"`}, {Path: "spec.taints", After: `[{"effect":"NoSchedule","key":"k"}]`},
		}},
		{Kind: "ReplicaSet", List: "replica sets", Namespace: "shop", Name: "web-1", Change: Changed, Fields: []FieldChange{{Path: "spec.replicas", Before: "2", After: "3"}}},
		{Kind: "Pod", List: "pods", Namespace: "shop", Name: "db-0", Change: Moved, Workload: "Pod shop/db-0", From: "gone", To: "come"},
		{Kind: "Pod", List: "pods", Namespace: "shop", Name: "labelled", Change: Changed, Workload: "Pod shop/labelled", Fields: []FieldChange{{Path: "metadata.labels", After: `{"new":"label"}`}}},
		{Kind: "Pod", List: "pods", Namespace: "shop", Name: "same", Change: Replaced, Workload: "Pod shop/same", From: "kept", To: "kept"},
		{Kind: "Pod", List: "pods", Namespace: "shop", Name: "waited", Change: Placed, Workload: "Pod shop/waited", To: "kept"},
		{Kind: "Pod", List: "pods", Namespace: "shop", Name: "web-a", Change: Removed, Workload: "Deployment shop/web", From: "kept"},
		{Kind: "Pod", List: "pods", Namespace: "shop", Name: "web-b", Change: Added, Workload: "Deployment shop/web", To: "kept"},
	}
	if diff := cmp.Diff(want, d.Changes); diff != "" {
		t.Error(diff)
	}
	if same, err := Diff(before, before); err != nil || len(same.Changes) > 0 {
		t.Errorf("a snapshot differs from itself: %v %v", same, err)
	}
}

func TestDiffKnowsWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	a, b := &Snapshot{Missing: []Missing{{Resource: "nodes.metrics.k8s.io"}, {Resource: "services"}}}, read(t, "{apiVersion: v1, kind: Service, metadata: {name: a}}")
	b.Namespaces, b.PriorityClasses = nil, nil
	d, err := Diff(a, b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&Difference{Changes: []Change{}, Unknown: []string{"nodes.metrics.k8s.io", "services"}}, d); diff != "" {
		t.Error(diff)
	}
	if _, err := Diff(a, &Snapshot{Anonymized: true}); err == nil || !strings.Contains(err.Error(), "one of the snapshots is anonymised") {
		t.Errorf("error %v", err)
	}
	d, err = Diff(&Snapshot{Schedulers: []Scheduler{{Name: "a/b", Ready: true}, {Name: "a/c"}}}, &Snapshot{Schedulers: []Scheduler{{Name: "a/b", Profiles: []string{"p"}}, {Name: "a/d"}}})
	if err != nil {
		t.Fatal(err)
	}
	want := []Change{
		{Kind: "Scheduler", List: "schedulers", Namespace: "a", Name: "b", Change: Changed, Fields: []FieldChange{{Path: "profiles", Before: "[]", After: `["p"]`}, {Path: "ready", Before: "true", After: "false"}}},
		{Kind: "Scheduler", List: "schedulers", Namespace: "a", Name: "c", Change: Removed},
		{Kind: "Scheduler", List: "schedulers", Namespace: "a", Name: "d", Change: Added},
	}
	if diff := cmp.Diff(want, d.Changes); diff != "" {
		t.Error(diff)
	}
}

func TestSummary(t *testing.T) {
	t.Parallel()
	s := read(t, `
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Node, metadata: {name: a, labels: {karpenter.sh/nodepool: gpu, topology.kubernetes.io/zone: z}}, status: {capacity: {cpu: 4}}}
- {apiVersion: v1, kind: Node, metadata: {name: b, labels: {karpenter.sh/nodepool: gpu, topology.kubernetes.io/zone: z}}, spec: {unschedulable: true}, status: {capacity: {cpu: 4}}}
- {apiVersion: v1, kind: Node, metadata: {name: c}}
- {apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {nodeName: a, containers: [{name: c, resources: {requests: {cpu: 2}}}]}}
- {apiVersion: v1, kind: Pod, metadata: {name: q}, spec: {nodeName: a, containers: [{name: c, resources: {requests: {cpu: 2}}}]}, status: {phase: Succeeded}}
- {apiVersion: v1, kind: Pod, metadata: {name: r}, spec: {containers: [{name: c}]}}
`)
	sum := Summarize(s)
	if sum.Pending != 1 || len(sum.Groups) != 2 || sum.Groups[1].Pods != 1 || sum.Groups[1].Nodes != 2 || sum.Groups[1].Unschedulable != 1 {
		t.Errorf("%+v", sum)
	}
	if share, ok := sum.Groups[1].Share(corev1.ResourceCPU); !ok || share != 0.25 {
		t.Errorf("share %v %v", share, ok)
	}
	if _, ok := sum.Groups[0].Share(corev1.ResourceCPU); ok {
		t.Error("nodes without CPUs have a share")
	}
	want := []Count{{"namespaces", 1}, {"priority classes", 2}, {"nodes", 3}, {"pods", 3}}
	if diff := cmp.Diff(want, sum.Counts); diff != "" {
		t.Error(diff)
	}
}
