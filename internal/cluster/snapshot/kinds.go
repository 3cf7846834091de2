package snapshot

import (
	"encoding/json"
	"iter"
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-sched/kubectl-sched/internal/cluster/trim"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
)

// Object is an API object in a snapshot.
type Object interface {
	metav1.Object
	runtime.Object
}

// Kind is one list of a Snapshot: which objects are in it, and how they are written.
type Kind struct {
	// Name is what people call the objects, in the plural: "pods".
	Name string
	// GroupVersionKind is that of the objects; of Custom, nothing.
	schema.GroupVersionKind
	// Resource is their resource in the API.
	Resource string
	// Namespaced says that they are in namespaces.
	Namespaced bool
	// Typed says that they have a Go type; others are unstructured.
	Typed bool

	// number is what the kind is called in a file. It is never given to another.
	number uint64
	list   store
}

// New returns an empty object of the kind.
func (k *Kind) New() Object { return k.list.new() }

// Add appends the object, which must be of the kind, to its list.
func (k *Kind) Add(s *Snapshot, o Object) { k.list.add(s, o) }

// All goes over the objects of the kind in their order.
func (k *Kind) All(s *Snapshot) iter.Seq[Object] { return k.list.all(s) }

// Len is how many objects of the kind there are.
func (k *Kind) Len(s *Snapshot) int { return k.list.len(s) }

// Trim takes out of the object, which must be of the kind and may be changed, all
// that scheduling does not read, and returns what is left. Of Custom, kinds is the
// table of the workloads that are known, nil for the built-in one.
func (k *Kind) Trim(o Object, kinds *workload.Kinds, keep trim.Keep) (Object, error) {
	if k.Typed {
		return o, trim.Object(o, keep)
	}
	u, only := o.(*unstructured.Unstructured), trim.Untyped
	if k.Kind == "" {
		only = func(u *unstructured.Unstructured, keep trim.Keep) (*unstructured.Unstructured, error) {
			return trim.Workload(u, kinds, keep)
		}
	}
	kept, err := only(u, keep)
	if err != nil {
		return nil, err // and not a nil in an interface
	}
	return kept, nil
}

// store is access to one list of a Snapshot.
type store interface {
	new() Object
	add(*Snapshot, Object)
	all(*Snapshot) iter.Seq[Object]
	len(*Snapshot) int
	sort(*Snapshot)
	marshal(Object) ([]byte, error)
	// decoder returns what decodes one record after the other.
	decoder() func([]byte, Object) error
}

// message is what the API's Go types can do besides: they are written in their own
// binary form.
type message interface {
	Object
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// typed is the list of a kind with a Go type.
type typed[T any, P interface {
	*T
	message
}] struct {
	field func(*Snapshot) *[]*T
}

func (l typed[T, P]) new() Object { return P(new(T)) }

func (l typed[T, P]) add(s *Snapshot, o Object) {
	list := l.field(s)
	*list = append(*list, (*T)(o.(P)))
}

func (l typed[T, P]) all(s *Snapshot) iter.Seq[Object] {
	return func(yield func(Object) bool) {
		for _, o := range *l.field(s) {
			if !yield(P(o)) {
				return
			}
		}
	}
}

func (l typed[T, P]) len(s *Snapshot) int { return len(*l.field(s)) }

func (l typed[T, P]) sort(s *Snapshot) {
	sortObjects(*l.field(s), func(o *T) metav1.Object { return P(o) })
}

func (l typed[T, P]) marshal(o Object) ([]byte, error) { return o.(P).Marshal() }

func (l typed[T, P]) decoder() func([]byte, Object) error {
	return func(data []byte, o Object) error { return o.(P).Unmarshal(data) }
}

// untyped is the list of a kind without one.
type untyped struct {
	field func(*Snapshot) *[]*unstructured.Unstructured
	gvk   schema.GroupVersionKind
}

func (l untyped) new() Object {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	if l.gvk.Kind != "" {
		u.SetGroupVersionKind(l.gvk)
	}
	return u
}

func (l untyped) add(s *Snapshot, o Object) {
	list := l.field(s)
	*list = append(*list, o.(*unstructured.Unstructured))
}

func (l untyped) all(s *Snapshot) iter.Seq[Object] {
	return func(yield func(Object) bool) {
		for _, o := range *l.field(s) {
			if !yield(o) {
				return
			}
		}
	}
}

func (l untyped) len(s *Snapshot) int { return len(*l.field(s)) }

func (l untyped) sort(s *Snapshot) {
	sortObjects(*l.field(s), func(o *unstructured.Unstructured) metav1.Object { return o })
}

func (l untyped) marshal(o Object) ([]byte, error) {
	return json.Marshal(o.(*unstructured.Unstructured).Object)
}

func (l untyped) decoder() func([]byte, Object) error {
	return func(data []byte, o Object) error { return o.(*unstructured.Unstructured).UnmarshalJSON(data) }
}

// Kinds returns the kinds of the lists of a Snapshot, in the order in which they
// are written: what others depend on comes first.
func Kinds() []*Kind { return allKinds() }

// KindOf returns the kind of the list that objects of the group and kind are in, and
// whether there is one. Those of Custom have none of their own.
func KindOf(gk schema.GroupKind) (*Kind, bool) {
	for _, k := range allKinds() {
		if k.GroupKind() == gk && gk.Kind != "" {
			return k, true
		}
	}
	return nil, false
}

// Optional reports whether some clusters serve the kind and others do not.
func (k *Kind) Optional() bool {
	return k.Kind != "" && (!k.Typed || k.Group == resourcev1.GroupName || k.Kind == "PodGroup")
}

// GroupResource is what the kind is called in Served and in Missing.
func (k *Kind) GroupResource() string {
	return schema.GroupResource{Group: k.Group, Resource: k.Resource}.String()
}

// optional are the kinds that Served can name, sorted.
func optional() []string {
	var names []string
	for _, k := range allKinds() {
		if k.Optional() {
			names = append(names, k.GroupResource())
		}
	}
	slices.Sort(names)
	return names
}

// Serves reports whether the cluster serves the kind of the resource, as
// "podgroups.scheduling.x-k8s.io", whether there are any or not.
func (s *Snapshot) Serves(resource string) bool { return slices.Contains(s.Served, resource) }

// Custom is the kind of the list of other workloads.
func Custom() *Kind {
	for _, k := range allKinds() {
		if k.Kind == "" {
			return k
		}
	}
	return nil
}

// native makes the row of a kind with a Go type.
func native[T any, P interface {
	*T
	message
}](number uint64, gv schema.GroupVersion, kind, resource, name string, namespaced bool, field func(*Snapshot) *[]*T) *Kind {
	gvk := gv.WithKind(kind)
	return &Kind{Name: name, GroupVersionKind: gvk, Resource: resource, Namespaced: namespaced, Typed: true, number: number, list: typed[T, P]{field}}
}

// foreign makes the row of a kind without one.
func foreign(number uint64, gvk schema.GroupVersionKind, resource, name string, namespaced bool, field func(*Snapshot) *[]*unstructured.Unstructured) *Kind {
	return &Kind{Name: name, GroupVersionKind: gvk, Resource: resource, Namespaced: namespaced, number: number, list: untyped{field, gvk}}
}

var allKinds = sync.OnceValue(func() []*Kind {
	core, apps, batch := corev1.SchemeGroupVersion, appsv1.SchemeGroupVersion, batchv1.SchemeGroupVersion
	storage, scheduling, resource := storagev1.SchemeGroupVersion, schedulingv1.SchemeGroupVersion, resourcev1.SchemeGroupVersion
	external := schema.GroupVersion{Group: "scheduling.x-k8s.io", Version: "v1alpha1"}
	return []*Kind{
		native(2, core, "Namespace", "namespaces", "namespaces", false, func(s *Snapshot) *[]*corev1.Namespace { return &s.Namespaces }),
		native(3, scheduling, "PriorityClass", "priorityclasses", "priority classes", false, func(s *Snapshot) *[]*schedulingv1.PriorityClass { return &s.PriorityClasses }),
		native(4, core, "Node", "nodes", "nodes", false, func(s *Snapshot) *[]*corev1.Node { return &s.Nodes }),
		native(5, storage, "StorageClass", "storageclasses", "storage classes", false, func(s *Snapshot) *[]*storagev1.StorageClass { return &s.StorageClasses }),
		native(6, storage, "CSIDriver", "csidrivers", "CSI drivers", false, func(s *Snapshot) *[]*storagev1.CSIDriver { return &s.CSIDrivers }),
		native(7, storage, "CSINode", "csinodes", "CSI nodes", false, func(s *Snapshot) *[]*storagev1.CSINode { return &s.CSINodes }),
		native(8, storage, "CSIStorageCapacity", "csistoragecapacities", "CSI storage capacities", true, func(s *Snapshot) *[]*storagev1.CSIStorageCapacity { return &s.CSIStorageCapacities }),
		native(9, core, "PersistentVolume", "persistentvolumes", "persistent volumes", false, func(s *Snapshot) *[]*corev1.PersistentVolume { return &s.PersistentVolumes }),
		native(10, core, "PersistentVolumeClaim", "persistentvolumeclaims", "persistent volume claims", true, func(s *Snapshot) *[]*corev1.PersistentVolumeClaim { return &s.PersistentVolumeClaims }),
		native(11, storage, "VolumeAttachment", "volumeattachments", "volume attachments", false, func(s *Snapshot) *[]*storagev1.VolumeAttachment { return &s.VolumeAttachments }),
		native(12, resource, "DeviceClass", "deviceclasses", "device classes", false, func(s *Snapshot) *[]*resourcev1.DeviceClass { return &s.DeviceClasses }),
		native(13, resource, "ResourceSlice", "resourceslices", "resource slices", false, func(s *Snapshot) *[]*resourcev1.ResourceSlice { return &s.ResourceSlices }),
		native(14, resource, "ResourceClaimTemplate", "resourceclaimtemplates", "resource claim templates", true, func(s *Snapshot) *[]*resourcev1.ResourceClaimTemplate { return &s.ResourceClaimTemplates }),
		native(15, resource, "ResourceClaim", "resourceclaims", "resource claims", true, func(s *Snapshot) *[]*resourcev1.ResourceClaim { return &s.ResourceClaims }),
		native(16, core, "Service", "services", "services", true, func(s *Snapshot) *[]*corev1.Service { return &s.Services }),
		native(17, core, "ResourceQuota", "resourcequotas", "resource quotas", true, func(s *Snapshot) *[]*corev1.ResourceQuota { return &s.ResourceQuotas }),
		native(18, policyv1.SchemeGroupVersion, "PodDisruptionBudget", "poddisruptionbudgets", "pod disruption budgets", true, func(s *Snapshot) *[]*policyv1.PodDisruptionBudget { return &s.PodDisruptionBudgets }),
		native(19, apps, "Deployment", "deployments", "deployments", true, func(s *Snapshot) *[]*appsv1.Deployment { return &s.Deployments }),
		native(20, apps, "ReplicaSet", "replicasets", "replica sets", true, func(s *Snapshot) *[]*appsv1.ReplicaSet { return &s.ReplicaSets }),
		native(21, apps, "StatefulSet", "statefulsets", "stateful sets", true, func(s *Snapshot) *[]*appsv1.StatefulSet { return &s.StatefulSets }),
		native(22, apps, "DaemonSet", "daemonsets", "daemon sets", true, func(s *Snapshot) *[]*appsv1.DaemonSet { return &s.DaemonSets }),
		native(23, batch, "CronJob", "cronjobs", "cron jobs", true, func(s *Snapshot) *[]*batchv1.CronJob { return &s.CronJobs }),
		native(24, batch, "Job", "jobs", "jobs", true, func(s *Snapshot) *[]*batchv1.Job { return &s.Jobs }),
		native(25, core, "ReplicationController", "replicationcontrollers", "replication controllers", true, func(s *Snapshot) *[]*corev1.ReplicationController { return &s.ReplicationControllers }),
		foreign(26, schema.GroupVersionKind{}, "", "custom workloads", true, func(s *Snapshot) *[]*unstructured.Unstructured { return &s.Custom }),
		native(27, schedulingv1beta1.SchemeGroupVersion, "PodGroup", "podgroups", "pod groups", true, func(s *Snapshot) *[]*schedulingv1beta1.PodGroup { return &s.PodGroups }),
		foreign(28, external.WithKind("PodGroup"), "podgroups", "pod groups of scheduling.x-k8s.io", true, func(s *Snapshot) *[]*unstructured.Unstructured { return &s.CRDPodGroups }),
		foreign(29, external.WithKind("ElasticQuota"), "elasticquotas", "elastic quotas", true, func(s *Snapshot) *[]*unstructured.Unstructured { return &s.ElasticQuotas }),
		foreign(30, schema.GroupVersionKind{Group: "karpenter.sh", Version: "v1", Kind: "NodePool"}, "nodepools", "node pools", false, func(s *Snapshot) *[]*unstructured.Unstructured { return &s.NodePools }),
		foreign(31, schema.GroupVersionKind{Group: "metrics.k8s.io", Version: "v1beta1", Kind: "NodeMetrics"}, "nodes", "node metrics", false, func(s *Snapshot) *[]*unstructured.Unstructured { return &s.NodeMetrics }),
		pods(32),
	}
})

// pods makes the row of pods.
func pods(number uint64) *Kind {
	k := native(number, corev1.SchemeGroupVersion, "Pod", "pods", "pods", true, func(s *Snapshot) *[]*corev1.Pod { return &s.Pods })
	k.list = podStore{k.list}
	return k
}
