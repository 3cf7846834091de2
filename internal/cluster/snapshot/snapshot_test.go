package snapshot

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// handwritten is a snapshot as a person writes it, with what there is to fill in.
const handwritten = `
apiVersion: kubectl-sched.github.io/v1alpha1
kind: Snapshot
taken: 2026-08-01T10:00:00Z
cluster: lab
version: v1.37.2
served: [podgroups.scheduling.x-k8s.io, deviceclasses.resource.k8s.io]
schedulers:
- {name: kube-system/placement-scheduler, bundled: true, ready: true, profiles: [batch]}
---
apiVersion: v1
kind: NodeList
items:
- metadata: {name: n1, labels: {topology.kubernetes.io/zone: a}}
  spec: {taints: [{key: dedicated, value: gpu, effect: NoSchedule}]}
  status: {capacity: {cpu: 4, memory: 16Gi, nvidia.com/gpu: "2"}}
- metadata: {name: n0}
  status: {allocatable: {cpu: "2", pods: "10"}}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 1000
---
apiVersion: v1
kind: Pod
metadata:
  name: web-1
  namespace: shop
  labels: {app: web}
  annotations: {example.com/secret: s}
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web, controller: true}]
spec:
  priorityClassName: high
  nodeName: n0
  hostNetwork: true
  containers:
  - name: web
    image: web:1
    env: [{name: TOKEN, value: secret}]
    resources: {limits: {cpu: 500m}}
    ports: [{containerPort: 80}]
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: web, namespace: shop}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:1", resources: {limits: {cpu: 500m}}}]}
---
{"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": {"name": "r"}, "spec": {"replicas": 2, "template": {"spec": {"containers": [{"name": "c"}]}}}}
`

func read(t *testing.T, text string) *Snapshot {
	t.Helper()
	s, err := Read(strings.NewReader(text), ReadOptions{File: "s.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestTextIsCompleted(t *testing.T) {
	t.Parallel()
	s := read(t, handwritten)
	var b bytes.Buffer
	if err := WriteYAML(&b, s); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"kubernetes.io/hostname: n1", `pods: "110"`, `pods: "10"`, "taken: \"2026-08-01T10:00:00Z\"",
		"priority: 1000", "preemptionPolicy: PreemptLowerPriority", "hostPort: 80", "protocol: TCP", "schedulerName: default-scheduler",
		"phase: Running", "restartPolicy: Always", "key: node.kubernetes.io/not-ready", "kubernetes.io/metadata.name: shop", "name: system-node-critical",
		"kind: Rollout",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("there is no %q in\n%s", want, b.String())
		}
	}
	for _, gone := range []string{"TOKEN", "secret", "creationTimestamp"} {
		if strings.Contains(b.String(), gone) {
			t.Errorf("there is %q", gone)
		}
	}
	pod := s.Pods[0]
	if cpu := pod.Spec.Containers[0].Resources.Requests.Cpu().String(); cpu != "500m" {
		t.Errorf("the pod asks for %s CPUs, its limit is 500m", cpu)
	}
	if n := len(s.ReplicaSets[0].Spec.Template.Spec.Containers[0].Resources.Requests); n != 0 {
		t.Error("a template got requests, which only a pod gets")
	}
	if pod.OwnerReferences[0].UID != s.ReplicaSets[0].UID || pod.OwnerReferences[0].UID == "" {
		t.Errorf("the pod's owner is %q, the ReplicaSet is %q", pod.OwnerReferences[0].UID, s.ReplicaSets[0].UID)
	}
	if got := []string{s.Nodes[0].Name, s.Nodes[1].Name, s.Custom[0].GetNamespace()}; !cmp.Equal(got, []string{"n0", "n1", "default"}) {
		t.Errorf("order and namespaces: %v", got)
	}
	if !s.Taken.Equal(time.Date(2026, 8, 1, 10, 0, 0, 0, time.UTC)) || s.Cluster != "lab" || len(s.Schedulers) != 1 {
		t.Errorf("header: %v %q %v", s.Taken, s.Cluster, s.Schedulers)
	}
}

// TestBothFormsAreOne holds that what is written is read back the same, in both
// forms, and that it is written the same again.
func TestBothFormsAreOne(t *testing.T) {
	t.Parallel()
	s := read(t, handwritten)
	for name, write := range map[string]func(*bytes.Buffer, *Snapshot) error{
		"file": func(b *bytes.Buffer, s *Snapshot) error { return Write(b, s, "v1.2.3") },
		"text": func(b *bytes.Buffer, s *Snapshot) error { return WriteYAML(b, s) },
	} {
		var first, second bytes.Buffer
		if err := write(&first, s); err != nil {
			t.Fatal(err)
		}
		again, err := Read(bytes.NewReader(first.Bytes()), ReadOptions{})
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, first.String())
		}
		if diff := cmp.Diff(s, again); diff != "" {
			t.Errorf("%s: what is read is not what was written:\n%s", name, diff)
		}
		if err := write(&second, again); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Errorf("%s: it is not written the same again", name)
		}
	}
}

func TestMistakesInText(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ text, want string }{
		"unknown field":     {"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  nodeNmae: n\n", `s.yaml:5:3: Pod a: there is no field "nodeNmae" here; did you mean "nodeName"?`},
		"wrong type":        {"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  priority: high\n", `s.yaml:5:3: Pod a: "priority" must be a whole number without quotes, not the string "high"`},
		"quantity":          {"apiVersion: v1\nkind: Node\nmetadata: {name: a}\nstatus:\n  capacity:\n    cpu: many\n", `s.yaml:6:5: Node a: "cpu" is the string "many"`},
		"enum":              {"apiVersion: v1\nkind: Node\nmetadata: {name: a}\nspec:\n  taints:\n  - {key: k, effect: noschedule}\n", `s.yaml:6:14: Node a: "effect" must be one of NoSchedule, PreferNoSchedule, NoExecute`},
		"unknown kind":      {"apiVersion: v1\nkind: Nodes\nmetadata: {name: a}\n", `s.yaml:2:1: Nodes a: scheduling does not depend on a Nodes, and a snapshot cannot hold it (did you mean Node?)`},
		"secret":            {"apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n", "cannot hold it"},
		"version":           {"apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata: {name: a}\n", "write apiVersion: policy/v1"},
		"no name":           {"apiVersion: v1\nkind: Node\nmetadata: {}\n", "s.yaml:3:1: Node: it has no metadata.name"},
		"twice":             {"apiVersion: v1\nkind: Node\nmetadata: {name: a}\n---\napiVersion: v1\nkind: Node\nmetadata: {name: a}\n", "s.yaml:5:1: Node a: it is there twice"},
		"class":             {"apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata: {name: a}\n  spec:\n    priorityClassName: hihg\n- {apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 1}\n", `s.yaml:8:5: Pod default/a: there is no priority class "hihg"; did you mean "high"?`},
		"namespace":         {"apiVersion: v1\nkind: Node\nmetadata: {name: a, namespace: b}\n", "s.yaml:3:21: Node a: a Node is in no namespace"},
		"header twice":      {"apiVersion: kubectl-sched.github.io/v1alpha1\nkind: Snapshot\n---\napiVersion: kubectl-sched.github.io/v1alpha1\nkind: Snapshot\n", "s.yaml:4:1: Snapshot: a snapshot says only once"},
		"header":            {"apiVersion: kubectl-sched.github.io/v1alpha1\nkind: Snapshot\nclutser: x\n", `s.yaml:3:1: Snapshot: there is no field "clutser" here; did you mean "cluster"?`},
		"served":            {"apiVersion: kubectl-sched.github.io/v1alpha1\nkind: Snapshot\nserved:\n- nodepools.karpenter.sh\n- pods\n", `s.yaml:5:3: Snapshot: "pods" is no kind that some clusters serve`},
		"no object":         {"a: b\n", "s.yaml:1:1: this is no Kubernetes object"},
		"nothing":           {"# nothing\n", "s.yaml: there is no object in it"},
		"no YAML":           {"a: [\n", "this is not YAML"},
		"binary":            {"\x1f\x8b\x00\x01", "this is neither a snapshot nor Kubernetes objects"},
		"duplicate key":     {"apiVersion: v1\nkind: Node\nkind: Pod\n", `the key "kind" is there twice`},
		"custom, malformed": {"apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {name: r}\nspec: {template: {spec: {containers: 3}}}\n", "s.yaml:1"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Read(strings.NewReader(test.text), ReadOptions{File: "s.yaml"})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %q, want %q", fmt.Sprint(err), test.want)
			}
		})
	}
}

func TestAge(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 8, 2, 10, 0, 0, 0, time.UTC)
	s := &Snapshot{Taken: now.Add(-3 * time.Hour)}
	if err := s.CheckAge(now, 4*time.Hour); err != nil {
		t.Error(err)
	}
	if err := s.CheckAge(now, 0); err != nil {
		t.Error(err)
	}
	err := s.CheckAge(now, time.Hour)
	if err == nil || !strings.Contains(err.Error(), "3h old") || !strings.Contains(err.Error(), "60m old at most") {
		t.Errorf("error %v does not name both ages", err)
	}
	if err := (&Snapshot{}).CheckAge(now, time.Hour); err != nil {
		t.Error(err)
	}
}

// A pod of a cluster has its priority, whether or not its class is known.
func TestClassThatIsGone(t *testing.T) {
	t.Parallel()
	s := read(t, "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {priorityClassName: gone, priority: 7}}")
	if p := s.Pods[0].Spec; *p.Priority != 7 || p.PriorityClassName != "gone" {
		t.Errorf("got %d of %q", *p.Priority, p.PriorityClassName)
	}
}
