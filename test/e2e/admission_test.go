package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// flipped are the versions of a policy that the test flips between. Each sets two
// fields, so that half of one and half of another shows.
const flipped = `package placement

import "github.com/kubectl-sched/kubectl-sched/policy"

clusters: [string]: policy.#Cluster
policies: [string]: policy.#Policy

clusters: lab: surface: "admission"

policies: {
	first: {
		workloads: namespaces: ["flip"]
		nodes: require: labels: "example.com/version": "VERSION"
	}
	second: {
		workloads: {namespaces: ["flip"], pods: labels: app: "flip"}
		raw: pod: schedulerName: "version-VERSION"
	}
}
`

// TestAdmissionIsNeverHalf creates pods without a pause while the set goes to and
// fro between two versions: each pod is wholly of one of them, or, before the
// first, of none.
func TestAdmissionIsNeverHalf(t *testing.T) {
	t.Parallel()
	w := theWorld(t)
	c, err := newClient(w.RESTConfig(), "flip")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.ensureNamespace(t.Context(), "flip"); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "placement"), 0o755); err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := writeKubeconfig(kubeconfig, w.RESTConfig(), "flip"); err != nil {
		t.Fatal(err)
	}
	apply := func(version string) {
		t.Helper()
		text := strings.ReplaceAll(flipped, "VERSION", version)
		if err := os.WriteFile(filepath.Join(dir, "placement", "p.cue"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if out, err := pluginCommand(t.Context(), dir, kubeconfig, "apply", "--set", "flip", "--wait").CombinedOutput(); err != nil {
			t.Fatalf("apply version %s: %v\n%s", version, err, out)
		}
	}

	ctx, stop := context.WithCancel(t.Context())
	creators := &errgroup.Group{}
	var mu sync.Mutex
	seen := map[string]int{}
	for creator := range 4 {
		creators.Go(func() error {
			for n := 0; ctx.Err() == nil; n++ {
				pod, err := c.kube.CoreV1().Pods("flip").Create(ctx, &corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("p-%d-%d", creator, n), Labels: map[string]string{"app": "flip"}},
					Spec: corev1.PodSpec{
						// Nobody has to place so many.
						SchedulingGates: []corev1.PodSchedulingGate{{Name: "example.com/never"}},
						Containers:      []corev1.Container{{Name: "main", Image: "registry.example.com/main:1"}},
					},
				}, metav1.CreateOptions{})
				if errors.Is(err, context.Canceled) {
					return nil
				}
				if err != nil {
					return err
				}
				mu.Lock()
				seen[versions(pod)]++
				mu.Unlock()
				err = c.kube.CoreV1().Pods("flip").Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
				if err != nil && !errors.Is(err, context.Canceled) {
					return err
				}
			}
			return nil
		})
	}
	for range 3 {
		apply("one")
		apply("two")
	}
	stop()
	if err := creators.Wait(); err != nil {
		t.Fatal(err)
	}
	if out, err := pluginCommand(t.Context(), dir, kubeconfig, "delete", "--set", "flip").CombinedOutput(); err != nil {
		t.Fatalf("delete: %v\n%s", err, out)
	}
	t.Logf("pods by version: %v", seen)
	for version, pods := range seen {
		switch version {
		case "none none 0", "one version-one 1", "two version-two 1":
		default:
			t.Errorf("%d pods are of version %q", pods, version)
		}
	}
	if seen["one version-one 1"] == 0 || seen["two version-two 1"] == 0 {
		t.Error("not both of the versions placed pods")
	}
}

// versions names the version of each of the pod's fields, and how many versions
// there are in its affinity.
func versions(pod *corev1.Pod) string {
	affinity, count := "none", 0
	if a := pod.Spec.Affinity; a != nil {
		for _, term := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			for _, r := range term.MatchExpressions {
				affinity = strings.Join(r.Values, ",")
				count++
			}
		}
	}
	scheduler := pod.Spec.SchedulerName
	if scheduler == corev1.DefaultSchedulerName {
		scheduler = "none"
	}
	return fmt.Sprintf("%s %s %d", affinity, scheduler, count)
}
