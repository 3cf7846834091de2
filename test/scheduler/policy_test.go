package scheduler_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
	"github.com/kubectl-sched/kubectl-sched/compiler/emit"
	"github.com/kubectl-sched/kubectl-sched/compiler/profile"
	"github.com/kubectl-sched/kubectl-sched/internal/cluster"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/load"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/args"
)

// document is one policy folder for all that needs the bundled scheduler. Its
// verbs are the namespace.
const document = `package ml

import "github.com/kubectl-sched/kubectl-sched/policy"

policies: [string]: policy.#Policy

policies: {
	training: {
		workloads: namespaces: ["%[1]s"]
		gang: {min: "all", timeout: "20s"}
		cache: datasets: imagenet: size: "120Gi"
		gpuMemory: {perDevice: "16Gi", minDevice: "20Gi"}
	}
	night: {
		workloads: {namespaces: ["%[1]s"], kinds: ["CronJob"]}
		gates: object: model: {apiVersion: "v1", kind: "ConfigMap", name: "model"}
	}
}
`

const trainers = `apiVersion: batch/v1
kind: Job
metadata: {name: train, namespace: %[1]s}
spec:
  parallelism: 3
  completions: 3
  template:
    metadata: {annotations: {sandbox.kubectl-sched.github.io/run-for: 1h}}
    spec: {restartPolicy: Never, nodeSelector: {test.example/pool: %[1]s}, containers: [{name: c, image: none, resources: {requests: {cpu: 400m}}}]}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly, namespace: %[1]s}
spec:
  schedule: "0 0 1 1 *"
  jobTemplate:
    spec:
      parallelism: 2
      completions: 2
      template:
        metadata: {annotations: {sandbox.kubectl-sched.github.io/run-for: 1h}}
        spec: {restartPolicy: Never, nodeSelector: {test.example/pool: %[1]s}, containers: [{name: c, image: none, resources: {requests: {cpu: 400m}}}]}
---
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: set, namespace: %[1]s}
spec:
  replicatedJobs:
  - name: driver
    template: {spec: {template: {spec: {restartPolicy: Never, nodeSelector: {test.example/pool: %[1]s}, containers: [{name: c, image: none, resources: {requests: {cpu: 400m}}}]}}}}
  - name: worker
    replicas: 2
    template: {spec: {template: {spec: {restartPolicy: Never, nodeSelector: {test.example/pool: %[1]s}, containers: [{name: c, image: none, resources: {requests: {cpu: 400m}}}]}}}}
`

// TestPolicyPlacesPods holds that one document for gangs, caches, GPU memory and
// gates comes out as it says: compiled for this very cluster, applied, and carried
// out by a scheduler with the profiles that were compiled.
func TestPolicyPlacesPods(t *testing.T) {
	t.Parallel()
	eachPlane(t, func(t *testing.T, p *plane) {
		l := newLab(t, p, 0)
		gpu := map[string]string{args.NodeGFDMemory: "24576", args.NodeGFDCount: "1"}
		small := map[string]string{args.NodeGFDMemory: "16384", args.NodeGFDCount: "1"}
		with := func(of map[string]string, key, value string) map[string]string {
			out := map[string]string{key: value}
			for k, v := range of {
				out[k] = v
			}
			return out
		}
		// Two of the three devices that are large enough for a gang of three: by CPU
		// two pods would fit on each node.
		l.node(0, with(gpu, warmFor, "imagenet"))
		l.node(1, gpu)
		l.node(2, small)
		plan, manifests := l.compile()
		if want := map[string]capability.PodGroupForm{withAPI.name: capability.PodGroupAPI, withoutAPI.name: capability.PodGroupCRD}[p.name]; len(plan.Objects) == 0 || plan.Objects[0].Object.GetObjectKind().GroupVersionKind().Group != groupOf[want] {
			t.Fatalf("the objects are %v, want PodGroups in the form %s", plan.Objects, want)
		}
		l.runProfiles(plan)
		for _, o := range plan.Objects {
			l.apply(o.Object)
		}
		for _, w := range manifests {
			if w.Kind == "Job" {
				l.apply(&unstructured.Unstructured{Object: w.Object})
			}
		}
		l.untilUnschedulable("train", 3)
		if bound := l.bound("train"); len(bound) > 0 {
			t.Errorf("%v are bound, and the gang has no place", bound)
		}
		l.node(3, gpu)
		l.untilBound("train", 3)
		on := map[string]int{}
		for _, pod := range l.pods("train") {
			on[pod.Spec.NodeName]++
			if pod.Annotations[args.PodGPUIndex] != "0" {
				t.Errorf("%s has device %q, want 0", pod.Name, pod.Annotations[args.PodGPUIndex])
			}
			env := pod.Spec.Containers[0].Env
			if len(env) != 1 || env[0].Name != args.VisibleDevices || !strings.Contains(env[0].ValueFrom.FieldRef.FieldPath, args.PodGPUIndex) {
				t.Errorf("%s is shown its devices by %v", pod.Name, env)
			}
		}
		if on[l.nodeName(2)] > 0 || len(on) != 3 {
			t.Errorf("the pods are on %v, want one on each node with a device that is large enough", on)
		}
		l.setIsOneGang(manifests, gpu)
		l.runsAreGangs(manifests, gpu)
	})
}

var groupOf = map[capability.PodGroupForm]string{capability.PodGroupAPI: "scheduling.k8s.io", capability.PodGroupCRD: "scheduling.x-k8s.io"}

// setIsOneGang makes the pods of the JobSet as its controllers would, and holds that
// they wait for each other over its Jobs, and go where their data is.
func (l *lab) setIsOneGang(manifests []*workload.Workload, gpu map[string]string) {
	l.Helper()
	l.node(4, gpu)
	for _, w := range manifests {
		if w.Kind != "JobSet" {
			continue
		}
		for i, t := range w.Templates {
			l.create(l.podOf(w, t.PodSpec, fmt.Sprintf("set-%s-%d", t.Name, i), t.PodLabels))
		}
	}
	l.stays("set", 0) // The second worker is missing.
	for i := range 4 {
		labels := map[string]string{}
		for k, v := range gpu {
			labels[k] = v
		}
		if i > 0 {
			labels[warmFor] = "imagenet"
		}
		l.node(5+i, labels)
	}
	for _, w := range manifests {
		if w.Kind == "JobSet" {
			t := w.Templates[1]
			pod := l.podOf(w, t.PodSpec, "set-worker-2", t.PodLabels)
			l.untilNodesKnownTo(pod.Spec.SchedulerName, 9)
			l.create(pod)
		}
	}
	l.untilBound("set", 3)
	for _, pod := range l.pods("set") {
		if node := pod.Spec.NodeName; node != l.nodeName(6) && node != l.nodeName(7) && node != l.nodeName(8) {
			l.Errorf("%s is on %s, and its data is warm on others with room", pod.Name, node)
		}
	}
}

// runsAreGangs starts two runs of the CronJob, as "kubectl create job --from" does,
// and holds that each waits for its gate, and starts whole, with room for one alone.
func (l *lab) runsAreGangs(manifests []*workload.Workload, gpu map[string]string) {
	l.Helper()
	for _, w := range manifests {
		if w.Kind != "CronJob" {
			continue
		}
		cron := &batchv1.CronJob{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(w.Object, cron); err != nil {
			l.Fatal(err)
		}
		for _, name := range []string{"nightly-one", "nightly-two"} {
			job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: l.namespace}, Spec: cron.Spec.JobTemplate.Spec}
			if _, err := l.client.BatchV1().Jobs(l.namespace).Create(l.Context(), job, metav1.CreateOptions{}); err != nil {
				l.Fatal(err)
			}
		}
	}
	l.until("4 gated pods of nightly", func(context.Context) (bool, string) {
		gated := 0
		for _, pod := range l.pods("nightly") {
			if len(pod.Spec.SchedulingGates) == 1 && pod.Spec.SchedulingGates[0].Name == "gates.kubectl-sched.github.io/night.object.model" {
				gated++
			}
		}
		return gated == 4, fmt.Sprint(gated)
	})
	l.node(10, gpu) // With those that are left there is room for three pods.
	if _, err := l.client.CoreV1().ConfigMaps(l.namespace).Create(l.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "model"}}, metav1.CreateOptions{}); err != nil {
		l.Fatal(err)
	}
	l.untilBound("nightly", 2)
	l.untilUnschedulable("nightly", 2)
	byRun := map[string]int{}
	for _, name := range l.bound("nightly") {
		byRun[name[:len("nightly-one")]]++
	}
	if len(byRun) != 1 {
		l.Errorf("bound are %v, want both pods of one run", byRun)
	}
}

// stays fails the test if the number of bound pods changes for a while.
func (l *lab) stays(prefix string, n int) {
	l.Helper()
	deadline := time.After(2 * time.Second)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-deadline:
			return
		case <-tick.C:
			if bound := l.bound(prefix); len(bound) != n {
				l.Fatalf("%v are bound, want %d", bound, n)
			}
		}
	}
}

// podOf returns a pod of a template of the workload.
func (l *lab) podOf(w *workload.Workload, spec workload.Path, name string, labels map[string]string) *corev1.Pod {
	l.Helper()
	template, _ := workload.Lookup(w.Object, spec[:len(spec)-1]...)
	pod := &corev1.Pod{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(template.(map[string]any), pod); err != nil {
		l.Fatal(err)
	}
	pod.Name, pod.Namespace = name, l.namespace
	for k, v := range labels {
		metav1.SetMetaDataLabel(&pod.ObjectMeta, k, v)
	}
	return pod
}

// compile compiles the document for the cluster, and returns the workloads as the
// manifests have them afterwards.
func (l *lab) compile() (*compiler.Plan, []*workload.Workload) {
	l.Helper()
	dir := l.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "placement"), 0o755); err != nil {
		l.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "placement", "ml.cue"), fmt.Appendf(nil, document, l.namespace), 0o600); err != nil {
		l.Fatal(err)
	}
	placement, findings := load.Evaluate(l.Context(), load.Options{Dir: dir, Paths: []string{"placement"}})
	if findings.HasErrors() {
		l.Fatal(findings)
	}
	client, err := cluster.Connect(l.sandbox.RESTConfig())
	if err != nil {
		l.Fatal(err)
	}
	capabilities, findings := client.Capabilities(l.Context())
	if findings.HasErrors() {
		l.Fatal(findings)
	}
	read := func(text string) *workload.Set {
		set, findings := workload.Read(l.Context(), workload.Input{Files: []string{"-"}, Stdin: strings.NewReader(text)}, workload.Options{})
		if findings.HasErrors() {
			l.Fatal(findings)
		}
		return set
	}
	set := read(fmt.Sprintf(trainers, l.namespace))
	plan, findings := compiler.Compile(compiler.Request{
		Placement: placement, Workloads: set.Workloads, Capabilities: capabilities, Surface: policy.SurfaceRender, Installing: true, Now: time.Now(),
	})
	if findings.HasErrors() {
		l.Fatal(findings)
	}
	files, findings := emit.Manifests(l.Context(), plan, set, []string{"-"}, true)
	if findings.HasErrors() {
		l.Fatal(findings)
	}
	return plan, read(string(files[0].After)).Workloads
}

// runProfiles starts a scheduler with the profiles of the plan, and returns when it
// leads.
func (l *lab) runProfiles(plan *compiler.Plan) {
	l.Helper()
	var profiles []profile.Profile
	for _, u := range plan.Profiles {
		profiles = append(profiles, u.Profile)
	}
	text, err := profile.Configuration(profiles)
	if err != nil {
		l.Fatal(err)
	}
	lease := "policy-" + l.namespace
	config := strings.Replace(string(text), "resourceName: placement-scheduler", "resourceName: "+lease, 1)
	config += fmt.Sprintf("clientConnection: {kubeconfig: %q, qps: 500, burst: 1000}\n", l.sandbox.Kubeconfig())
	l.besides(config)
	l.until("the lease "+lease, func(ctx context.Context) (bool, string) {
		got, err := l.client.CoordinationV1().Leases(metav1.NamespaceSystem).Get(ctx, lease, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		return got.Spec.HolderIdentity != nil && *got.Spec.HolderIdentity != "", "nobody holds it"
	})
}

// apply creates an object of the plan, or of its manifests.
func (l *lab) apply(object compiler.KubeObject) {
	l.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		l.Fatal(err)
	}
	kind := object.GetObjectKind().GroupVersionKind()
	resource := schema.GroupVersionResource{Group: kind.Group, Version: kind.Version, Resource: strings.ToLower(kind.Kind) + "s"}
	if _, err := l.dynamic.Resource(resource).Namespace(l.namespace).Create(l.Context(), &unstructured.Unstructured{Object: content}, metav1.CreateOptions{}); err != nil {
		l.Fatal(err)
	}
}
