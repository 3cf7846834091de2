// Package scheduler_test holds the bundled scheduler's promises on a real control
// plane. It drives the built command placement-scheduler beside the sandbox's own
// scheduler, as a second scheduler of a cluster would run, once with the API's own
// PodGroups served and once without; and, for what must hold there too, with the
// in-tree pod-group cycle switched off.
package scheduler_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/kubectl-sched/kubectl-sched/internal/sandbox"
	"github.com/kubectl-sched/kubectl-sched/internal/sandbox/sandboxtest"
)

// The profiles of the scheduler under test: schedulerName is for gangs, greedyName
// for gangs for which no seats are held, evictName for gangs of which a part is
// evicted, cacheName for pods that name datasets.
const (
	schedulerName = "placement-scheduler"
	greedyName    = "placement-scheduler-greedy"
	evictName     = "placement-scheduler-evict"
	cacheName     = "placement-scheduler-cache"
)

// The two states of the API server, and the scheduler without the pod-group cycle.
var (
	withoutAPI = &plane{name: "without the API"}
	withAPI    = &plane{name: "with the API", shared: sandboxtest.Shared{Options: sandbox.Options{
		FeatureGates:  map[string]bool{"GenericWorkload": true},
		RuntimeConfig: map[string]string{"scheduling.k8s.io/v1beta1": "true"},
	}}}
	withoutCycle = &plane{name: "without the cycle", flags: []string{"--feature-gates=GenericWorkload=false"}}
)

func TestMain(m *testing.M) {
	flag.Parse()
	parallel := false
	flag.Visit(func(f *flag.Flag) { parallel = parallel || f.Name == "test.parallel" })
	if !parallel {
		// The tests wait for the most part, so more of them than cores may.
		if err := flag.Set("test.parallel", "8"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	}
	code := m.Run()
	for _, p := range []*plane{withoutAPI, withAPI, withoutCycle} {
		if err := p.stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// eachPlane runs test once in each state of the API server.
func eachPlane(t *testing.T, test func(*testing.T, *plane)) {
	t.Helper()
	runOn(t, test, withoutAPI, withAPI)
}

// eachMode runs test once in each state of the API server, and without the pod-group
// cycle.
func eachMode(t *testing.T, test func(*testing.T, *plane)) {
	t.Helper()
	runOn(t, test, withoutAPI, withAPI, withoutCycle)
}

func runOn(t *testing.T, test func(*testing.T, *plane), planes ...*plane) {
	t.Helper()
	for _, p := range planes {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			p.start(t)
			test(t, p)
		})
	}
}

// plane is a control plane with the scheduler under test beside its own.
type plane struct {
	name   string
	flags  []string // of the scheduler, beside those that all have
	shared sandboxtest.Shared
	labs   atomic.Int32 // so many labs have been made; a test may run more than once

	mu        sync.Mutex
	started   bool
	err       error
	sandbox   *sandbox.Sandbox
	scheduler *exec.Cmd
	port      int // where the scheduler serves its metrics
	dir       string
	client    kubernetes.Interface
	dynamic   dynamic.Interface
}

// start starts everything at the first call.
func (p *plane) start(t *testing.T) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.started {
		p.sandbox = p.shared.Get(t) // ends this test, and each that follows, if it does not come up
		p.started = true
		// Not the test's context: the plane outlives the test that comes first.
		p.err = p.bring(context.WithoutCancel(t.Context()))
	}
	if p.err != nil {
		t.Fatal(p.err)
	}
}

func (p *plane) bring(ctx context.Context) (err error) {
	p.client = p.sandbox.Client()
	if p.dynamic, err = dynamic.NewForConfig(p.sandbox.RESTConfig()); err != nil {
		return err
	}
	if err := p.installPodGroups(ctx); err != nil {
		return err
	}
	if p.dir, err = os.MkdirTemp("", "placement-scheduler-"); err != nil {
		return err
	}
	return p.startScheduler(ctx)
}

// startScheduler starts the scheduler and returns when it leads.
func (p *plane) startScheduler(ctx context.Context) error {
	binary, err := sandboxtest.SchedulerBinary()
	if err != nil {
		return err
	}
	config := fmt.Sprintf(`
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: %q, qps: 500, burst: 1000}
# So that a test need not wait long for what failed to be tried again.
podMaxBackoffSeconds: 2
profiles:
- schedulerName: %s
  plugins: {multiPoint: {enabled: [{name: Gang}]}}
  pluginConfig: [{name: Gang, args: {timeout: 20s}}]
- schedulerName: %s
  plugins:
    multiPoint: {enabled: [{name: Gang}]}
    podGroupPostFilter: {disabled: [{name: Gang}]}
  pluginConfig: [{name: Gang, args: {timeout: 20s}}]
- schedulerName: %s
  plugins: {multiPoint: {enabled: [{name: Gang}]}}
  pluginConfig: [{name: Gang, args: {timeout: 20s, onPartial: evict}}]
- schedulerName: %s
  plugins: {multiPoint: {enabled: [{name: CacheLocality, weight: 10}, {name: GPUMemory}]}}
`, p.sandbox.Kubeconfig(), schedulerName, greedyName, evictName, cacheName)
	if p.port, err = sandboxtest.FreePort(); err != nil {
		return err
	}
	serving := []string{fmt.Sprintf("--secure-port=%d", p.port), "--bind-address=127.0.0.1", "--authorization-always-allow-paths=/metrics"}
	if p.scheduler, err = startProcess(binary, p.dir, "main", config, append(serving, p.flags...)...); err != nil {
		return err
	}
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		lease, err := p.client.CoordinationV1().Leases(metav1.NamespaceSystem).Get(ctx, "placement-scheduler", metav1.GetOptions{})
		return err == nil && lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != "", nil
	})
	if err != nil {
		data, _ := os.ReadFile(p.log())
		return fmt.Errorf("the scheduler does not take its lease: %w\n%s", err, tail(string(data), 30))
	}
	return nil
}

func (p *plane) log() string { return filepath.Join(p.dir, "main.log") }

// startProcess starts a scheduler with the configuration. What it says goes to a
// log in dir. More arguments follow those that all have.
func startProcess(binary, dir, name, config string, more ...string) (*exec.Cmd, error) {
	file := filepath.Join(dir, name+".yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, name+".log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	process := exec.Command(binary, append([]string{"--config=" + file, "--secure-port=0", "--v=2"}, more...)...)
	process.Stdout, process.Stderr = log, log
	return process, process.Start()
}

func (p *plane) stop() error {
	var failed []error
	if p.scheduler != nil && p.scheduler.Process != nil {
		failed = append(failed, p.scheduler.Process.Kill())
		_ = p.scheduler.Wait() // killed is how it ends
	}
	failed = append(failed, p.shared.Stop())
	if p.dir != "" {
		failed = append(failed, os.RemoveAll(p.dir))
	}
	return errors.Join(failed...)
}

// The PodGroup objects that scheduler-plugins brought in, as it defines them now
// and as it did at first.
var (
	podGroups      = schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"}
	olderPodGroups = schema.GroupVersionResource{Group: "scheduling.sigs.k8s.io", Version: "v1alpha1", Resource: "podgroups"}
)

// installPodGroups creates their CRDs and returns when they are served. The status
// has exactly the fields that it has there: what is applied must be declared.
func (p *plane) installPodGroups(ctx context.Context) error {
	text, number := map[string]any{"type": "string"}, map[string]any{"type": "integer", "format": "int32"}
	date := map[string]any{"type": "string", "format": "date-time"}
	status := map[string]any{
		"phase": text, "occupiedBy": text, "running": number, "succeeded": number, "failed": number, "scheduleStartTime": date,
	}
	olderStatus := maps.Clone(status)
	olderStatus["scheduled"] = number
	if err := p.installCRD(ctx, podGroups, status); err != nil {
		return err
	}
	return p.installCRD(ctx, olderPodGroups, olderStatus)
}

func (p *plane) installCRD(ctx context.Context, gvr schema.GroupVersionResource, status map[string]any) error {
	open := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	definition := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{
			"name":        gvr.GroupResource().String(),
			"annotations": map[string]any{"api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/scheduler-plugins/pull/50"},
		},
		"spec": map[string]any{
			"group": gvr.Group, "scope": "Namespaced",
			"names": map[string]any{"plural": "podgroups", "singular": "podgroup", "kind": "PodGroup", "listKind": "PodGroupList"},
			"versions": []any{map[string]any{
				"name": gvr.Version, "served": true, "storage": true,
				"subresources": map[string]any{"status": map[string]any{}},
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": map[string]any{
					"spec": open, "status": map[string]any{"type": "object", "properties": status},
				}}},
			}},
		},
	}}
	definitions := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	if _, err := p.dynamic.Resource(definitions).Create(ctx, definition, metav1.CreateOptions{}); err != nil {
		return err
	}
	var last error
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, last = p.dynamic.Resource(gvr).List(ctx, metav1.ListOptions{})
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait for the PodGroup objects of %s to be served: %w; last: %w", gvr.Group, err, last)
	}
	return nil
}

// tail returns the last lines of text.
func tail(text string, lines int) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
