package apply

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// writeObject carries out one change of an object of our making.
func (a *Applier) writeObject(ctx context.Context, c *ObjectChange) error {
	if c.Action == Delete || c.Action == Replace {
		uid := (&unstructured.Unstructured{Object: c.Before}).GetUID()
		err := a.Client.Interface(c.mapping, c.Namespace).Delete(ctx, c.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete %s: %w", c.Ref(), err)
		}
	}
	if c.Action == Delete || c.Action == Keep {
		return nil
	}
	if _, err := a.putObject(ctx, c, false); err != nil {
		return fmt.Errorf("write %s: %w", c.Ref(), err)
	}
	return nil
}

// putObject makes the object what it is to be, by server-side apply. It is ours
// as a whole, so taking a field back from others is no conflict; and a field
// that others have added, which server-side apply leaves alone, goes.
func (a *Applier) putObject(ctx context.Context, c *ObjectChange, dryRun bool) (*unstructured.Unstructured, error) {
	resource := a.Client.Interface(c.mapping, c.Namespace)
	object := c.desired.DeepCopy()
	if c.Action == Update {
		// Should it be gone, another one must not take its place unseen.
		object.SetUID((&unstructured.Unstructured{Object: c.Before}).GetUID())
	}
	result, err := resource.Apply(ctx, c.Name, object, metav1.ApplyOptions{FieldManager: a.manager(), Force: true, DryRun: dryRunOption(dryRun)})
	if err != nil || c.Action != Update || len(addedByOthers(result, a.manager())) == 0 {
		return result, err
	}
	c.overwrite = true
	whole := c.desired.DeepCopy()
	whole.SetUID(result.GetUID())
	whole.SetResourceVersion(result.GetResourceVersion())
	whole.SetLabels(merged(result.GetLabels(), whole.GetLabels()))
	whole.SetAnnotations(merged(result.GetAnnotations(), whole.GetAnnotations()))
	return resource.Update(ctx, whole, metav1.UpdateOptions{FieldManager: a.manager(), DryRun: dryRunOption(dryRun)})
}

func merged(below, above map[string]string) map[string]string {
	m := maps.Clone(below)
	if m == nil {
		return above
	}
	maps.Copy(m, above)
	return m
}

// addedByOthers returns who, besides us, has put something into an object of our
// making, outside of its metadata and status; sorted.
func addedByOthers(u *unstructured.Unstructured, manager string) []string {
	ours, theirs := fieldpath.NewSet(), map[string]*fieldpath.Set{}
	for _, entry := range u.GetManagedFields() {
		if entry.Subresource != "" || entry.FieldsV1 == nil {
			continue
		}
		set := &fieldpath.Set{}
		if err := set.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
			continue
		}
		if entry.Manager == manager {
			ours = ours.Union(set)
			continue
		}
		if known := theirs[entry.Manager]; known != nil {
			set = set.Union(known)
		}
		theirs[entry.Manager] = set
	}
	var managers []string
	for manager, set := range theirs {
		added := false
		set.Difference(ours).Leaves().Iterate(func(p fieldpath.Path) {
			top := p[0].FieldName
			added = added || top != nil && *top != "metadata" && *top != "status"
		})
		if added {
			managers = append(managers, manager)
		}
	}
	slices.Sort(managers)
	return managers
}

// recorded is what of the object has to be known to make it again: what it says,
// without what a server writes.
func (c *ObjectChange) recorded() map[string]any {
	object := c.After
	if c.desired != nil {
		object = c.desired.Object
	}
	u := &unstructured.Unstructured{Object: maps.Clone(object)}
	metadata := map[string]any{"name": c.Name}
	if c.Namespace != "" {
		metadata["namespace"] = c.Namespace
	}
	labels, annotations := u.GetLabels(), u.GetAnnotations()
	u.Object["metadata"] = metadata
	u.SetLabels(labels)
	u.SetAnnotations(annotations)
	delete(u.Object, "status")
	return u.Object
}
