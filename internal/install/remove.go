package install

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-sched/kubectl-sched/internal/cluster"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/deploy"
)

type resourceInterface = dynamic.ResourceInterface

// kinds are those of what we install, in the order in which they are deleted: who
// uses something goes before it.
var kinds = []schema.GroupVersionKind{
	{Group: "apps", Version: "v1", Kind: "Deployment"},
	{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"},
	{Version: "v1", Kind: "Service"},
	{Version: "v1", Kind: "ConfigMap"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicyBinding"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicy"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"},
	{Version: "v1", Kind: "ServiceAccount"},
	{Version: "v1", Kind: "Namespace"},
}

// Prune deletes what an earlier installation left and the objects do not have. Old
// configurations stay as long as there is a ReplicaSet that a rollback could bring
// back with them.
func (w *Writer) Prune(ctx context.Context, objects []*unstructured.Unstructured) error {
	used, err := w.mounted(ctx)
	if err != nil {
		return err
	}
	return w.remove(ctx, func(u *unstructured.Unstructured) bool {
		return slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool {
			return o.GroupVersionKind().GroupKind() == u.GroupVersionKind().GroupKind() && o.GetNamespace() == u.GetNamespace() && o.GetName() == u.GetName()
		}) || u.GetKind() == "ConfigMap" && used[u.GetNamespace()+"/"+u.GetName()]
	})
}

// Remove deletes all that was installed. A namespace in which there is something
// else stays.
func (w *Writer) Remove(ctx context.Context) error {
	return w.remove(ctx, func(*unstructured.Unstructured) bool { return false })
}

// remove deletes our objects but those to keep.
func (w *Writer) remove(ctx context.Context, keep func(*unstructured.Unstructured) bool) error {
	for _, gvk := range kinds {
		resource, err := w.resource(gvk, metav1.NamespaceAll)
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return err
		}
		list, err := resource.List(ctx, metav1.ListOptions{LabelSelector: deploy.NameLabel + "=" + deploy.Name + ",app.kubernetes.io/part-of=kubectl-sched"})
		if err != nil {
			return fmt.Errorf("list objects of kind %s: %w", gvk.Kind, err)
		}
		for i := range list.Items {
			object := &list.Items[i]
			if keep(object) {
				continue
			}
			if object.GetDeletionTimestamp() != nil {
				continue // it is on its way
			}
			if gvk.Kind == "Namespace" {
				if others, err := w.others(ctx, object.GetName()); err != nil || others {
					if err != nil {
						return err
					}
					w.say(object, "left, because there is something else in it")
					continue
				}
			}
			if err := w.delete(ctx, gvk, object); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *Writer) delete(ctx context.Context, gvk schema.GroupVersionKind, object *unstructured.Unstructured) error {
	resource, err := w.resource(gvk, object.GetNamespace())
	if err != nil {
		return err
	}
	uid, foreground := object.GetUID(), metav1.DeletePropagationForeground
	options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &foreground}
	if w.DryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	if err := resource.Delete(ctx, object.GetName(), options); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete %s %s: %w", gvk.Kind, object.GetName(), err)
	}
	if gvk.Kind == "Deployment" && !w.DryRun {
		if err := gone(ctx, resource, object); err != nil {
			return err
		}
	}
	w.say(object, "deleted")
	return nil
}

// endLimit is how long the scheduler's pods may take to end.
const endLimit = 2 * time.Minute

// gone waits until the object is no longer there: the scheduler needs its account
// until it has let go of its lease.
func gone(ctx context.Context, resource resourceInterface, object *unstructured.Unstructured) error {
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, endLimit, true, func(ctx context.Context) (bool, error) {
		now, err := resource.Get(ctx, object.GetName(), metav1.GetOptions{})
		return apierrors.IsNotFound(err) || err == nil && now.GetUID() != object.GetUID(), nil
	})
	if err != nil {
		return fmt.Errorf("wait for %s %s to end: %w; run it again", object.GetKind(), object.GetName(), errors.Join(err, ctx.Err()))
	}
	return nil
}

// mounted returns the ConfigMaps, "namespace/name", that ReplicaSets of the
// scheduler mount.
func (w *Writer) mounted(ctx context.Context) (map[string]bool, error) {
	list, err := w.Client.Kube.AppsV1().ReplicaSets(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: deploy.NameLabel + "=" + deploy.Name})
	if err != nil {
		return nil, fmt.Errorf("list the scheduler's ReplicaSets: %w", err)
	}
	used := map[string]bool{}
	for _, rs := range list.Items {
		for _, v := range rs.Spec.Template.Spec.Volumes {
			if v.ConfigMap != nil {
				used[rs.Namespace+"/"+v.ConfigMap.Name] = true
			}
		}
	}
	return used, nil
}

// others reports whether there is something in the namespace that a namespace does
// not have by itself and that is not ours.
func (w *Writer) others(ctx context.Context, namespace string) (bool, error) {
	pods, err := w.Client.Kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: deploy.NameLabel + "!=" + deploy.Name})
	if err != nil {
		return false, fmt.Errorf("list the pods of namespace %s: %w", namespace, err)
	}
	workloads, findings := w.Client.Workloads(ctx, cluster.Scope{Namespaces: []string{namespace}})
	if findings.HasErrors() {
		return false, findings
	}
	maps, err := w.Client.Kube.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{LabelSelector: deploy.NameLabel + "!=" + deploy.Name})
	if err != nil {
		return false, fmt.Errorf("list the ConfigMaps of namespace %s: %w", namespace, err)
	}
	strangers := slices.ContainsFunc(maps.Items, func(m corev1.ConfigMap) bool { return m.Name != "kube-root-ca.crt" })
	for _, workload := range workloads {
		strangers = strangers || workload.Labels[deploy.NameLabel] != deploy.Name
	}
	return strangers || len(pods.Items) > 0, nil
}

// Recreate deletes the pods that have a controller to make them again.
func (w *Writer) Recreate(ctx context.Context, pods []PendingPod) error {
	for _, p := range pods {
		if p.Controller == "" {
			continue
		}
		options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &p.pod.UID}}
		if w.DryRun {
			options.DryRun = []string{metav1.DryRunAll}
		}
		if err := w.Client.Kube.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, options); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("delete pod %s/%s: %w", p.Namespace, p.Name, err)
		}
		if w.Hear != nil {
			w.Hear(Written{Object: fmt.Sprintf("pod %s/%s", p.Namespace, p.Name), Action: "deleted, for " + p.Controller + " to make it again"})
		}
	}
	return nil
}
