package capture

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-sched/kubectl-sched/internal/cluster/snapshot"
	"github.com/kubectl-sched/kubectl-sched/internal/cluster/trim"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// pageSize is how many objects one request returns.
const pageSize = 500

// lister asks for one page.
type lister func(context.Context, metav1.ListOptions) (runtime.Object, error)

// read adds all objects that the lister returns to the kind's list. Where the API
// server has forgotten the moment that the first page was of, it goes on with the
// present one; where it cannot, it begins again, once.
func (c *capturer) read(ctx context.Context, k *snapshot.Kind, what string, list lister) error {
	var objects []snapshot.Object
	at := map[string]int{} // of objects by name, once two moments are mixed
	var seen int64
	o := metav1.ListOptions{Limit: pageSize}
	for restarted := false; ; {
		page, err := list(ctx, o)
		if apierrors.IsResourceExpired(err) && o.Continue != "" {
			o.Continue = laterToken(err)
			switch {
			case o.Continue != "":
				for i, object := range objects {
					at[object.GetNamespace()+"/"+object.GetName()] = i
				}
			case restarted:
				return err
			default:
				restarted, objects, seen = true, nil, 0
				clear(at)
			}
			continue
		}
		if err != nil {
			return err
		}
		err = meta.EachListItem(page, func(item runtime.Object) error {
			seen++
			object, err := c.keepObject(k, item)
			if object == nil || err != nil {
				return err
			}
			if i, ok := at[object.GetNamespace()+"/"+object.GetName()]; ok {
				objects[i] = object
				return nil
			}
			objects = append(objects, object)
			return nil
		})
		if err != nil {
			return err
		}
		m, err := meta.ListAccessor(page)
		if err != nil {
			return err
		}
		progress := Progress{What: what, Read: seen}
		if left := m.GetRemainingItemCount(); left != nil {
			progress.Left = *left
		}
		c.o.Progress(progress)
		if o.Continue = m.GetContinue(); o.Continue == "" {
			break
		}
	}
	for _, object := range objects {
		k.Add(c.s, object)
	}
	return nil
}

// laterToken returns the token with which a list goes on at the present moment; the
// API server sends it with the error that says that the first moment is gone.
func laterToken(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().ListMeta.Continue
	}
	return ""
}

// keepObject returns what is kept of an item of a page: nil for nothing. It is a
// copy, so that the page can go.
func (c *capturer) keepObject(k *snapshot.Kind, item runtime.Object) (snapshot.Object, error) {
	object, ok := item.(snapshot.Object)
	if !ok {
		return nil, fmt.Errorf("the API server sent a %T for %s", item, k.Name)
	}
	if ended(object) {
		return nil, nil
	}
	kept, err := k.Trim(object, c.o.Kinds, c.keep)
	var findings diag.Findings
	switch {
	case errors.As(err, &findings): // a workload that its own controller cannot read either
		for _, f := range findings {
			f.Severity = diag.Warning
			f.Message += "; it is not in the snapshot"
			c.findings = append(c.findings, f)
		}
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("%s/%s: %w", object.GetNamespace(), object.GetName(), err)
	}
	if !k.Typed {
		return kept, nil
	}
	own := k.New()
	reflect.ValueOf(own).Elem().Set(reflect.ValueOf(kept).Elem())
	return own, nil
}

// ended reports whether the object has no part in anything any more: a pod that
// ended and that something made, a Job that is over, an old revision of a Deployment
// without pods.
func ended(o snapshot.Object) bool {
	switch o := o.(type) {
	case *corev1.Pod:
		return trim.Finished(o)
	case *batchv1.Job:
		for _, c := range o.Status.Conditions {
			if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
				return true
			}
		}
	case *appsv1.ReplicaSet:
		return o.Status.Replicas == 0 && o.Spec.Replicas != nil && *o.Spec.Replicas == 0 && metav1.GetControllerOfNoCopy(o) != nil
	}
	return false
}
