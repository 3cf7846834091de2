package apply

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/args"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gangkey"
)

const ourGate = "gates.kubectl-sched.github.io/p.quota"

// carry puts something of ours into everything that a template can carry besides
// the older fields of its spec.
func carry(w *workload.Workload, f *workload.PodFields) bool {
	f.Labels = with(f.Labels, gangkey.LabelOldest, "train")
	f.Annotations = with(with(f.Annotations, args.PodDatasets, "imagenet=120Gi"), ourGate, `{"quota":{"name":"ml"}}`)
	f.SchedulingGates = append(slices.Clone(f.SchedulingGates), corev1.PodSchedulingGate{Name: ourGate})
	f.Env = maps.Clone(f.Env)
	for _, c := range w.Templates[0].Containers() {
		if f.Env == nil {
			f.Env = map[string][]corev1.EnvVar{}
		}
		f.Env[c] = []corev1.EnvVar{{Name: args.VisibleDevices, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['" + args.PodGPUIndex + "']"}}}}
	}
	return true
}

func with(m map[string]string, key, value string) map[string]string {
	m = maps.Clone(m)
	if m == nil {
		m = map[string]string{}
	}
	m[key] = value
	return m
}

const carrier = `apiVersion: apps/v1
kind: Deployment
metadata: {name: train, labels: {app: train}}
spec:
  replicas: 2
  selector: {matchLabels: {app: train}}
  template:
    metadata: {labels: {app: train}, annotations: {theirs: "1"}}
    spec:
      schedulingGates: [{name: example.com/theirs}]
      containers:
      - {name: main, image: "example.com/main:1", env: [{name: A, value: "1"}]}
      - {name: side, image: "example.com/side:1"}
`

// TestCarriersAreOwnedKeyByKey holds that of maps and of lists with keys only our
// own entries are ours, that others may go on with theirs, that it is one rollout,
// and that all of it goes again.
func TestCarriersAreOwnedKeyByKey(t *testing.T) {
	t.Parallel()
	for way, remove := range ways {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			a := l.applier(nil)
			u := l.create(carrier)
			l.templates(u)
			changes, findings := l.prepare(a, carry)
			if findings.HasErrors() {
				t.Fatal(findings)
			}
			if w := changes.Workloads[0]; !w.Restarts || w.Pods != 2 {
				t.Errorf("restarts %v of %d pods, want a rollout of 2", w.Restarts, w.Pods)
			}
			if got := l.apply(a, carry); got.Updated != 1 {
				t.Fatalf("outcome is %+v", got)
			}
			now := l.get(u)
			for pointer, want := range map[string]string{
				"/spec/template/metadata/labels/app":                                    "train",
				"/spec/template/metadata/annotations/theirs":                            "1",
				"/spec/template/spec/schedulingGates/0/name":                            "example.com/theirs",
				"/spec/template/spec/schedulingGates/1/name":                            ourGate,
				"/spec/template/spec/containers/0/env/0/name":                           "A",
				"/spec/template/spec/containers/0/env/1/name":                           args.VisibleDevices,
				"/spec/template/spec/containers/1/env/0/name":                           args.VisibleDevices,
				"/spec/template/metadata/annotations/kubectl-sched.github.io~1datasets": "imagenet=120Gi",
			} {
				if got, _ := valueAt(now.Object, pointer); got != want {
					t.Errorf("%s is %v, want %s", pointer, got, want)
				}
			}
			ours := owned(t, now)
			for _, theirs := range []string{"f:theirs", "example.com/theirs", `k:{\"name\":\"A\"}`, "f:image", "f:replicas"} {
				if strings.Contains(ours, theirs) {
					t.Errorf("we own %s: %s", theirs, ours)
				}
			}
			for _, mine := range []string{args.VisibleDevices, ourGate, "f:" + args.PodDatasets, "f:" + gangkey.LabelOldest} {
				if !strings.Contains(ours, mine) {
					t.Errorf("we do not own %s: %s", mine, ours)
				}
			}
			if got := l.apply(a, carry); !got.Unchanged {
				t.Errorf("a second run: %+v", got)
			}
			// Another container comes first; ours are found by their names.
			l.patch(u, types.JSONPatchType, `[{"op":"add","path":"/spec/template/spec/containers/0","value":{"name":"first","image":"example.com/first:1"}}]`, "somebody")
			remove(l, a)
			now = l.get(u)
			text, err := json.Marshal(now.Object["spec"])
			if err != nil {
				t.Fatal(err)
			}
			for _, gone := range []string{args.VisibleDevices, "kubectl-sched", gangkey.LabelOldest} {
				if strings.Contains(string(text), gone) {
					t.Errorf("%s is still there: %s", gone, text)
				}
			}
			if got, _ := valueAt(now.Object, "/spec/template/spec/containers/1/env/0/name"); got != "A" {
				t.Errorf("their variable is %v: %s", got, text)
			}
			if entries := ourEntries(now); len(entries) > 0 {
				t.Errorf("managedFields still name us: %v", entries)
			}
		})
	}
}

// owned is what the field manager of ours owns in the object, as JSON.
func owned(t *testing.T, u *unstructured.Unstructured) string {
	t.Helper()
	var out []string
	for _, entry := range u.GetManagedFields() {
		if entry.Manager == FieldManager {
			text, err := json.Marshal(entry)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, string(text))
		}
	}
	return fmt.Sprint(out)
}
