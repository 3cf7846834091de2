package cluster

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// PodSpec is a pod spec in the cluster that pods have or may still be made from.
type PodSpec struct {
	// Ref names the object that it is in: "Pod shop/web-0".
	Ref string
	// Owners are the UIDs of the object and of those that control it, the nearest
	// first.
	Owners []types.UID
	Spec   *corev1.PodSpec
}

// PodSpecs calls visit with every pod spec in the namespaces (nil for all) that is
// in force below the workloads: those of pods that have not come to their end, of
// ReplicaSets that have or want pods, of Jobs that are not finished, and of the
// revisions that a StatefulSet makes its pods from while a rollout is under way. A
// workload's own template may be another one by now.
func (c *Client) PodSpecs(ctx context.Context, namespaces []string, visit func(PodSpec)) error {
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	for _, namespace := range namespaces {
		if err := c.podSpecs(ctx, namespace, visit); err != nil {
			return err
		}
	}
	return nil
}

func (c *Client) podSpecs(ctx context.Context, namespace string, visit func(PodSpec)) error {
	parents := map[types.UID]types.UID{}
	see := func(kind string, o metav1.Object, spec *corev1.PodSpec) {
		s := PodSpec{Ref: kind + " " + o.GetNamespace() + "/" + o.GetName(), Owners: []types.UID{o.GetUID()}, Spec: spec}
		for owner := controllerUID(o); owner != "" && len(s.Owners) < maxOwnerDepth; owner = parents[owner] {
			s.Owners = append(s.Owners, owner)
		}
		visit(s)
	}
	steps := []func() error{
		func() error {
			return eachPaged(ctx, c.Kube.AppsV1().ReplicaSets(namespace).List, func(o runtime.Object) error {
				rs := o.(*appsv1.ReplicaSet)
				parents[rs.UID] = controllerUID(rs)
				if rs.Status.Replicas > 0 || rs.Spec.Replicas == nil || *rs.Spec.Replicas > 0 {
					see("ReplicaSet", rs, &rs.Spec.Template.Spec)
				}
				return nil
			})
		},
		func() error {
			return eachPaged(ctx, c.Kube.BatchV1().Jobs(namespace).List, func(o runtime.Object) error {
				job := o.(*batchv1.Job)
				parents[job.UID] = controllerUID(job)
				if !ended(job) {
					see("Job", job, &job.Spec.Template.Spec)
				}
				return nil
			})
		},
		func() error { return c.revisionSpecs(ctx, namespace, see) },
		func() error {
			list := func(ctx context.Context, o metav1.ListOptions) (*corev1.PodList, error) {
				o.FieldSelector = "status.phase!=Succeeded,status.phase!=Failed"
				return c.Kube.CoreV1().Pods(namespace).List(ctx, o)
			}
			return eachPaged(ctx, list, func(o runtime.Object) error {
				pod := o.(*corev1.Pod)
				see("Pod", pod, &pod.Spec)
				return nil
			})
		},
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// ended reports whether the Job makes no more pods.
func ended(job *batchv1.Job) bool {
	for _, c := range job.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return true
		}
	}
	return false
}

// revisionSpecs are the templates of the StatefulSets' current and updated
// revisions: below the partition of a rollout, and until it has come to a pod, the
// controller makes the pod from the former. (A DaemonSet's controller makes pods
// from the newest template alone.)
func (c *Client) revisionSpecs(ctx context.Context, namespace string, see func(string, metav1.Object, *corev1.PodSpec)) error {
	inForce := map[string]bool{}
	err := eachPaged(ctx, c.Kube.AppsV1().StatefulSets(namespace).List, func(o runtime.Object) error {
		set := o.(*appsv1.StatefulSet)
		inForce[set.Namespace+"/"+set.Status.CurrentRevision] = true
		inForce[set.Namespace+"/"+set.Status.UpdateRevision] = true
		return nil
	})
	if err != nil || len(inForce) == 0 {
		return err
	}
	return eachPaged(ctx, c.Kube.AppsV1().ControllerRevisions(namespace).List, func(o runtime.Object) error {
		revision := o.(*appsv1.ControllerRevision)
		if !inForce[revision.Namespace+"/"+revision.Name] {
			return nil
		}
		var data struct {
			Spec struct {
				Template corev1.PodTemplateSpec `json:"template"`
			} `json:"spec"`
		}
		if err := json.Unmarshal(revision.Data.Raw, &data); err != nil {
			return fmt.Errorf("ControllerRevision %s/%s: %w", revision.Namespace, revision.Name, err)
		}
		see("ControllerRevision", revision, &data.Spec.Template.Spec)
		return nil
	})
}
