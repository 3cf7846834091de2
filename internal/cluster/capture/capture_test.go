package capture_test

import (
	"bytes"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/kubectl-sched/kubectl-sched/internal/cluster"
	"github.com/kubectl-sched/kubectl-sched/internal/cluster/capture"
	"github.com/kubectl-sched/kubectl-sched/internal/cluster/capture/capturetest"
	"github.com/kubectl-sched/kubectl-sched/internal/cluster/snapshot"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

var now = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

func take(t *testing.T, server *capturetest.Server, o capture.Options) (*snapshot.Snapshot, diag.Findings, error) {
	t.Helper()
	s := httptest.NewServer(server)
	t.Cleanup(s.Close)
	client, err := cluster.Connect(&rest.Config{Host: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	o.Now = func() time.Time { return now }
	return capture.Capture(t.Context(), client, o)
}

func TestLargeClusterIsReadInPages(t *testing.T) {
	t.Parallel()
	var pages []capture.Progress
	s, findings, err := take(t, &capturetest.Server{Resources: capturetest.Large(20, 1201)}, capture.Options{Name: "prod", Progress: func(p capture.Progress) {
		if p.What == "pods" {
			pages = append(pages, p)
		}
	}})
	if err != nil || len(findings) > 0 {
		t.Fatal(err, findings)
	}
	if len(s.Pods) != 1201 || len(s.Nodes) != 20 || len(s.Deployments) != 31 || s.Cluster != "prod" || s.Version != "v1.37.2" || !s.Taken.Equal(now) {
		t.Errorf("%d pods, %d nodes, %d deployments of %s, %s at %v", len(s.Pods), len(s.Nodes), len(s.Deployments), s.Cluster, s.Version, s.Taken)
	}
	want := []capture.Progress{{What: "pods", Read: 500, Left: 701}, {What: "pods", Read: 1000, Left: 201}, {What: "pods", Read: 1201}}
	if diff := cmp.Diff(want, pages); diff != "" {
		t.Error(diff)
	}
	var b bytes.Buffer
	if err := snapshot.WriteYAML(&b, s); err != nil {
		t.Fatal(err)
	}
	for _, gone := range []string{"TOKEN", "the value of", "checksum", "--serve", "healthz", "managedFields", "resourceVersion", "podIP", "containerStatuses"} {
		if strings.Contains(b.String(), gone) {
			t.Errorf("there is %q in the snapshot", gone)
		}
	}
}

func expired(token string) (int, metav1.Status) {
	return 410, metav1.Status{Reason: metav1.StatusReasonExpired, Message: "the continue token is too old", ListMeta: metav1.ListMeta{Continue: token}}
}

func TestExpiredTokens(t *testing.T) {
	t.Parallel()
	whole, _, err := take(t, &capturetest.Server{Resources: capturetest.Large(3, 1201)}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	refuse := func(pages []int, token string) func(string, int) (int, metav1.Status) {
		return func(resource string, page int) (int, metav1.Status) {
			if resource == "pods" && slices.Contains(pages, page) {
				return expired(token)
			}
			return 0, metav1.Status{}
		}
	}
	// The page that was missed, and then one that overlaps what there is already.
	for name, server := range map[string]*capturetest.Server{
		"goes on with the new token":    {Refuse: refuse([]int{1}, "500")},
		"counts no pod twice":           {Refuse: refuse([]int{2}, "700")},
		"begins again without a token":  {Refuse: refuse([]int{1}, "")},
		"goes on whenever it must":      {Refuse: refuse([]int{1, 3, 5}, "500")},
		"the last page comes too late":  {Refuse: refuse([]int{2}, "1000")},
		"begins again at the last page": {Refuse: refuse([]int{2}, "")},
	} {
		server.Resources = capturetest.Large(3, 1201)
		s, _, err := take(t, server, capture.Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(len(whole.Pods), len(s.Pods)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	server := &capturetest.Server{Resources: capturetest.Large(3, 1201), Refuse: refuse([]int{1, 3}, "")}
	if _, _, err := take(t, server, capture.Options{}); err == nil || !strings.Contains(err.Error(), "list pods: the continue token is too old") {
		t.Errorf("error %v", err)
	}
}

func TestWhatMayNotBeRead(t *testing.T) {
	t.Parallel()
	forbid := func(names ...string) func(string, int) (int, metav1.Status) {
		return func(resource string, _ int) (int, metav1.Status) {
			if slices.Contains(names, resource) {
				return 403, capturetest.Forbidden(resource)
			}
			return 0, metav1.Status{}
		}
	}
	s, findings, err := take(t, &capturetest.Server{Resources: capturetest.Large(3, 10), Refuse: forbid("deployments.apps", "replicasets.apps")}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := []snapshot.Missing{
		{Resource: "deployments.apps", Reason: `deployments.apps is forbidden: User "x" cannot list resource`},
		{Resource: "replicasets.apps", Reason: `replicasets.apps is forbidden: User "x" cannot list resource`},
	}
	if diff := cmp.Diff(want, s.Missing); diff != "" {
		t.Error(diff)
	}
	if len(findings) != 1 || findings[0].Severity != diag.Warning || !strings.Contains(findings[0].Message, "deployments.apps, replicasets.apps cannot be read") {
		t.Errorf("findings %v", findings)
	}
	for _, name := range []string{"nodes", "pods", "namespaces"} {
		_, _, err := take(t, &capturetest.Server{Resources: capturetest.Large(3, 10), Refuse: forbid(name)}, capture.Options{})
		if err == nil || !strings.Contains(err.Error(), "list "+name+": "+name+" is forbidden") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestOtherKindsAndWhatIsOver(t *testing.T) {
	t.Parallel()
	untyped := func(apiVersion, kind, name string, spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name, "namespace": "a"}, "spec": spec}}
	}
	rollout := untyped("argoproj.io/v1alpha1", "Rollout", "r", map[string]any{"replicas": int64(2), "strategy": "x", "template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "c", "image": "i", "env": []any{}}}}}})
	broken := untyped("argoproj.io/v1alpha1", "Rollout", "broken", map[string]any{"template": map[string]any{"spec": map[string]any{"tolerations": "none"}}})
	group := untyped("scheduling.x-k8s.io/v1alpha1", "PodGroup", "g", map[string]any{"minMember": int64(3), "other": "x"})
	owner := []metav1.OwnerReference{{Kind: "Job", Name: "j", UID: "u", Controller: new(true)}}
	pod := func(name string, phase corev1.PodPhase, owners []metav1.OwnerReference) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "a", OwnerReferences: owners}, Status: corev1.PodStatus{Phase: phase}}
	}
	resources := append(capturetest.Large(1, 0),
		capturetest.Fixed(schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Rollout"}, "rollouts", true, broken, rollout),
		capturetest.Fixed(schema.GroupVersionKind{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Kind: "PodGroup"}, "podgroups", true, group),
		capturetest.Fixed(schema.GroupVersionKind{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Kind: "ElasticQuota"}, "elasticquotas", true),
	)
	resources[2] = capturetest.Fixed(corev1.SchemeGroupVersion.WithKind("Pod"), "pods", true, pod("over", corev1.PodSucceeded, owner), pod("bare", corev1.PodFailed, nil), pod("runs", corev1.PodRunning, owner))
	resources[4] = capturetest.Fixed(appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), "replicasets", true,
		&appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "old", Namespace: "a", OwnerReferences: owner}, Spec: appsv1.ReplicaSetSpec{Replicas: new(int32(0))}},
		&appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "new", Namespace: "a", OwnerReferences: owner}, Spec: appsv1.ReplicaSetSpec{Replicas: new(int32(1))}},
	)
	s, findings, err := take(t, &capturetest.Server{Resources: resources}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, k := range snapshot.Kinds() {
		for o := range k.All(s) {
			got = append(got, k.Name+" "+o.GetName())
		}
	}
	want := []string{"nodes node-00000.eu-west-1.compute.internal", "replica sets new", "custom workloads r", "pod groups of scheduling.x-k8s.io g", "pods bare", "pods runs"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"elasticquotas.scheduling.x-k8s.io", "podgroups.scheduling.x-k8s.io"}, s.Served); diff != "" {
		t.Errorf("served: %s", diff)
	}
	if spec := s.Custom[0].Object["spec"].(map[string]any); spec["strategy"] != nil || spec["replicas"] != int64(2) {
		t.Errorf("the rollout's spec is %v", spec)
	}
	if _, there := s.CRDPodGroups[0].Object["spec"].(map[string]any)["other"]; there {
		t.Error("an unknown field of a PodGroup was kept")
	}
	if len(findings) != 1 || findings[0].Severity != diag.Warning || !strings.Contains(findings[0].String(), "broken") {
		t.Errorf("findings %v", findings)
	}
}

// TestEveryKindCanBeListed holds that there is a way to list each kind, whether this
// cluster serves it or not.
func TestEveryKindCanBeListed(t *testing.T) {
	t.Parallel()
	var resources []capturetest.Resource
	for _, k := range snapshot.Kinds() {
		if k != snapshot.Custom() {
			resources = append(resources, capturetest.Fixed(k.GroupVersionKind, k.Resource, k.Namespaced))
		}
	}
	asked := map[string]bool{}
	server := &capturetest.Server{Resources: resources, Refuse: func(resource string, _ int) (int, metav1.Status) {
		asked[resource] = true
		return 0, metav1.Status{}
	}}
	if _, findings, err := take(t, server, capture.Options{}); err != nil || len(findings) > 0 {
		t.Fatal(err, findings)
	}
	for _, r := range resources {
		if name := (schema.GroupResource{Group: r.Group, Resource: r.Name}).String(); !asked[name] {
			t.Errorf("%s was not listed", name)
		}
	}
}
