package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"

	"github.com/kubectl-sched/kubectl-sched/internal/sandbox"
	"github.com/kubectl-sched/kubectl-sched/internal/sandbox/sandboxtest"
)

// patience limits every wait for something that the cluster does by itself; it
// is far above what a loaded machine needs.
const patience = 2 * time.Minute

// eventually fails t unless check returns nil in time.
func eventually(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("%s: %v (last: %v)", what, err, last)
	}
}

func pod(annotations map[string]string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "x"}, Annotations: annotations},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "x", Image: "x"}}},
	}
}

func deployment(name string, replicas int32) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}},
			Template: pod(nil),
		},
	}
}

// hasRunningPods checks that the Deployment's pods are ready on the nodes meant for it.
func hasRunningPods(clients kubernetes.Interface, count int) func(context.Context) error {
	return func(ctx context.Context) error {
		pods, err := clients.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=x"})
		if err != nil {
			return err
		}
		running := 0
		for _, p := range pods.Items {
			if p.Status.Phase == corev1.PodRunning && strings.HasPrefix(p.Spec.NodeName, "web-") {
				running++
			}
		}
		d, err := clients.AppsV1().Deployments("default").Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if running != count || int(d.Status.ReadyReplicas) != count {
			return fmt.Errorf("%d pods run, %d are ready, want %d", running, d.Status.ReadyReplicas, count)
		}
		return nil
	}
}

// readyAtMost is four times what a start may take on a machine that does nothing
// else: tests share theirs.
const readyAtMost = time.Minute

// TestPodsRun goes through the life of a cluster: nodes from pools, a
// Deployment on them, Jobs that end, a crash of the API server and of kwok, and
// pools that change and go.
func TestPodsRun(t *testing.T) {
	t.Parallel()
	begin := time.Now()
	sb := sandboxtest.ForTest(t, sandbox.Options{})
	took := time.Since(begin).Round(100 * time.Millisecond)
	t.Logf("ready after %v", took)
	if took > readyAtMost {
		t.Errorf("it was ready after %v; it should take 15 s on a machine of its own, and %v at most beside other work", took, readyAtMost)
	}
	ctx := t.Context()
	clients := sb.Client()
	pools := []sandbox.Pool{
		{Name: "web", Count: 3, Zones: []string{"a", "b"}},
		{
			Name: "gpu", Count: 1, Taints: []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}},
			Capacity: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")},
		},
	}
	applyNodes(t, sb, pools, sandbox.NodeChanges{Created: 4})
	applyNodes(t, sb, pools, sandbox.NodeChanges{Unchanged: 4})

	if _, err := clients.AppsV1().Deployments("default").Create(ctx, deployment("web", 6), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "pods of the Deployment", hasRunningPods(clients, 6))

	t.Run("jobs", func(t *testing.T) { testJobs(t, clients) })
	t.Run("version", func(t *testing.T) { testVersion(t, sb) })

	t.Run("crash", func(t *testing.T) {
		if err := sb.Kill(sandbox.APIServer); err != nil {
			t.Fatal(err)
		}
		if _, err := clients.CoreV1().Nodes().List(ctx, metav1.ListOptions{}); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("a request to a dead API server: %v", err)
		}
		if err := sb.StartPart(ctx, sandbox.APIServer); err != nil {
			t.Fatal(err)
		}
		eventually(t, "pods after the crash", hasRunningPods(clients, 6))
		for _, part := range sandbox.Parts() {
			if err := sb.Kill(part); err != nil {
				t.Fatal(err)
			}
		}
		for _, part := range sandbox.Parts() {
			if err := sb.StartPart(ctx, part); err != nil {
				t.Fatal(err)
			}
		}
		scale(t, clients, "web", 8)
		eventually(t, "new pods after all parts crashed", hasRunningPods(clients, 8))
	})

	t.Run("change", func(t *testing.T) {
		pools[0].Count, pools[0].Labels = 2, map[string]string{"disk": "ssd"}
		applyNodes(t, sb, pools[:1], sandbox.NodeChanges{Changed: 2, Removed: 2})
		eventually(t, "pods of the removed node elsewhere", hasRunningPods(clients, 8))
		nodes, err := clients.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: "disk=ssd"})
		if err != nil || len(nodes.Items) != 2 {
			t.Errorf("%d nodes have the new label (%v)", len(nodes.Items), err)
		}
		if _, err := clients.CoreV1().Nodes().Get(ctx, "gpu-0", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("the pool that went: %v", err)
		}
	})
}

func applyNodes(t *testing.T, sb *sandbox.Sandbox, pools []sandbox.Pool, want sandbox.NodeChanges) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	got, err := sb.Nodes(ctx, pools)
	if err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Errorf("nodes: %+v, want %+v", got, want)
	}
}

func scale(t *testing.T, clients kubernetes.Interface, name string, replicas int32) {
	t.Helper()
	current, err := clients.AppsV1().Deployments("default").GetScale(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	current.Spec.Replicas = replicas
	if _, err := clients.AppsV1().Deployments("default").UpdateScale(t.Context(), name, current, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// testJobs runs a Job whose pod ends at once, one whose pod takes a moment, and
// one whose pod takes longer than the test.
func testJobs(t *testing.T, clients kubernetes.Interface) {
	ctx := t.Context()
	jobs := clients.BatchV1().Jobs("default")
	for name, runFor := range map[string]string{"quick": "", "timed": "1s", "long": "24h"} {
		annotations := map[string]string{}
		if runFor != "" {
			annotations[sandbox.RunForAnnotation] = runFor
		}
		template := pod(annotations)
		template.Labels = nil
		template.Spec.RestartPolicy = corev1.RestartPolicyNever
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: batchv1.JobSpec{Template: template}}
		if _, err := jobs.Create(ctx, job, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"quick", "timed"} {
		eventually(t, "the end of Job "+name, func(ctx context.Context) error {
			job, err := jobs.Get(ctx, name, metav1.GetOptions{})
			if err == nil && job.Status.Succeeded != 1 {
				err = fmt.Errorf("status is %+v", job.Status)
			}
			return err
		})
	}
	eventually(t, "the run of Job long", func(ctx context.Context) error {
		job, err := jobs.Get(ctx, "long", metav1.GetOptions{})
		if err == nil && (job.Status.Ready == nil || *job.Status.Ready != 1) {
			err = fmt.Errorf("status is %+v", job.Status)
		}
		return err
	})
}

func testVersion(t *testing.T, sb *sandbox.Sandbox) {
	client, err := discovery.NewDiscoveryClientForConfig(sb.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	version, err := client.ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if version.Major != "1" || !strings.HasPrefix(version.GitVersion, "v1."+version.Minor+".") {
		t.Errorf("the API server says that it is %+v", version)
	}
}

// TestVolumesFollowPods has a claim of the default storage class bound to the
// node that its pod is placed on.
func TestVolumesFollowPods(t *testing.T) {
	t.Parallel()
	sb := sandboxtest.ForTest(t, sandbox.Options{})
	ctx := t.Context()
	clients := sb.Client()
	applyNodes(t, sb, []sandbox.Pool{{Name: "n", Count: 3}}, sandbox.NodeChanges{Created: 3})
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
	if _, err := clients.CoreV1().PersistentVolumeClaims("default").Create(ctx, claim, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	template := pod(nil)
	user := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "user"}, Spec: template.Spec}
	user.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
	}}}
	if _, err := clients.CoreV1().Pods("default").Create(ctx, user, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the pod with its volume", func(ctx context.Context) error {
		live, err := clients.CoreV1().Pods("default").Get(ctx, "user", metav1.GetOptions{})
		if err != nil {
			return err
		}
		bound, err := clients.CoreV1().PersistentVolumeClaims("default").Get(ctx, "data", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if live.Status.Phase != corev1.PodRunning || bound.Status.Phase != corev1.ClaimBound {
			return fmt.Errorf("the pod is %s, its claim %s", live.Status.Phase, bound.Status.Phase)
		}
		volume, err := clients.CoreV1().PersistentVolumes().Get(ctx, bound.Spec.VolumeName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if node := volume.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Values[0]; node != live.Spec.NodeName {
			return fmt.Errorf("the volume is on %s, the pod on %s", node, live.Spec.NodeName)
		}
		return nil
	})
}

// TestFeatureGates serves the APIs that a gate and a runtime configuration ask
// for, with a scheduler configuration of one's own, in a folder that is kept.
func TestFeatureGates(t *testing.T) {
	t.Parallel()
	config := filepath.Join(t.TempDir(), "scheduler.yaml")
	text := "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n- schedulerName: special\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	options := sandbox.Options{
		DataDir:         filepath.Join(t.TempDir(), "data"),
		FeatureGates:    map[string]bool{"GenericWorkload": true},
		RuntimeConfig:   map[string]string{"scheduling.k8s.io/v1beta1": "true"},
		SchedulerConfig: config,
	}
	sb, err := sandbox.Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sb.Stop() }()
	resources, err := sb.Client().Discovery().ServerResourcesForGroupVersion("scheduling.k8s.io/v1beta1")
	if err != nil || len(resources.APIResources) == 0 {
		t.Errorf("scheduling.k8s.io/v1beta1: %v, %v", resources, err)
	}
	applyNodes(t, sb, []sandbox.Pool{{Name: "n", Count: 1}}, sandbox.NodeChanges{Created: 1})
	special := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "special"}, Spec: pod(nil).Spec}
	special.Spec.SchedulerName = "special"
	if _, err := sb.Client().CoreV1().Pods("default").Create(t.Context(), special, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	isRunning := func(sb *sandbox.Sandbox) func(context.Context) error {
		return func(ctx context.Context) error {
			live, err := sb.Client().CoreV1().Pods("default").Get(ctx, "special", metav1.GetOptions{})
			if err == nil && live.Status.Phase != corev1.PodRunning {
				err = fmt.Errorf("phase is %s", live.Status.Phase)
			}
			return err
		}
	}
	eventually(t, "a pod of the profile", isRunning(sb))
	if _, err := sandbox.Start(t.Context(), options); err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("a second sandbox in the same folder: %v", err)
	}
	if err := sb.Stop(); err != nil {
		t.Fatal(err)
	}
	again := sandboxtest.ForTest(t, options)
	eventually(t, "the pod after a new start in the same folder", isRunning(again))
}

// TestFailureShowsTheLog starts an API server that refuses its flags.
func TestFailureShowsTheLog(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	_, err := sandbox.Start(t.Context(), sandbox.Options{DataDir: dir, FeatureGates: map[string]bool{"NoSuchGate": true}})
	if err == nil {
		t.Fatal("it started")
	}
	for _, want := range []string{"kube-apiserver: ended", "unrecognized feature gate: NoSuchGate", filepath.Join(dir, "logs", "kube-apiserver.log")} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q:\n%v", want, err)
		}
	}
	noneLeft(t, dir)
}

// noneLeft fails t if a process has dir in its command line.
func noneLeft(t *testing.T, dir string) {
	t.Helper()
	eventually(t, "the end of all processes", func(context.Context) error {
		processes, err := filepath.Glob("/proc/[0-9]*/cmdline")
		if err != nil {
			return err
		}
		for _, path := range processes {
			if line, err := os.ReadFile(path); err == nil && strings.Contains(string(line), dir+"/") {
				return fmt.Errorf("%s: %s", path, strings.ReplaceAll(string(line), "\x00", " "))
			}
		}
		return nil
	})
}

// TestThousandNodes registers a thousand nodes and takes them away again.
func TestThousandNodes(t *testing.T) {
	t.Parallel()
	sb := sandboxtest.ForTest(t, sandbox.Options{})
	begin := time.Now()
	pools := []sandbox.Pool{{Name: "many", Count: 1000, Zones: []string{"a", "b", "c"}}}
	applyNodes(t, sb, pools, sandbox.NodeChanges{Created: 1000})
	t.Logf("1,000 nodes are ready after %v", time.Since(begin).Round(100*time.Millisecond))
	applyNodes(t, sb, nil, sandbox.NodeChanges{Removed: 1000})
}
