package cluster

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/internal/workload/ownership"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// Scope says which workloads to read.
type Scope struct {
	// Namespaces are the namespaces to read; empty for all.
	Namespaces []string
	// Kinds is the table of kinds; nil for the built-in one.
	Kinds *workload.Kinds
	// Records are what the state of a set says is ours, by UID: it stands in
	// for an annotation that somebody stripped, so that our fields are not
	// taken for the user's own. May be nil.
	Records map[types.UID]*ownership.Record
}

// Workloads reads every top-level workload in the scope, of all kinds in the
// table that the cluster serves, sorted by namespace, kind and name. Objects
// that another known workload controls (a Deployment's ReplicaSets, a Job's
// pods) are left out: what holds for them is said at their owner. Pods that
// have come to their end are left out too.
//
// A kind that may not be listed is a Warning; a cluster that does not answer is
// an Error.
func (c *Client) Workloads(ctx context.Context, scope Scope) ([]*workload.Workload, diag.Findings) {
	kinds := scope.Kinds
	var findings diag.Findings
	if kinds == nil {
		kinds, findings = workload.NewKinds(nil)
	}
	namespaces := scope.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}

	var found []*workload.Workload
	denied := unread{consequences: []string{"none of them is looked at"}}
	for _, gk := range kinds.All() {
		mapping, err := c.Resource(schema.GroupKind(gk), "")
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return nil, append(findings, unreadable("kinds", "no workload can be read", err))
		}
		for _, namespace := range namespaces {
			err := eachPaged(ctx, c.Interface(mapping, namespace).List, func(o runtime.Object) error {
				u, ok := o.(*unstructured.Unstructured)
				if !ok || kinds.Controls(u) || finished(u) {
					return nil
				}
				w, fs := c.decode(u, kinds, scope.Records)
				findings = append(findings, fs...)
				if w != nil {
					found = append(found, w)
				}
				return nil
			})
			what := mapping.Resource.GroupResource().String()
			if namespace != "" {
				what += " in namespace " + namespace
			}
			switch {
			case apierrors.IsForbidden(err):
				denied.kinds = append(denied.kinds, what)
			case err != nil:
				findings = append(findings, unreadable(what, "none of them is looked at", err))
			}
		}
	}
	slices.SortFunc(found, func(a, b *workload.Workload) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Name, b.Name))
	})
	return found, append(findings, denied.finding()...)
}

// Workload returns the workload in one live object. Of a kind that is not in the
// table it has no templates; what our record says is ours in it can be taken out
// all the same.
func (c *Client) Workload(u *unstructured.Unstructured, kinds *workload.Kinds, records map[types.UID]*ownership.Record) (*workload.Workload, diag.Findings) {
	w, findings := c.decode(u, kinds, records)
	if w != nil || findings.HasErrors() {
		return w, findings
	}
	object, remembered := believed(u, records)
	gvk := u.GroupVersionKind()
	w = &workload.Workload{
		Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Namespace: u.GetNamespace(), Name: u.GetName(),
		Labels: object.GetLabels(), Annotations: object.GetAnnotations(), UID: string(u.GetUID()), ResourceVersion: u.GetResourceVersion(),
		Object: object.Object, Remembered: remembered, Source: workload.Source{Live: true},
	}
	text, ok := w.Annotations[ownership.Annotation]
	if !ok {
		return w, findings
	}
	record, err := ownership.Parse(text)
	if err != nil {
		return nil, append(findings, diag.Finding{Rule: "workload/damaged-record", Severity: diag.Error, Subject: w.Ref(), Message: err.Error()})
	}
	w.Record = record
	return w, findings
}

func (c *Client) decode(u *unstructured.Unstructured, kinds *workload.Kinds, records map[types.UID]*ownership.Record) (*workload.Workload, diag.Findings) {
	object, remembered := believed(u, records)
	w, findings, ok := workload.FromObject(object.Object, workload.Options{Kinds: kinds}, workload.Source{Live: true})
	if !ok || w == nil {
		return nil, findings
	}
	w.Remembered = remembered
	w.UID, w.ResourceVersion = string(u.GetUID()), u.GetResourceVersion()
	if owner := metav1.GetControllerOf(u); owner != nil {
		w.Controller = owner.Kind + "/" + owner.Name
	}
	w.Source.Managers = templateManagers(w)
	return w, findings
}

// believed returns the object with the annotation that the state of the set
// remembers where the object has none (and true), and without an annotation that
// was copied from another object.
func believed(u *unstructured.Unstructured, records map[types.UID]*ownership.Record) (*unstructured.Unstructured, bool) {
	annotations := u.GetAnnotations()
	if text, ok := annotations[ownership.Annotation]; ok {
		record, err := ownership.Parse(text)
		if err != nil || record == nil || record.UID == "" || record.UID == string(u.GetUID()) {
			return u, false
		}
		annotations = maps.Clone(annotations)
		delete(annotations, ownership.Annotation)
		return withAnnotations(u, annotations), false
	}
	record := records[u.GetUID()]
	if record == nil || !leaves(record, u.Object) {
		return u, false
	}
	text, err := record.Encode()
	if err != nil {
		return u, false
	}
	if annotations = maps.Clone(annotations); annotations == nil {
		annotations = map[string]string{}
	}
	annotations[ownership.Annotation] = text
	return withAnnotations(u, annotations), true
}

// leaves reports whether anything that the record says we wrote is in the
// object. Otherwise the run that the record is of never came to the object, or
// nothing of it is left.
func leaves(record *ownership.Record, object map[string]any) bool {
	return slices.ContainsFunc(record.Fields, func(f ownership.Field) bool {
		value, ok := at(object, f.Path)
		if !ok {
			return false
		}
		now, errNow := json.Marshal(value)
		wrote, errWrote := json.Marshal(f.Wrote)
		return errNow == nil && errWrote == nil && bytes.Equal(now, wrote)
	})
}

// at returns the value at the JSON pointer.
func at(value any, pointer string) (any, bool) {
	for step := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		step = strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
		switch node := value.(type) {
		case map[string]any:
			value = node[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(node) {
				return nil, false
			}
			value = node[i]
		default:
			return nil, false
		}
	}
	return value, value != nil
}

// withAnnotations returns a copy with other annotations that shares the rest.
func withAnnotations(u *unstructured.Unstructured, annotations map[string]string) *unstructured.Unstructured {
	object := maps.Clone(u.Object)
	metadata, _ := object["metadata"].(map[string]any)
	object["metadata"] = maps.Clone(metadata)
	changed := &unstructured.Unstructured{Object: object}
	changed.SetAnnotations(annotations)
	return changed
}

// finished reports whether the object is a pod that will not run again. Mirror
// pods are the kubelet's own and count as such too.
func finished(u *unstructured.Unstructured) bool {
	if u.GroupVersionKind().GroupKind() != (schema.GroupKind{Kind: "Pod"}) {
		return false
	}
	phase, _, _ := unstructured.NestedString(u.Object, "status", "phase")
	_, mirror := u.GetAnnotations()["kubernetes.io/config.mirror"]
	return mirror || phase == "Succeeded" || phase == "Failed"
}
