package apply

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/compiler/emit"
	"github.com/kubectl-sched/kubectl-sched/internal/cluster"
	"github.com/kubectl-sched/kubectl-sched/internal/workload/ownership"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// wantedObject is an object of our making that the set is to have.
type wantedObject struct {
	// object is what it says, without the marks of a set.
	object  *unstructured.Unstructured
	origins []compiler.Origin
}

func (w wantedObject) kind() schema.GroupVersionKind { return w.object.GroupVersionKind() }

// at puts the line of the policy that asks for the object into a finding.
func (w wantedObject) at(f diag.Finding) *diag.Finding {
	if len(w.origins) > 0 {
		f.Policy, f.Range = w.origins[0].Policy, w.origins[0].Range
	}
	return &f
}

func objectsOf(plan *compiler.Plan) ([]wantedObject, error) {
	wanted := make([]wantedObject, len(plan.Objects))
	for i, o := range plan.Objects {
		object, err := emit.Unstructured(o)
		if err != nil {
			return nil, err
		}
		wanted[i] = wantedObject{&unstructured.Unstructured{Object: plain(object).(map[string]any)}, o.Origins}
	}
	return wanted, nil
}

// examineObjects compares the objects that the set is to have with those in the
// cluster. What somebody else made is never touched; what the set has made and
// no longer wants is deleted, if the run prunes.
func (a *Applier) examineObjects(ctx context.Context, in *intent, cs *ChangeSet) (diag.Findings, error) {
	var findings diag.Findings
	for _, gk := range objectGroupKinds(in) {
		wanted := slices.DeleteFunc(slices.Clone(in.objects), func(w wantedObject) bool { return w.kind().GroupKind() != gk })
		mapping, err := a.Client.Resource(gk, "")
		if meta.IsNoMatchError(err) {
			if len(wanted) > 0 {
				findings = append(findings, notServed(wanted[0]))
			}
			continue
		}
		if err != nil {
			return findings, fmt.Errorf("look up %s: %w", gk, err)
		}
		ours, err := a.members(ctx, mapping, in.state.Set)
		if apierrors.IsForbidden(err) {
			findings = append(findings, unlisted(mapping, wanted, err)...)
			continue
		}
		if err != nil {
			return findings, err
		}
		for _, w := range wanted {
			change, fs, err := a.compareObject(ctx, in.state.Set, mapping, w, ours)
			findings = append(findings, fs...)
			if err != nil {
				return findings, err
			}
			if change.Action != Refuse {
				cs.Objects = append(cs.Objects, change)
			}
			delete(ours, objectName(w.object))
		}
		for _, name := range slices.Sorted(maps.Keys(ours)) {
			change := changeOf(ours[name], Delete)
			change.Before, change.mapping = ours[name].Object, mapping
			if !in.prune {
				change.Action, change.After = Keep, change.Before
			}
			cs.Objects = append(cs.Objects, change)
		}
	}
	slices.SortStableFunc(cs.Objects, writeOrder)
	return findings, nil
}

// objectGroupKinds returns the kinds that the set has or is to have objects of,
// in the order in which they are written.
func objectGroupKinds(in *intent) []schema.GroupKind {
	var kinds []schema.GroupKind
	for _, w := range in.objects {
		kinds = append(kinds, w.kind().GroupKind())
	}
	kinds = append(kinds, in.state.groupKinds()...)
	slices.SortFunc(kinds, func(a, b schema.GroupKind) int {
		if c := kindOrder(a) - kindOrder(b); c != 0 {
			return c
		}
		return strings.Compare(a.String(), b.String())
	})
	return slices.Compact(kinds)
}

// members returns the set's own objects of a kind, by objectName.
func (a *Applier) members(ctx context.Context, mapping *meta.RESTMapping, set Set) (map[string]*unstructured.Unstructured, error) {
	list, err := a.Client.Interface(mapping, metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: applySetPartOf + "=" + set.ApplySetID()})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", mapping.Resource.Resource, err)
	}
	members := make(map[string]*unstructured.Unstructured, len(list.Items))
	for i := range list.Items {
		members[objectName(&list.Items[i])] = &list.Items[i]
	}
	return members, nil
}

// unlisted are the findings on objects whose kind may not be listed.
func unlisted(mapping *meta.RESTMapping, wanted []wantedObject, err error) diag.Findings {
	f := diag.Finding{
		Rule: "apply/no-permission", Severity: diag.Error, Subject: mapping.Resource.GroupResource().String(),
		Message: fmt.Sprintf("you may not list them, and the set has or is to have some: %s", cluster.Describe(err)),
	}
	if len(wanted) == 0 {
		return diag.Findings{f}
	}
	var findings diag.Findings
	for _, w := range wanted {
		f.Subject = objectRef(w.object)
		f.Message = fmt.Sprintf("you may not list objects of its kind: %s", cluster.Describe(err))
		findings = append(findings, *w.at(f))
	}
	return findings
}

// objectName tells the objects of one kind apart.
func objectName(u *unstructured.Unstructured) string { return u.GetNamespace() + "/" + u.GetName() }

// compareObject says what has to be done for one wanted object.
func (a *Applier) compareObject(ctx context.Context, set Set, mapping *meta.RESTMapping, w wantedObject, ours map[string]*unstructured.Unstructured) (ObjectChange, diag.Findings, error) {
	desired := labelledObject(set, w.object)
	change := changeOf(desired, Create)
	change.Origins, change.After, change.mapping, change.desired = w.origins, desired.Object, mapping, desired
	live := ours[objectName(w.object)]
	if live == nil {
		stranger, err := a.Client.Interface(mapping, desired.GetNamespace()).Get(ctx, desired.GetName(), metav1.GetOptions{})
		switch {
		case err == nil:
			change.Action = Refuse
			return change, diag.Findings{*w.at(strangers(desired, stranger))}, nil
		case !apierrors.IsNotFound(err):
			fs, err := refusal(change.Ref(), err)
			return change, fs, err
		}
	} else {
		change.Before = live.Object
		change.Action = Update
		if finding := replacement(live, desired); finding != nil {
			// What cannot be changed cannot be tried either.
			change.Action = Replace
			return change, diag.Findings{*w.at(*finding)}, nil
		}
	}
	if a.ClientOnly {
		if live != nil && sameObject(live.Object, desired.Object) {
			change.Action = Keep
		}
		return change, nil, nil
	}
	result, err := a.putObject(ctx, &change, true)
	if err != nil {
		fs, err := refusal(change.Ref(), err)
		for i := range fs {
			fs[i] = *w.at(fs[i])
		}
		return change, fs, err
	}
	change.After = result.Object
	if live != nil && len(bodyDifference(live.Object, result.Object)) == 0 && sameMarks(live, result) {
		change.Action = Keep
	}
	return change, nil, nil
}

// sameObject reports whether the live object says all that is wanted.
func sameObject(live, wanted map[string]any) bool {
	marks := func(o map[string]any) map[string]any {
		u := &unstructured.Unstructured{Object: o}
		return map[string]any{"labels": plain(u.GetLabels()), "annotations": plain(u.GetAnnotations())}
	}
	return covers(body(live), body(wanted), "") && covers(marks(live), marks(wanted), "")
}

func sameMarks(a, b *unstructured.Unstructured) bool {
	return maps.Equal(a.GetLabels(), b.GetLabels()) && maps.Equal(a.GetAnnotations(), b.GetAnnotations())
}

// strangers is the finding on an object of the wanted name that is not the set's.
func strangers(wanted, live *unstructured.Unstructured) diag.Finding {
	if live.GetKind() == priorityClass {
		return strangersClass(wanted, live)
	}
	f := diag.Finding{
		Rule: "apply/object-exists", Severity: diag.Error, Subject: objectRef(live),
		Message: "it was made by somebody else, and the set would have to own it",
		Fix:     &diag.Fix{Message: "delete it, or give it another name, if nothing needs it"},
	}
	if label, ok := live.GetLabels()[ownership.SetLabel]; ok {
		other := setOfLabel(label)
		f.Message = fmt.Sprintf("it belongs to set %q in namespace %q, and only one set can have it", other.Name, other.Namespace)
		f.Fix.Message = fmt.Sprintf("apply these policies together with those of that set, or take it out first (kubectl sched delete --set %s)", other.Name)
	}
	return f
}

// notServed is the finding on a kind that the API server does not know.
func notServed(w wantedObject) diag.Finding {
	gvk := w.kind()
	f := diag.Finding{
		Rule: "apply/not-served", Severity: diag.Error, Subject: objectRef(w.object),
		Message: fmt.Sprintf("the API server does not serve %s of %s", gvk.Kind, gvk.GroupVersion()),
	}
	if since := servedSince(gvk.GroupKind()); since != "" {
		f.Message += fmt.Sprintf("; that needs Kubernetes %s or later", since)
	}
	if gvk.Kind == mutatingPolicy || gvk.Kind == mutatingBinding {
		f.Fix = &diag.Fix{Message: "until the cluster is upgraded, use surface \"render\" (kubectl sched compile) or \"live\""}
	}
	return *w.at(f)
}

// labelledObject returns the object as a member of the set.
func labelledObject(set Set, object *unstructured.Unstructured) *unstructured.Unstructured {
	object = object.DeepCopy()
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[ownership.SetLabel] = set.Label()
	labels[applySetPartOf] = set.ApplySetID()
	object.SetLabels(labels)
	return object
}

// changeOf begins the change of an object.
func changeOf(u *unstructured.Unstructured, action Action) ObjectChange {
	return ObjectChange{Kind: u.GroupVersionKind(), Namespace: u.GetNamespace(), Name: u.GetName(), Action: action}
}

// objectRef names an object as ObjectChange.Ref does.
func objectRef(u *unstructured.Unstructured) string { return changeOf(u, Keep).Ref() }
