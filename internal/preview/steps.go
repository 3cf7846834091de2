package preview

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/compiler/emit"
	"github.com/kubectl-sched/kubectl-sched/internal/cluster/trim"
	"github.com/kubectl-sched/kubectl-sched/internal/simulate"
	"github.com/kubectl-sched/kubectl-sched/internal/simulate/store"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// Steps returns what happens to a cluster when the plan reaches the workloads that
// it was compiled from: first what pods depend on, then each workload that changes
// under its own strategy. Findings tell of fields that a workload cannot carry.
func Steps(ctx context.Context, plan *compiler.Plan, workloads []*workload.Workload) ([]simulate.Step, diag.Findings) {
	steps := []simulate.Step{simulate.Create{Objects: objects(plan)}}
	for _, n := range plan.Nodes {
		if n.ManagedBy == policy.ManagedLive || len(n.Nodes) > 0 {
			steps = append(steps, simulate.Mark{Nodes: n.Nodes, Labels: n.Labels, Taints: n.Taints})
		}
	}
	written, findings := emit.Write(ctx, plan, workloads, workload.Stamp{})
	for i, w := range workloads {
		object := w.Object
		if written[i] != nil {
			if len(written[i].Edits) == 0 && w.Source.Live {
				continue
			}
			object = written[i].Object
		} else if w.Source.Live {
			continue // it is in the cluster as it is
		}
		made, err := typed(object)
		if err != nil {
			findings = append(findings, diag.Finding{
				Rule: "workload/malformed", Severity: diag.Error, Subject: w.Ref(), Range: w.Source.At(), Message: err.Error(),
			})
			continue
		}
		steps = append(steps, simulate.Rollout{Object: made})
	}
	return steps, findings
}

// objects are the plan's objects that scheduling reads.
func objects(plan *compiler.Plan) []store.Object {
	var list []store.Object
	for _, o := range plan.Objects {
		switch object := o.Object.(type) {
		case *schedulingv1.PriorityClass:
			list = append(list, object)
		case *schedulingv1beta1.PodGroup:
			list = append(list, object)
		case *unstructured.Unstructured:
			if object.GetKind() == "PodGroup" {
				list = append(list, object)
			}
		}
	}
	return list
}

// typed returns the object of a built-in kind with its type, and only with what
// scheduling reads, as a snapshot has it. Others stay as they are.
func typed(object map[string]any) (runtime.Object, error) {
	u := &unstructured.Unstructured{Object: object}
	var into interface {
		runtime.Object
		metav1.Object
	}
	switch u.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Group: "apps", Kind: "Deployment"}:
		into = &appsv1.Deployment{}
	case schema.GroupKind{Group: "apps", Kind: "StatefulSet"}:
		into = &appsv1.StatefulSet{}
	case schema.GroupKind{Group: "apps", Kind: "DaemonSet"}:
		into = &appsv1.DaemonSet{}
	case schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}:
		into = &appsv1.ReplicaSet{}
	case schema.GroupKind{Group: "batch", Kind: "Job"}:
		into = &batchv1.Job{}
	case schema.GroupKind{Group: "batch", Kind: "CronJob"}:
		into = &batchv1.CronJob{}
	case schema.GroupKind{Kind: "ReplicationController"}:
		into = &corev1.ReplicationController{}
	case schema.GroupKind{Kind: "Pod"}:
		into = &corev1.Pod{}
	default:
		return u, nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, into); err != nil {
		return nil, fmt.Errorf("read the %s: %w", u.GetKind(), err)
	}
	return into, trim.Object(into, nil)
}
