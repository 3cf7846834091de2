package apply

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/internal/cluster"
	"github.com/kubectl-sched/kubectl-sched/internal/sandbox"
	"github.com/kubectl-sched/kubectl-sched/internal/sandbox/sandboxtest"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

var shared = sandboxtest.Shared{}

func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }

// lab is one namespace of the shared control plane, and a set of its own.
type lab struct {
	*testing.T
	client    *cluster.Client
	config    *rest.Config
	namespace string
	set       Set
	scope     Scope
}

// newLab makes the namespace.
func newLab(t *testing.T) *lab {
	t.Helper()
	return labOn(t, shared.Get(t))
}

func labOn(t *testing.T, sb *sandbox.Sandbox) *lab {
	t.Helper()
	config := sb.RESTConfig()
	client, err := cluster.Connect(config)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))
	name = fmt.Sprintf("%.20s-%x", name, sha256.Sum256([]byte(t.Name())))[:30]
	l := &lab{
		T: t, client: client, config: config, namespace: name, set: Set{Name: name, Namespace: DefaultNamespace},
		scope: Scope{Folders: []string{"placement"}, Namespaces: []string{name}},
	}
	_, err = client.Kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// applier returns an Applier, one of whose requests may go through wrap.
func (l *lab) applier(wrap func(http.RoundTripper) http.RoundTripper) *Applier {
	l.Helper()
	client := l.client
	if wrap != nil {
		config := rest.CopyConfig(l.config)
		config.Wrap(wrap)
		var err error
		if client, err = cluster.Connect(config); err != nil {
			l.Fatal(err)
		}
	}
	return &Applier{Client: client, Tool: "test", patience: time.Second}
}

// create makes an object as the manager "kubectl-client-side-apply", unless it
// is said otherwise, and returns it.
func (l *lab) create(manifest string, manager ...string) *unstructured.Unstructured {
	l.Helper()
	var object map[string]any
	if err := yaml.Unmarshal([]byte(manifest), &object); err != nil {
		l.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: object}
	mapping, err := l.client.Resource(u.GroupVersionKind().GroupKind(), u.GroupVersionKind().Version)
	if err != nil {
		l.Fatal(err)
	}
	by := "kubectl-client-side-apply"
	if len(manager) > 0 {
		by = manager[0]
	}
	made, err := l.client.Interface(mapping, l.namespace).Create(l.Context(), u, metav1.CreateOptions{FieldManager: by})
	if err != nil {
		l.Fatal(err)
	}
	return made
}

// get reads the object again.
func (l *lab) get(u *unstructured.Unstructured) *unstructured.Unstructured {
	l.Helper()
	mapping, err := l.client.Resource(u.GroupVersionKind().GroupKind(), u.GroupVersionKind().Version)
	if err != nil {
		l.Fatal(err)
	}
	now, err := l.client.Interface(mapping, u.GetNamespace()).Get(l.Context(), u.GetName(), metav1.GetOptions{})
	if err != nil {
		l.Fatal(err)
	}
	return now
}

// patch patches the object as the manager.
func (l *lab) patch(u *unstructured.Unstructured, kind types.PatchType, patch, manager string) *unstructured.Unstructured {
	l.Helper()
	mapping, err := l.client.Resource(u.GroupVersionKind().GroupKind(), u.GroupVersionKind().Version)
	if err != nil {
		l.Fatal(err)
	}
	now, err := l.client.Interface(mapping, u.GetNamespace()).Patch(l.Context(), u.GetName(), kind, []byte(patch), metav1.PatchOptions{FieldManager: manager})
	if err != nil {
		l.Fatal(err)
	}
	return now
}

// edit is what a policy does to one workload; false if it does not match it.
type edit func(w *workload.Workload, fields *workload.PodFields) bool

// matching applies what is done to the workloads of the names alone.
func matching(do func(*workload.PodFields), names ...string) edit {
	return func(w *workload.Workload, fields *workload.PodFields) bool {
		for _, name := range names {
			if w.Name == name {
				do(fields)
				return true
			}
		}
		return false
	}
}

// tolerate adds a toleration of the key.
func tolerate(key string) func(*workload.PodFields) {
	return func(f *workload.PodFields) {
		f.Tolerations = append(f.Tolerations[:len(f.Tolerations):len(f.Tolerations)], corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists})
	}
}

// require adds a required node affinity for a label.
func require(label, value string) func(*workload.PodFields) {
	return func(f *workload.PodFields) {
		f.Affinity = f.Affinity.DeepCopy()
		if f.Affinity == nil {
			f.Affinity = &corev1.Affinity{}
		}
		if f.Affinity.NodeAffinity == nil {
			f.Affinity.NodeAffinity = &corev1.NodeAffinity{}
		}
		f.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: label, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}}}},
		}
	}
}

func all(dos ...func(*workload.PodFields)) func(*workload.PodFields) {
	return func(f *workload.PodFields) {
		for _, do := range dos {
			do(f)
		}
	}
}

// request reads the cluster as a run does and plans the edits.
func (l *lab) request(a *Applier, edits ...edit) Request {
	l.Helper()
	state, err := LoadState(l.Context(), l.client, l.set)
	if err != nil {
		l.Fatal(err)
	}
	workloads, findings := l.client.Workloads(l.Context(), cluster.Scope{Namespaces: l.scope.Namespaces, Kinds: a.Kinds, Records: state.Records()})
	if findings.HasErrors() {
		l.Fatal(findings)
	}
	plan := &compiler.Plan{}
	for _, w := range workloads {
		for i := range w.Templates {
			fields := w.Templates[i].Pods
			matched := false
			for _, e := range edits {
				matched = e(w, &fields) || matched
			}
			if matched {
				plan.Changes = append(plan.Changes, compiler.Change{
					Workload: w, Template: i, Policies: []string{"test"}, After: fields,
					Effects: []compiler.Effect{
						{Field: "tolerations", Origins: []compiler.Origin{{Policy: "test", Range: diag.At(diag.Pos{File: "placement/test.cue", Line: 7, Column: 3})}}},
					},
				})
			}
		}
	}
	return Request{State: state, Scope: l.scope, Plan: plan, Workloads: workloads}
}

// prepare is request and Prepare.
func (l *lab) prepare(a *Applier, edits ...edit) (*ChangeSet, diag.Findings) {
	l.Helper()
	changes, findings, err := a.Prepare(l.Context(), l.request(a, edits...))
	if err != nil {
		l.Fatal(err)
	}
	return changes, findings
}

// apply applies the edits and fails the test if anything is refused.
func (l *lab) apply(a *Applier, edits ...edit) Outcome {
	l.Helper()
	changes, findings := l.prepare(a, edits...)
	if findings.HasErrors() {
		l.Fatalf("prepare: %v", findings)
	}
	outcome, findings, err := a.Run(l.Context(), changes, RunOptions{})
	if err != nil {
		l.Fatal(err)
	}
	if findings.HasErrors() {
		l.Fatalf("run: %v", findings)
	}
	return outcome
}

// delete deletes the set.
func (l *lab) delete(a *Applier) Outcome {
	l.Helper()
	state := l.state()
	changes, findings, err := a.PrepareDelete(l.Context(), state)
	if err != nil {
		l.Fatal(err)
	}
	if findings.HasErrors() {
		l.Fatalf("prepare: %v", findings)
	}
	outcome, findings, err := a.Run(l.Context(), changes, RunOptions{Forget: true})
	if err != nil {
		l.Fatal(err)
	}
	if findings.HasErrors() {
		l.Fatalf("run: %v", findings)
	}
	return outcome
}

func (l *lab) state() *State {
	l.Helper()
	state, err := LoadState(l.Context(), l.client, l.set)
	if err != nil {
		l.Fatal(err)
	}
	return state
}

// spec is the whole spec of the object as JSON.
func spec(t *testing.T, u *unstructured.Unstructured) string {
	t.Helper()
	data, err := json.MarshalIndent(u.Object["spec"], "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// sameObject fails if the object is not, in UID, spec, labels and annotations,
// what it was, or if anything in it names us.
func (l *lab) sameObject(before *unstructured.Unstructured) {
	l.Helper()
	now := l.get(before)
	if now.GetUID() != before.GetUID() {
		l.Errorf("%s: UID is %s, was %s", before.GetName(), now.GetUID(), before.GetUID())
	}
	if d := cmp.Diff(spec(l.T, before), spec(l.T, now)); d != "" {
		l.Errorf("%s: spec (-before +now):\n%s", before.GetName(), d)
	}
	strip := func(m map[string]string) map[string]string {
		delete(m, "deployment.kubernetes.io/revision")
		delete(m, "deprecated.daemonset.template.generation")
		if len(m) == 0 {
			return nil
		}
		return m
	}
	if d := cmp.Diff(strip(before.GetAnnotations()), strip(now.GetAnnotations())); d != "" {
		l.Errorf("%s: annotations (-before +now):\n%s", before.GetName(), d)
	}
	if d := cmp.Diff(strip(before.GetLabels()), strip(now.GetLabels())); d != "" {
		l.Errorf("%s: labels (-before +now):\n%s", before.GetName(), d)
	}
	for _, entry := range now.GetManagedFields() {
		if entry.Manager == FieldManager {
			l.Errorf("%s: managedFields still name us: %s", before.GetName(), entry.FieldsV1)
		}
	}
}

// tolerationKeys are the keys of the tolerations in the object's pod template.
func tolerationKeys(u *unstructured.Unstructured) string {
	list, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "tolerations")
	var keys []string
	for _, e := range list {
		keys = append(keys, fmt.Sprint(e.(map[string]any)["key"]))
	}
	return strings.Join(keys, ",")
}

func deployment(name string, extra ...string) string {
	return workloadManifest("Deployment", name, "  replicas: 2\n", extra...)
}

// workloadManifest returns a manifest; extra lines go into the pod spec.
func workloadManifest(kind, name, spec string, extra ...string) string {
	text := fmt.Sprintf(`apiVersion: apps/v1
kind: %s
metadata:
  name: %s
  labels: {app: %s}
spec:
%s  selector: {matchLabels: {app: %s}}
  template:
    metadata:
      labels: {app: %s}
    spec:
      containers:
      - name: main
        image: example.com/main:1
`, kind, name, name, spec, name, name)
	for _, line := range extra {
		text += "      " + line + "\n"
	}
	return text
}

// untilPodsMay waits for the service account that pods of the namespace need.
func (l *lab) untilPodsMay(namespace string) {
	l.Helper()
	l.eventually("the service account", func(ctx context.Context) bool {
		_, err := l.client.Kube.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
		return err == nil
	})
}

// eventually polls until the condition holds.
func (l *lab) eventually(what string, condition func(context.Context) bool) {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !condition(ctx) {
		select {
		case <-ctx.Done():
			l.Fatalf("not in time: %s", what)
		case <-tick.C:
		}
	}
}

// templates waits until the Deployment's controller has seen the newest version,
// and returns how many different pod templates it has seen in all: one for each
// time that the pods restarted.
func (l *lab) templates(u *unstructured.Unstructured) int {
	l.Helper()
	l.eventually("the controller sees "+u.GetName(), func(context.Context) bool {
		observed, _, _ := unstructured.NestedInt64(l.get(u).Object, "status", "observedGeneration")
		return observed == l.get(u).GetGeneration()
	})
	list, err := l.client.Kube.AppsV1().ReplicaSets(l.namespace).List(l.Context(), metav1.ListOptions{LabelSelector: "app=" + u.GetName()})
	if err != nil {
		l.Fatal(err)
	}
	return len(list.Items)
}
