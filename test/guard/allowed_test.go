package guard

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// TestGranted holds that those whom a pool grants get in, and land.
func TestGranted(t *testing.T) {
	t.Parallel()
	c := guarded(t)
	anna := c.as("anna", "shop")
	tests := []struct {
		name, namespace, pool, says string
		edits                       []func(*corev1.Pod)
	}{
		{name: "by-glob", namespace: "g-ml-vision", pool: "gpu"},
		{name: "by-label", namespace: "l-vision", pool: "lab"},
		{name: "by-label-not", namespace: "l-shop", pool: "lab", says: `namespace "l-shop"`},
		{name: "by-account", namespace: "s-jobs", pool: "solo", edits: []func(*corev1.Pod){account("runner")}},
		{name: "by-account-not", namespace: "s-jobs", pool: "solo", says: `service account "s-jobs/default"`},
		{name: "by-namesake-not", namespace: "s-shop", pool: "solo", says: `service account "s-shop/runner"`, edits: []func(*corev1.Pod){account("runner")}},
		{name: "exempt-account", namespace: "g-ops", pool: "gpu", edits: []func(*corev1.Pod){account("agent")}},
		{name: "exempt-account-not", namespace: "g-shop", pool: "gpu", says: `namespace "g-shop"`, edits: []func(*corev1.Pod){account("agent")}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := pod(test.name, append(test.edits, tolerating(exact(test.pool)), on(test.pool))...)
			p, err := anna.CoreV1().Pods(test.namespace).Create(t.Context(), p, metav1.CreateOptions{})
			if test.says != "" {
				refused(t, err, test.pool, test.says)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			allowed(t, c.runs(t.Context(), p))
		})
	}
	t.Run("exempt-group", func(t *testing.T) {
		t.Parallel()
		_, err := c.as("root", "cluster-ops").CoreV1().Pods("g-shop").Create(t.Context(), pod("exempt-group", named("gpu-1")), metav1.CreateOptions{})
		allowed(t, err)
	})
}

// TestSystemDaemonSets holds that agents which tolerate everything run on every
// node: those of kube-system by themselves, others where they are exempt.
func TestSystemDaemonSets(t *testing.T) {
	t.Parallel()
	c := guarded(t)
	nodes, err := c.admin.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, namespace := range []string{"kube-system", "g-monitoring"} {
		t.Run(namespace, func(t *testing.T) {
			t.Parallel()
			root := c.as("root", "shop")
			sets := root.AppsV1().DaemonSets(namespace)
			if _, err := sets.Create(t.Context(), daemonSet("agent", tolerating(wildcard)), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			if got := root.warnings(); len(got) > 0 {
				t.Errorf("it is warned about: %s", got)
			}
			allowed(t, until(t.Context(), "the agent is on every node", func() (string, error) {
				live, err := sets.Get(t.Context(), "agent", metav1.GetOptions{})
				if err != nil {
					return "", err
				}
				if int(live.Status.NumberReady) < len(nodes.Items) {
					return "it is on some", nil
				}
				return "", nil
			}))
		})
	}
}

// TestRunningPods holds that nothing happens to pods that were there before.
func TestRunningPods(t *testing.T) {
	t.Parallel()
	c := guarded(t)
	pods := c.as("anna", "shop").CoreV1().Pods("g-shop")
	patch := func(kind types.PatchType, text string, subresources ...string) {
		t.Helper()
		_, err := pods.Patch(t.Context(), c.before.Name, kind, []byte(text), metav1.PatchOptions{}, subresources...)
		allowed(t, err)
	}
	patch(types.StrategicMergePatchType, `{"metadata":{"labels":{"a":"b"}}}`)
	patch(types.StrategicMergePatchType, `{"spec":{"containers":[{"name":"main","image":"registry.example.com/app:2"}]}}`)
	patch(types.JSONPatchType, `[{"op":"add","path":"/spec/tolerations/-","value":{"key":"example.com/x","operator":"Exists"}}]`)
	patch(types.StrategicMergePatchType, `{"spec":{"ephemeralContainers":[{"name":"debug","image":"registry.example.com/debug:1"}]}}`, "ephemeralcontainers")

	live, err := c.admin.CoreV1().Pods("g-shop").Get(t.Context(), c.before.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(live.Spec.NodeName, "gpu-") {
		t.Fatalf("the pod is on %q", live.Spec.NodeName)
	}
	// Its kubelet reports on it as ever.
	live.Status.Message = "as ever"
	live.ResourceVersion = "" // whoever else writes to the pod
	_, err = c.as("system:node:"+live.Spec.NodeName, "system:nodes").CoreV1().Pods("g-shop").UpdateStatus(t.Context(), live, metav1.UpdateOptions{})
	allowed(t, err)
	if live.Status.Phase != corev1.PodRunning || live.DeletionTimestamp != nil {
		t.Errorf("the pod is %s, deleted %v", live.Status.Phase, live.DeletionTimestamp)
	}
}

// TestWarnAndAudit holds that the softer guards let in, and say what they saw.
func TestWarnAndAudit(t *testing.T) {
	t.Parallel()
	c := guarded(t)
	anna := c.as("anna", "shop")
	create := func(namespace, name string, edits ...func(*corev1.Pod)) string {
		t.Helper()
		anna.warnings()
		_, err := anna.CoreV1().Pods(namespace).Create(t.Context(), pod(name, append(edits, by("nobody"))...), metav1.CreateOptions{})
		allowed(t, err)
		return strings.Join(anna.warnings(), "\n")
	}
	if got := create("w-shop", "warned", tolerating(wildcard)); !strings.Contains(got, `pool "soft" is dedicated, and nothing grants it to namespace "w-shop"`) {
		t.Errorf("a guard that warns says %q", got)
	}
	if got := create("w-granted", "granted", tolerating(wildcard)); got != "" {
		t.Errorf("whoever is granted is warned: %q", got)
	}
	if got := create("a-shop", "noted", tolerating(wildcard)); got != "" {
		t.Errorf("a guard that notes says %q", got)
	}
	create("a-granted", "granted", tolerating(wildcard))
	_, err := anna.CoreV1().Pods("g-shop").Create(t.Context(), pod("denied", tolerating(wildcard)), metav1.CreateOptions{})
	refused(t, err, "gpu", "op=Exists")

	want := map[string]string{
		"w-shop/warned": `placement.guard-pods.soft.kubectl-sched.github.io/guard: pool "soft" is dedicated`,
		"a-shop/noted":  `placement.guard-pods.quiet.kubectl-sched.github.io/guard: pool "quiet" is dedicated`,
		"g-shop/denied": `placement.guard-pods.gpu.kubectl-sched.github.io/guard: pool "gpu" is dedicated`,
	}
	allowed(t, until(t.Context(), "the audit log has it", func() (string, error) {
		notes, err := notes()
		if err != nil {
			return "", err
		}
		for pod, text := range want {
			if !strings.Contains(notes[pod], text) {
				return pod + ": " + notes[pod], nil
			}
		}
		for _, pod := range []string{"a-granted/granted", "w-granted/granted"} {
			if notes[pod] != "" {
				t.Errorf("the audit log notes %s: %s", pod, notes[pod])
			}
		}
		return "", nil
	}))
}

// notes returns what guards noted in the audit log about the creation of pods.
func notes() (map[string]string, error) {
	file, err := os.Open(auditLog)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	out := map[string]string{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event auditv1.Event
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			break // the API server is writing the last line
		}
		if event.ObjectRef == nil || event.ObjectRef.Resource != "pods" || event.ObjectRef.Subresource != "" {
			continue
		}
		for key, value := range event.Annotations {
			if strings.Contains(key, "guard-") {
				out[event.ObjectRef.Namespace+"/"+event.ObjectRef.Name] += key + ": " + value + "\n"
			}
		}
	}
	return out, lines.Err()
}
