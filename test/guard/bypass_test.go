package guard

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
)

// refused holds that the request was forbidden by the guard of the pool, which
// says the text.
func refused(t *testing.T, err error, pool, text string) {
	t.Helper()
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `pool "`+pool+`" is dedicated`) || !strings.Contains(err.Error(), text) {
		t.Errorf("want the guard of pool %q to say %q, got: %v", pool, text, err)
	}
}

func allowed(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// TestTolerations tries every toleration that the scheduler would take.
func TestTolerations(t *testing.T) {
	t.Parallel()
	c := guarded(t)
	anna := c.as("anna", "shop")
	const key = "kubectl-sched.github.io/pool"
	for name, test := range map[string]struct {
		toleration corev1.Toleration
		says       string
	}{
		"wildcard":           {wildcard, `"op=Exists"`},
		"by-key-only":        {corev1.Toleration{Key: key, Operator: "Exists"}, `"kubectl-sched.github.io/pool op=Exists"`},
		"by-effect-only":     {corev1.Toleration{Operator: "Exists", Effect: "NoSchedule"}, `":NoSchedule op=Exists"`},
		"by-key-and-effect":  {corev1.Toleration{Key: key, Operator: "Exists", Effect: "NoSchedule"}, `op=Exists`},
		"exact":              {exact("gpu"), `"kubectl-sched.github.io/pool=gpu:NoSchedule op=Equal"`},
		"without-operator":   {corev1.Toleration{Key: key, Value: "gpu"}, `"kubectl-sched.github.io/pool=gpu"`},
		"other-value":        {corev1.Toleration{Key: key, Value: "other"}, ""},
		"other-effect":       {corev1.Toleration{Operator: "Exists", Effect: "NoExecute"}, ""},
		"other-key":          {corev1.Toleration{Key: "example.com/x", Operator: "Exists"}, ""},
		"other-pool's-taint": {exact("lab"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := anna.CoreV1().Pods("g-shop").Create(t.Context(), pod("t-"+strings.ReplaceAll(name, "'", ""), tolerating(test.toleration)), metav1.CreateOptions{})
			if test.says == "" {
				allowed(t, err)
				return
			}
			refused(t, err, "gpu", test.says)
		})
	}
	t.Run("the admin is anybody", func(t *testing.T) {
		t.Parallel()
		_, err := c.admin.CoreV1().Pods("g-shop").Create(t.Context(), pod("admin", tolerating(wildcard)), metav1.CreateOptions{})
		refused(t, err, "gpu", "op=Exists")
	})
	t.Run("a workload's label is no grant", func(t *testing.T) {
		t.Parallel()
		_, err := anna.CoreV1().Pods("l-shop").Create(t.Context(), pod("labelled", tolerating(wildcard), func(p *corev1.Pod) { p.Labels["team"] = "ml" }), metav1.CreateOptions{})
		refused(t, err, "lab", "op=Exists")
	})
}

// TestNodeName tries to pass by the scheduler.
func TestNodeName(t *testing.T) {
	t.Parallel()
	c := guarded(t)
	anna := c.as("anna", "shop")
	_, err := anna.CoreV1().Pods("g-shop").Create(t.Context(), pod("node-name", named("gpu-0")), metav1.CreateOptions{})
	refused(t, err, "gpu", `spec.nodeName "gpu-0"`)
	// Which pool a node is of cannot be told in admission, so every name counts.
	_, err = anna.CoreV1().Pods("g-shop").Create(t.Context(), pod("node-name", named("plain-0")), metav1.CreateOptions{})
	refused(t, err, "gpu", `spec.nodeName "plain-0"`)
	_, err = anna.CoreV1().Pods("g-ml-vision").Create(t.Context(), pod("node-name", named("gpu-0"), tolerating(exact("gpu"))), metav1.CreateOptions{})
	allowed(t, err)
}

// TestGatedPod tries to become able to use the pool after creation.
func TestGatedPod(t *testing.T) {
	t.Parallel()
	c := guarded(t)
	pods := c.as("anna", "shop").CoreV1().Pods("g-shop")
	p, err := pods.Create(t.Context(), pod("gated", gated), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p.Spec.Tolerations = append(p.Spec.Tolerations, wildcard)
	p.ResourceVersion = "" // the scheduler writes to its status
	_, err = pods.Update(t.Context(), p, metav1.UpdateOptions{})
	refused(t, err, "gpu", "op=Exists")
	for _, kind := range []types.PatchType{types.StrategicMergePatchType, types.MergePatchType} {
		_, err = pods.Patch(t.Context(), "gated", kind, []byte(`{"spec":{"tolerations":[{"operator":"Exists","effect":"NoSchedule"}]}}`), metav1.PatchOptions{})
		if kind == types.StrategicMergePatchType {
			refused(t, err, "gpu", ":NoSchedule op=Exists")
		} else if err == nil {
			t.Error("a merge patch gave a gated pod the toleration")
		}
	}
	_, err = pods.Patch(t.Context(), "gated", types.JSONPatchType, []byte(`[{"op":"add","path":"/spec/tolerations/-","value":{"key":"kubectl-sched.github.io/pool","operator":"Exists"}}]`), metav1.PatchOptions{})
	refused(t, err, "gpu", "op=Exists")
	apply := corev1apply.Pod("gated", "g-shop").WithSpec(corev1apply.PodSpec().WithTolerations(corev1apply.Toleration().WithOperator(corev1.TolerationOpExists)))
	_, err = pods.Apply(t.Context(), apply, metav1.ApplyOptions{FieldManager: "anna", Force: true})
	if err == nil {
		t.Error("server-side apply gave a gated pod the toleration")
	}
	// What has nothing to do with the pool stays possible, the end of the gate too.
	_, err = pods.Patch(t.Context(), "gated", types.JSONPatchType, []byte(`[{"op":"add","path":"/spec/tolerations/-","value":{"key":"example.com/x","operator":"Exists"}},{"op":"remove","path":"/spec/schedulingGates"}]`), metav1.PatchOptions{})
	allowed(t, err)
	allowed(t, c.runs(t.Context(), p))
}

// TestSubresources tries to change a pod through everything that is below it.
func TestSubresources(t *testing.T) {
	t.Parallel()
	c := guarded(t)
	pods := c.as("anna", "shop").CoreV1().Pods("g-shop")
	p, err := pods.Create(t.Context(), pod("subresources", on("none")), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, subresource := range []string{"ephemeralcontainers", "resize", "status"} {
		patch := []byte(`[{"op":"add","path":"/spec/tolerations/-","value":{"operator":"Exists"}}]`)
		// The API server drops what is none of the subresource's business.
		_, err := pods.Patch(t.Context(), p.Name, types.JSONPatchType, patch, metav1.PatchOptions{}, subresource)
		allowed(t, err)
		live, err := pods.Get(t.Context(), p.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if len(live.Spec.Tolerations) != len(p.Spec.Tolerations) {
			t.Errorf("%s gave the pod the tolerations %v", subresource, live.Spec.Tolerations)
		}
	}
	patch := []byte(`{"spec":{"ephemeralContainers":[{"name":"debug","image":"registry.example.com/debug:1"}]}}`)
	_, err = pods.Patch(t.Context(), p.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "ephemeralcontainers")
	allowed(t, err)
}

// TestControllers tries to have others make the pods.
func TestControllers(t *testing.T) {
	t.Parallel()
	c := guarded(t)
	anna := c.as("anna", "shop")
	warned := func(kind string) {
		t.Helper()
		if got := strings.Join(anna.warnings(), "\n"); !strings.Contains(got, `would let the pods onto its nodes`) {
			t.Errorf("whoever creates a %s is warned: %q", kind, got)
		}
	}
	_, err := anna.AppsV1().Deployments("g-shop").Create(t.Context(), deployment("by-deployment", tolerating(wildcard)), metav1.CreateOptions{})
	allowed(t, err)
	warned("Deployment")
	_, err = anna.AppsV1().DaemonSets("g-shop").Create(t.Context(), daemonSet("by-daemonset", tolerating(wildcard)), metav1.CreateOptions{})
	allowed(t, err)
	warned("DaemonSet")
	_, err = anna.BatchV1().Jobs("g-shop").Create(t.Context(), job("by-job", tolerating(wildcard)), metav1.CreateOptions{})
	allowed(t, err)
	warned("Job")
	_, err = anna.AppsV1().Deployments("g-shop").Create(t.Context(), deployment("by-template-node", named("gpu-0")), metav1.CreateOptions{})
	allowed(t, err)
	if got := strings.Join(anna.warnings(), "\n"); !strings.Contains(got, `spec.nodeName "gpu-0"`) {
		t.Errorf("a template that names its node is warned about: %q", got)
	}
	for _, kind := range []string{"ReplicaSet", "DaemonSet", "Job"} {
		allowed(t, c.event(t.Context(), "g-shop", kind, `pool "gpu" is dedicated, and nothing grants it to namespace "g-shop"`))
	}
	list, err := c.admin.CoreV1().Pods("g-shop").List(t.Context(), metav1.ListOptions{LabelSelector: "app in (by-deployment, by-daemonset, by-job, by-template-node)"})
	if err != nil || len(list.Items) > 0 {
		t.Errorf("controllers made %d pods (%v)", len(list.Items), err)
	}
}

// TestBinding tries to bind a pod past the scheduler.
func TestBinding(t *testing.T) {
	t.Parallel()
	c := guarded(t)
	for _, name := range []string{"by-hand", "by-legacy", "by-second", "by-cluster-ops", "by-system"} {
		if _, err := c.admin.CoreV1().Pods("g-shop").Create(t.Context(), pod(name, by("nobody")), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	anna := c.as("anna", "shop")
	refused(t, anna.CoreV1().Pods("g-shop").Bind(t.Context(), binding("by-hand", "gpu-0"), metav1.CreateOptions{}), "gpu", `user "anna" is no scheduler`)
	refused(t, c.admin.CoreV1().Pods("g-shop").Bind(t.Context(), binding("by-hand", "gpu-0"), metav1.CreateOptions{}), "gpu", `is no scheduler`)
	err := anna.CoreV1().RESTClient().Post().Namespace("g-shop").Resource("bindings").Body(binding("by-legacy", "gpu-0")).Do(t.Context()).Error()
	refused(t, err, "gpu", `user "anna" is no scheduler`)

	// Schedulers: the one that is exempt, and any that runs in kube-system.
	allowed(t, c.as("system:serviceaccount:g-sched:second").CoreV1().Pods("g-shop").Bind(t.Context(), binding("by-second", "plain-0"), metav1.CreateOptions{}))
	allowed(t, c.as("root", "cluster-ops").CoreV1().Pods("g-shop").Bind(t.Context(), binding("by-cluster-ops", "plain-0"), metav1.CreateOptions{}))
	allowed(t, c.as("system:serviceaccount:kube-system:third", "system:serviceaccounts", "system:serviceaccounts:kube-system").CoreV1().Pods("g-shop").Bind(t.Context(), binding("by-system", "plain-0"), metav1.CreateOptions{}))

	// Where the pool is granted, nobody minds.
	if _, err := anna.CoreV1().Pods("g-ml-vision").Create(t.Context(), pod("by-hand", by("nobody"), tolerating(exact("gpu"))), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	allowed(t, anna.CoreV1().Pods("g-ml-vision").Bind(t.Context(), binding("by-hand", "gpu-0"), metav1.CreateOptions{}))
}

// TestNodeLabels tries what a node may do to itself: the NodeRestriction plugin
// keeps it from its taints and from the labels of guarded pools, and from nothing
// else.
func TestNodeLabels(t *testing.T) {
	t.Parallel()
	c := guarded(t)
	node := c.as("system:node:plain-1", "system:nodes").CoreV1()
	patch := func(text string) error {
		_, err := node.Nodes().Patch(t.Context(), "plain-1", types.StrategicMergePatchType, []byte(text), metav1.PatchOptions{})
		return err
	}
	for _, text := range []string{
		`{"metadata":{"labels":{"node-restriction.kubernetes.io/class":"gpu"}}}`,
		`{"spec":{"taints":[{"key":"kubectl-sched.github.io/pool","value":"gpu","effect":"NoSchedule"}]}}`,
	} {
		if err := patch(text); !apierrors.IsForbidden(err) {
			t.Errorf("a node may do this to itself: %s (%v)", text, err)
		}
	}
	// This is why the compiler warns of pools that are told by such labels.
	allowed(t, patch(`{"metadata":{"labels":{"example.com/class":"gpu"}}}`))

	// A static pod shows as a mirror pod, which its node makes; nothing else may.
	mirror := func(p *corev1.Pod) {
		p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
		p.Spec.EnableServiceLinks = nil
		no := false
		p.Spec.AutomountServiceAccountToken = &no
	}
	owned := func(p *corev1.Pod) {
		live, err := c.admin.CoreV1().Nodes().Get(t.Context(), "plain-1", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		yes := true
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: live.Name, UID: live.UID, Controller: &yes}}
	}
	_, err := node.Pods("g-shop").Create(t.Context(), pod("static-plain-1", mirror, owned, named("plain-1"), tolerating(wildcard)), metav1.CreateOptions{})
	allowed(t, err)
	_, err = c.as("anna").CoreV1().Pods("g-shop").Create(t.Context(), pod("static-by-anna", mirror, named("plain-1")), metav1.CreateOptions{})
	refused(t, err, "gpu", `spec.nodeName "plain-1"`)
}
