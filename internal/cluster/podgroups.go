package cluster

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
)

// podGroupForms are the kinds of PodGroup, the best first, and where each says how
// many members it needs.
var podGroupForms = []struct {
	form    capability.PodGroupForm
	kind    schema.GroupVersionKind
	members []string
}{
	{capability.PodGroupAPI, schema.GroupVersionKind{Group: "scheduling.k8s.io", Version: "v1beta1", Kind: "PodGroup"}, []string{"spec", "schedulingPolicy", "gang", "minCount"}},
	{capability.PodGroupCRD, schema.GroupVersionKind{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Kind: "PodGroup"}, []string{"spec", "minMember"}},
}

// podGroups returns the best form in which the cluster knows gangs, and how many
// members each group in that form needs, by "namespace/name".
func (c *Client) podGroups(ctx context.Context) (capability.PodGroupForm, map[string]int32, error) {
	for _, f := range podGroupForms {
		mapping, err := c.Resource(f.kind.GroupKind(), f.kind.Version)
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return "", nil, err
		}
		if f.form == capability.PodGroupAPI {
			kept, err := c.KeepsGroups(ctx)
			if err != nil {
				return "", nil, err
			}
			if !kept {
				continue
			}
		}
		groups := map[string]int32{}
		err = eachPaged(ctx, c.Interface(mapping, "").List, func(o runtime.Object) error {
			u := o.(*unstructured.Unstructured)
			if n, found, err := unstructured.NestedInt64(u.Object, f.members...); found && err == nil {
				groups[u.GetNamespace()+"/"+u.GetName()] = int32(n)
			}
			return nil
		})
		if apierrors.IsForbidden(err) {
			return f.form, nil, nil // What the groups need is then not checked.
		}
		return f.form, groups, err
	}
	return capability.PodGroupLabels, map[string]int32{}, nil
}

// KeepsGroups reports whether the API server keeps spec.schedulingGroup of pods,
// which it drops without a word where its feature gate GenericWorkload is off. It
// is told by a pod that is created as a dry run. Who may not do that is taken at
// the word of what is served.
func (c *Client) KeepsGroups(ctx context.Context) (bool, error) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "kubectl-sched-probe-"},
		Spec: corev1.PodSpec{
			SchedulingGroup: &corev1.PodSchedulingGroup{PodGroupName: new("kubectl-sched-probe")},
			Containers:      []corev1.Container{{Name: "probe", Image: "registry.k8s.io/pause:3.10"}},
		},
	}
	made, err := c.Kube.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	switch {
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsNotFound(err):
		return true, nil
	case err != nil:
		return false, err
	}
	return made.Spec.SchedulingGroup != nil, nil
}
