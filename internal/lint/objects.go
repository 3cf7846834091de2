package lint

import (
	"slices"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-sched/kubectl-sched/internal/cluster/snapshot"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// thing is an object without a pod template, of the manifests or the cluster.
type thing struct {
	kind, namespace, name string
	// at is where the manifest has the path; zero for one of the cluster.
	at func(path ...any) diag.Range
}

func (t thing) ref() string {
	if t.namespace == "" {
		return t.kind + " " + t.name
	}
	return t.kind + " " + t.namespace + "/" + t.name
}

// budget is a PodDisruptionBudget.
type budget struct {
	thing
	spec policyv1.PodDisruptionBudgetSpec
	// selects is the selector; one that the API server refuses selects nothing.
	selects labels.Selector
}

func newBudget(t thing, spec policyv1.PodDisruptionBudgetSpec) budget {
	selector, err := metav1.LabelSelectorAsSelector(spec.Selector)
	if err != nil {
		selector = labels.Nothing()
	}
	return budget{t, spec, selector}
}

// scaler is what changes the number of a workload's pods: a
// HorizontalPodAutoscaler, or KEDA's ScaledObject.
type scaler struct {
	thing
	target   autoscalingv2.CrossVersionObjectReference
	min, max int32
}

// quota limits what the pods of a namespace may ask for.
type quota struct {
	thing
	hard corev1.ResourceList
	// path leads to the limits.
	path []any
	// scoped says that it is for some of the pods.
	scoped bool
}

// group is a PodGroup of either form.
type group struct {
	thing
	min int32
	// minPath leads to min, timeoutPath to timeout, which is nil where the group
	// does not say.
	minPath, timeoutPath []any
	timeout              *time.Duration
	// form is the label or field that joins: see gangOf.
	crd bool
}

// objects are the objects of a judgement that rules look at. What a manifest says
// stands over what the cluster says now.
type objects struct {
	budgets []budget
	scalers []scaler
	quotas  []quota
	groups  []group
	// classes are the values of priority classes.
	classes map[string]int32
	// services are the names that exist.
	seen map[string]bool
}

func readObjects(others []*workload.Object, s *snapshot.Snapshot) *objects {
	o := &objects{classes: map[string]int32{"system-cluster-critical": 2000000000, "system-node-critical": 2000001000}, seen: map[string]bool{}}
	for _, other := range others {
		o.manifest(other)
	}
	if s != nil {
		o.cluster(s)
	}
	return o
}

// take reports whether an object is the first of its name.
func (o *objects) take(t thing) bool {
	key := t.kind + " " + t.namespace + "/" + t.name
	if o.seen[key] {
		return false
	}
	o.seen[key] = true
	return true
}

// manifest reads one object of the manifests. What does not fit its kind was
// reported when it was read, or is the API server's to refuse.
func (o *objects) manifest(m *workload.Object) {
	t := thing{kind: m.Kind, namespace: m.Namespace, name: m.Name, at: m.Source.At}
	switch m.Group + "/" + m.Kind {
	case "policy/PodDisruptionBudget":
		if p, ok := decoded[policyv1.PodDisruptionBudget](m.Object); ok && o.take(t) {
			o.budgets = append(o.budgets, newBudget(t, p.Spec))
		}
	case "autoscaling/HorizontalPodAutoscaler":
		if h, ok := decoded[autoscalingv2.HorizontalPodAutoscaler](m.Object); ok && o.take(t) {
			o.scalers = append(o.scalers, scaler{t, h.Spec.ScaleTargetRef, deref(h.Spec.MinReplicas, 1), h.Spec.MaxReplicas})
		}
	case "keda.sh/ScaledObject":
		o.scaledObject(t, m.Object)
	case "scheduling.k8s.io/PriorityClass":
		if c, ok := decoded[schedulingv1.PriorityClass](m.Object); ok {
			o.classes[m.Name] = c.Value
		}
	case "/ResourceQuota":
		if q, ok := decoded[corev1.ResourceQuota](m.Object); ok && o.take(t) {
			o.quotas = append(o.quotas, resourceQuota(t, &q))
		}
	case "scheduling.x-k8s.io/ElasticQuota":
		o.elasticQuota(t, m.Object)
	case "scheduling.x-k8s.io/PodGroup":
		o.crdGroup(t, m.Object)
	case "scheduling.k8s.io/PodGroup":
		if g, ok := decoded[schedulingv1beta1.PodGroup](m.Object); ok {
			o.apiGroup(t, &g)
		}
	}
}

// cluster reads what the snapshot has.
func (o *objects) cluster(s *snapshot.Snapshot) {
	of := func(kind string, m metav1.Object) thing {
		return thing{kind: kind, namespace: m.GetNamespace(), name: m.GetName(), at: func(...any) diag.Range { return diag.Range{} }}
	}
	for _, p := range s.PodDisruptionBudgets {
		if t := of("PodDisruptionBudget", p); o.take(t) {
			o.budgets = append(o.budgets, newBudget(t, p.Spec))
		}
	}
	for _, c := range s.PriorityClasses {
		if _, ok := o.classes[c.Name]; !ok {
			o.classes[c.Name] = c.Value
		}
	}
	for _, q := range s.ResourceQuotas {
		if t := of("ResourceQuota", q); o.take(t) {
			o.quotas = append(o.quotas, resourceQuota(t, q))
		}
	}
	for _, u := range s.ElasticQuotas {
		o.elasticQuota(of("ElasticQuota", u), u.Object)
	}
	for _, u := range s.CRDPodGroups {
		o.crdGroup(of("PodGroup", u), u.Object)
	}
	for _, g := range s.PodGroups {
		o.apiGroup(of("PodGroup", g), g)
	}
}

func resourceQuota(t thing, q *corev1.ResourceQuota) quota {
	return quota{thing: t, hard: q.Spec.Hard, path: []any{"spec", "hard"}, scoped: len(q.Spec.Scopes) > 0 || q.Spec.ScopeSelector != nil}
}

func (o *objects) elasticQuota(t thing, object map[string]any) {
	typed, ok := decoded[struct {
		Spec struct {
			Max corev1.ResourceList `json:"max,omitempty"`
		} `json:"spec,omitempty"`
	}](object)
	if ok && len(typed.Spec.Max) > 0 && o.take(t) {
		o.quotas = append(o.quotas, quota{thing: t, hard: typed.Spec.Max, path: []any{"spec", "max"}})
	}
}

func (o *objects) scaledObject(t thing, object map[string]any) {
	typed, ok := decoded[struct {
		Spec struct {
			ScaleTargetRef  autoscalingv2.CrossVersionObjectReference `json:"scaleTargetRef,omitempty"`
			MinReplicaCount *int32                                    `json:"minReplicaCount,omitempty"`
			MaxReplicaCount *int32                                    `json:"maxReplicaCount,omitempty"`
		} `json:"spec,omitempty"`
	}](object)
	if !ok || !o.take(t) {
		return
	}
	target := typed.Spec.ScaleTargetRef
	if target.Kind == "" {
		target.Kind, target.APIVersion = "Deployment", "apps/v1" // KEDA's defaults, of the counts too.
	}
	o.scalers = append(o.scalers, scaler{t, target, deref(typed.Spec.MinReplicaCount, 0), deref(typed.Spec.MaxReplicaCount, 100)})
}

func (o *objects) crdGroup(t thing, object map[string]any) {
	n, found, err := unstructured.NestedInt64(object, "spec", "minMember")
	if !found || err != nil || !o.take(t) {
		return
	}
	g := group{thing: t, crd: true, min: int32(min(n, 1<<30)), minPath: []any{"spec", "minMember"}, timeoutPath: []any{"spec", "scheduleTimeoutSeconds"}}
	if seconds, found, err := unstructured.NestedInt64(object, "spec", "scheduleTimeoutSeconds"); found && err == nil {
		d := time.Duration(seconds) * time.Second
		g.timeout = &d
	}
	o.groups = append(o.groups, g)
}

func (o *objects) apiGroup(t thing, g *schedulingv1beta1.PodGroup) {
	if gang := g.Spec.SchedulingPolicy.Gang; gang != nil && o.take(t) {
		o.groups = append(o.groups, group{thing: t, min: gang.MinCount, minPath: []any{"spec", "schedulingPolicy", "gang", "minCount"}})
	}
}

// scalerOf returns what scales the workload, or nil.
func (o *objects) scalerOf(w *workload.Workload) *scaler {
	i := slices.IndexFunc(o.scalers, func(s scaler) bool {
		return s.namespace == w.Namespace && s.target.Kind == w.Kind && s.target.Name == w.Name
	})
	if i < 0 {
		return nil
	}
	return &o.scalers[i]
}

// covers reports whether the budget is for the template's pods.
func (b budget) covers(t *template) bool {
	return b.namespace == t.w.Namespace && b.selects.Matches(t.labels)
}

// decoded reads an object into a type; false where it does not fit.
func decoded[T any](object map[string]any) (T, bool) {
	var typed T
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, &typed)
	return typed, err == nil
}

func deref(n *int32, otherwise int32) int32 {
	if n == nil {
		return otherwise
	}
	return *n
}
