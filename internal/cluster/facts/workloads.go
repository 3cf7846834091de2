package facts

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-sched/kubectl-sched/internal/cluster/snapshot"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// Workloads returns the workloads of the snapshot that no other controls, ordered
// by namespace, kind, group and name. The table may be nil for the built-in one.
// Findings tell of what is wrong in their objects.
func Workloads(s *snapshot.Snapshot, kinds *workload.Kinds) ([]*workload.Workload, diag.Findings) {
	if kinds == nil {
		kinds, _ = workload.NewKinds(nil)
	}
	r := reader{kinds: kinds}
	add(&r, "apps/v1", "Deployment", s.Deployments)
	add(&r, "apps/v1", "ReplicaSet", s.ReplicaSets)
	add(&r, "apps/v1", "StatefulSet", s.StatefulSets)
	add(&r, "apps/v1", "DaemonSet", s.DaemonSets)
	add(&r, "batch/v1", "Job", s.Jobs)
	add(&r, "batch/v1", "CronJob", s.CronJobs)
	add(&r, "v1", "ReplicationController", s.ReplicationControllers)
	add(&r, "v1", "Pod", s.Pods)
	for _, u := range s.Custom {
		if !kinds.Controls(u) {
			r.read(u.Object, u)
		}
	}
	slices.SortFunc(r.found, func(a, b *workload.Workload) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Name, b.Name))
	})
	return r.found, r.findings
}

type reader struct {
	kinds    *workload.Kinds
	found    []*workload.Workload
	findings diag.Findings
}

// add reads objects of one built-in kind.
func add[T interface {
	metav1.Object
	runtime.Object
}](r *reader, apiVersion, kind string, objects []T) {
	for _, o := range objects {
		if r.kinds.Controls(o) {
			continue
		}
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			r.findings = append(r.findings, diag.Finding{
				Rule: "workload/malformed", Severity: diag.Error, Subject: kind + " " + o.GetNamespace() + "/" + o.GetName(), Message: err.Error(),
			})
			continue
		}
		u := &unstructured.Unstructured{Object: object}
		u.SetAPIVersion(apiVersion)
		u.SetKind(kind)
		r.read(object, o)
	}
}

// read reads one object.
func (r *reader) read(object map[string]any, o metav1.Object) {
	w, findings, ok := workload.FromObject(object, workload.Options{Kinds: r.kinds}, workload.Source{Live: true})
	r.findings = append(r.findings, findings...)
	if !ok || w == nil {
		return
	}
	w.UID = string(o.GetUID())
	if owner := metav1.GetControllerOf(o); owner != nil {
		w.Controller = owner.Kind + "/" + owner.Name
	}
	r.found = append(r.found, w)
}
