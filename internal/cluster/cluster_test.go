package cluster

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
	"github.com/kubectl-sched/kubectl-sched/internal/sandbox/sandboxtest"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/internal/workload/ownership"
)

var shared = sandboxtest.Shared{}

func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }

func connect(t *testing.T) *Client {
	t.Helper()
	client, err := Connect(shared.Get(t).RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func podTemplate(app string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/main:1"}}},
	}
}

func TestCapabilities(t *testing.T) {
	t.Parallel()
	c := connect(t)
	core := c.Kube.CoreV1()
	must[*corev1.Node](t)(core.Nodes().Create(t.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{"pool": "gpu"}},
		Spec:       corev1.NodeSpec{Unschedulable: true, Taints: []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}}},
	}, metav1.CreateOptions{}))
	affinity := &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}}},
	}}}}
	must[*corev1.PersistentVolume](t)(core.PersistentVolumes().Create(t.Context(), &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "v1"},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/x"}},
			NodeAffinity:           affinity, ClaimRef: &corev1.ObjectReference{Namespace: "default", Name: "data"},
		},
	}, metav1.CreateOptions{}))
	must[*corev1.PersistentVolumeClaim](t)(core.PersistentVolumeClaims("default").Create(t.Context(), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{
			VolumeName: "v1", StorageClassName: new(""), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}, metav1.CreateOptions{}))
	if err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		v, err := core.PersistentVolumes().Get(ctx, "v1", metav1.GetOptions{})
		return err == nil && v.Status.Phase == corev1.VolumeBound, err
	}); err != nil {
		t.Fatalf("the volume is not bound: %v", err)
	}

	caps, findings := c.Capabilities(t.Context())
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	if caps.Minor != 37 || !caps.NodesKnown || !caps.NamespacesKnown || caps.PriorityClasses["system-node-critical"] != 2000001000 {
		t.Errorf("capabilities are %+v", caps)
	}
	i := slices.IndexFunc(caps.Nodes, func(n capability.Node) bool { return n.Name == "n1" })
	if i < 0 || caps.Nodes[i].Labels["pool"] != "gpu" || !caps.Nodes[i].Unschedulable || caps.Nodes[i].Taints[0].Key != "gpu" {
		t.Errorf("nodes are %+v", caps.Nodes)
	}
	if d := cmp.Diff(affinity, caps.Volumes["default/data"].Affinity); d != "" {
		t.Errorf("affinity (-want +got):\n%s", d)
	}
	if caps.Namespaces["default"]["kubernetes.io/metadata.name"] != "default" {
		t.Errorf("namespaces are %v", caps.Namespaces)
	}
}

func TestWorkloadsAreTheTopmost(t *testing.T) {
	t.Parallel()
	c := connect(t)
	const namespace = "topmost"
	must[*corev1.Namespace](t)(c.Kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}))
	selector := func(app string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	}
	deployment := must[*appsv1.Deployment](t)(c.Kube.AppsV1().Deployments(namespace).Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.DeploymentSpec{Selector: selector("web"), Template: podTemplate("web")},
	}, metav1.CreateOptions{FieldManager: "somebody"}))
	isController := true
	must[*appsv1.ReplicaSet](t)(c.Kube.AppsV1().ReplicaSets(namespace).Create(t.Context(), &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web-1", Labels: map[string]string{"app": "web"}, OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: deployment.UID, Controller: &isController}}},
		Spec:       appsv1.ReplicaSetSpec{Selector: selector("web"), Template: podTemplate("web")},
	}, metav1.CreateOptions{}))
	must[*appsv1.StatefulSet](t)(c.Kube.AppsV1().StatefulSets(namespace).Create(t.Context(), &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "made", OwnerReferences: []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Database", Name: "db", UID: "1", Controller: &isController}}},
		Spec:       appsv1.StatefulSetSpec{Selector: selector("made"), Template: podTemplate("made")},
	}, metav1.CreateOptions{}))
	job := podTemplate("once")
	job.Spec.RestartPolicy = corev1.RestartPolicyNever
	must[*batchv1.Job](t)(c.Kube.BatchV1().Jobs(namespace).Create(t.Context(), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "once"}, Spec: batchv1.JobSpec{Template: job},
	}, metav1.CreateOptions{}))
	must[*corev1.Pod](t)(c.Kube.CoreV1().Pods(namespace).Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "bare"}, Spec: podTemplate("x").Spec}, metav1.CreateOptions{}))

	workloads, findings := c.Workloads(t.Context(), Scope{Namespaces: []string{namespace}})
	if findings.HasErrors() {
		t.Fatal(findings)
	}
	var refs []string
	for _, w := range workloads {
		refs = append(refs, w.Ref())
		if w.UID == "" || w.ResourceVersion == "" || !w.Source.Live {
			t.Errorf("%s: UID %q, version %q, live %v", w.Ref(), w.UID, w.ResourceVersion, w.Source.Live)
		}
		switch w.Name {
		case "made":
			if w.Controller != "Database/db" {
				t.Errorf("its controller is %q", w.Controller)
			}
		case "web":
			if !slices.Contains(w.Source.Managers, "somebody") {
				t.Errorf("its managers are %v", w.Source.Managers)
			}
		}
	}
	want := []string{"Deployment topmost/web", "Job topmost/once", "Pod topmost/bare", "StatefulSet topmost/made"}
	if d := cmp.Diff(want, refs); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// tolerated is a Deployment with our toleration, and what our record says of it.
func tolerated(t *testing.T, uid types.UID, annotate bool) (*unstructured.Unstructured, *ownership.Record) {
	t.Helper()
	template := podTemplate("web")
	template.Spec.Tolerations = []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}}
	object := must[map[string]any](t)(runtime.DefaultUnstructuredConverter.ToUnstructured(&appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: uid},
		Spec:       appsv1.DeploymentSpec{Template: template},
	}))
	u := &unstructured.Unstructured{Object: object}
	const path = "/spec/template/spec/tolerations"
	list, _, err := unstructured.NestedFieldNoCopy(object, "spec", "template", "spec", "tolerations")
	if err != nil {
		t.Fatal(err)
	}
	record := &ownership.Record{UID: "u1", Fields: []ownership.Field{{Path: path, Wrote: list}}}
	if annotate {
		u.SetAnnotations(map[string]string{ownership.Annotation: must[string](t)(record.Encode())})
	}
	return u, record
}

func TestWhichRecordIsBelieved(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		uid                 types.UID
		annotate, remember  bool
		without             bool // the toleration is gone
		believed, marksThis bool
	}{
		"annotated":                {uid: "u1", annotate: true, believed: true},
		"copied-to-another-object": {uid: "u2", annotate: true},
		"stripped":                 {uid: "u1", remember: true, believed: true, marksThis: true},
		"never-written":            {uid: "u1", remember: true, without: true},
		"unknown":                  {uid: "u1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u, record := tolerated(t, test.uid, test.annotate)
			if test.without {
				unstructured.RemoveNestedField(u.Object, "spec", "template", "spec", "tolerations")
			}
			var records map[types.UID]*ownership.Record
			if test.remember {
				records = map[types.UID]*ownership.Record{"u1": record}
			}
			w, findings := (&Client{}).Workload(u, nil, records)
			if findings.HasErrors() {
				t.Fatal(findings)
			}
			if (w.Record != nil) != test.believed || w.Remembered != test.marksThis {
				t.Errorf("record %v, remembered %v", w.Record, w.Remembered)
			}
			if got, want := len(w.Templates[0].Pods.Tolerations), 1; test.believed && got != 0 || !test.believed && !test.without && got != want {
				t.Errorf("without us it has %d tolerations", got)
			}
		})
	}
}

func TestFieldOwners(t *testing.T) {
	t.Parallel()
	u := &unstructured.Unstructured{Object: map[string]any{}}
	fields := func(manager, raw string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(raw)}
	}
	u.SetManagedFields([]metav1.ManagedFieldsEntry{
		fields("helm", `{"f:spec":{"f:template":{"f:spec":{"f:tolerations":{}}}}}`),
		fields("edit", `{"f:spec":{"f:template":{"f:spec":{"f:affinity":{".":{},"f:nodeAffinity":{}}}}}}`),
		fields("whole", `{"f:spec":{"f:groups":{}}}`),
		fields("scaler", `{"f:spec":{"f:replicas":{}}}`),
	})
	for _, test := range []struct {
		path workload.Path
		want []string
	}{
		{workload.Path{"spec", "template", "spec", "tolerations"}, []string{"helm"}},
		{workload.Path{"spec", "template", "spec"}, []string{"edit", "helm"}},
		{workload.Path{"spec", "template", "spec", "affinity", "podAffinity"}, nil},
		{workload.Path{"spec", "template", "spec", "affinity", "nodeAffinity", "required"}, []string{"edit"}},
		{workload.Path{"spec", "groups", 0, "tolerations"}, []string{"whole"}},
		{workload.Path{"spec", "priorityClassName"}, nil},
	} {
		if d := cmp.Diff(test.want, FieldOwners(u.Object, test.path)); d != "" {
			t.Errorf("%v (-want +got):\n%s", test.path, d)
		}
	}
}
