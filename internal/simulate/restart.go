package simulate

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// restartedAt is the annotation by which kubectl rollout restart makes a pod template
// another one.
const restartedAt = "kubectl.kubernetes.io/restartedAt"

// Restart rolls a workload out with its template as it is, as kubectl rollout restart
// does, under its own strategy.
type Restart struct{ Workload Ref }

func (r Restart) what() string { return fmt.Sprintf("restart %s", r.Workload) }

func (r Restart) take(ctx context.Context, w *World) error {
	o := w.byRef[r.Workload]
	if o == nil {
		return fmt.Errorf("there is no %s in the cluster to restart; %s", r.Workload, w.alike(r.Workload))
	}
	object, ok := o.object.(runtime.Object)
	if !ok {
		return fmt.Errorf("%s cannot be restarted: what its controller does is not known", r.Workload)
	}
	var template *corev1.PodTemplateSpec
	switch fresh := object.DeepCopyObject().(type) {
	case *appsv1.Deployment:
		object, template = fresh, &fresh.Spec.Template
	case *appsv1.StatefulSet:
		object, template = fresh, &fresh.Spec.Template
	case *appsv1.DaemonSet:
		object, template = fresh, &fresh.Spec.Template
	default:
		return fmt.Errorf("%s cannot be restarted: its controller replaces no pods", r.Workload)
	}
	w.restarts++
	if template.Annotations == nil {
		template.Annotations = map[string]string{}
	}
	template.Annotations[restartedAt] = w.now.Add(time.Duration(w.restarts) * time.Second).UTC().Format(time.RFC3339)
	return Rollout{Object: object}.take(ctx, w)
}
