package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// landing is what must hold of where a workload's pods are.
type landing struct {
	// workload is NAMESPACE/RESOURCE/NAME.
	workload string
	// by is the key of the domains: "zone", "region", "node", "pool" or a label.
	by string
	// only lists all domains that may have pods; empty means any.
	only []string
	// count is the number of pods on nodes; 0 is not checked.
	count int
	// most is the most pods that a domain may have; 0 is not checked.
	most int
	// skew is by how many pods the domains with pods may differ; 0 is not checked.
	skew int
}

// check waits for the rollout and holds that the pods are where they should be.
func (l landing) check(ctx context.Context, t *testing.T, c *client) {
	t.Helper()
	if err := c.rolledOut(ctx, l.workload); err != nil {
		t.Error(err)
		return
	}
	counts, err := c.where(ctx, l.workload, l.by)
	if err != nil {
		t.Error(err)
		return
	}
	placed := 0
	for domain, n := range counts {
		placed += n
		if len(l.only) > 0 && !slices.Contains(l.only, domain) {
			t.Errorf("%s: %d pods in %s %q, want only %q", l.workload, n, l.by, domain, l.only)
		}
		if l.most > 0 && n > l.most {
			t.Errorf("%s: %d pods in %s %q, want at most %d", l.workload, n, l.by, domain, l.most)
		}
	}
	if counts[pending] > 0 || (l.count > 0 && placed != l.count) {
		t.Errorf("%s: want %d pods on nodes, have by %s:\n%s", l.workload, l.count, l.by, countText(counts))
	}
	if l.skew > 0 && skew(counts) > l.skew {
		t.Errorf("%s: want a skew of at most %d, have by %s:\n%s", l.workload, l.skew, l.by, countText(counts))
	}
}

// readFolder reads the manifests below a folder: definitions and namespaces
// first, what needs them last.
func readFolder(t *testing.T, folder string) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	err := filepath.WalkDir(folder, func(path string, _ os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".yaml" {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		read, err := readManifests(data)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		objects = append(objects, read...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int { return order(a) - order(b) })
	return objects
}

func order(object *unstructured.Unstructured) int {
	switch object.GetKind() {
	case "CustomResourceDefinition", "Namespace":
		return 0
	case "ServiceAccount", "StorageClass", "PersistentVolume", "PriorityClass":
		return 1
	}
	return 2
}

// surroundings creates what pods need to be made and bound, and what manifests
// leave to the cluster: service accounts and claims.
func (c *client) surroundings(ctx context.Context, object *unstructured.Unstructured) error {
	namespace := object.GetNamespace()
	spec, found := podSpec(object.Object)
	if !found {
		return nil
	}
	if err := c.ensureNamespace(ctx, namespace); err != nil {
		return err
	}
	if account, _, _ := unstructured.NestedString(spec, "serviceAccountName"); account != "" {
		_, err := c.kube.CoreV1().ServiceAccounts(namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	volumes, _, _ := unstructured.NestedSlice(spec, "volumes")
	for _, volume := range volumes {
		claim, _, _ := unstructured.NestedString(volume.(map[string]any), "persistentVolumeClaim", "claimName")
		if claim == "" {
			continue
		}
		_, err := c.kube.CoreV1().PersistentVolumeClaims(namespace).Create(ctx, &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: claim},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
				Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
			},
		}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

// podSpec returns the pod spec of a built-in workload.
func podSpec(object map[string]any) (map[string]any, bool) {
	for _, path := range [][]string{{"spec", "template", "spec"}, {"spec", "jobTemplate", "spec", "template", "spec"}} {
		if spec, found, err := unstructured.NestedMap(object, path...); err == nil && found {
			return spec, true
		}
	}
	return nil, false
}

// runIn runs the plugin in a folder and returns what it printed, and its exit code.
func runIn(t *testing.T, dir, kubeconfig string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := pluginCommand(t.Context(), dir, kubeconfig, args...)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// mustRun is runIn for commands that must succeed.
func mustRun(t *testing.T, dir, kubeconfig string, args ...string) string {
	t.Helper()
	stdout, stderr, code := runIn(t, dir, kubeconfig, args...)
	if code != 0 {
		t.Fatalf("kubectl-sched %s: exit code %d\n%s%s", strings.Join(args, " "), code, stdout, stderr)
	}
	return stdout
}
