package compiler

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kubectl-sched/kubectl-sched/compiler/admission"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy"
)

// Labels that the Job controller puts on its pods.
const (
	jobNameLabel       = "batch.kubernetes.io/job-name"
	controllerUIDLabel = "batch.kubernetes.io/controller-uid"
)

// subject is which pods a constraint counts, as the API says it.
type subject struct {
	selector *metav1.LabelSelector
	// matchLabelKeys narrow the selector to the pods that have the same values
	// as the one that is placed.
	matchLabelKeys []string
	// namespaces and namespaceSelector widen it beyond the pod's own namespace.
	namespaces        []string
	namespaceSelector *metav1.LabelSelector
}

// subjectProblem says why a subject cannot be said, and below which field of
// the intent.
type subjectProblem struct {
	rule, message string
	path          []string
}

func inexpressible(path []string, format string, args ...any) *subjectProblem {
	return &subjectProblem{rule: "compile/inexpressible", message: fmt.Sprintf(format, args...), path: path}
}

// counted returns the pods that the intent of the rule counts.
func (d *draft) counted(r *rule, s policy.Subject) (subject, *subjectProblem) {
	switch s.Kind {
	case policy.ByLabels:
		return d.subjectByLabels(s)
	case policy.AllSelected:
		return d.subjectSelected(r)
	default:
	}
	out, problem := d.subjectOwn()
	if problem == nil {
		if d.w.Kind != "Pod" || d.w.Group != "" {
			d.learn(func(k *admission.Known) { k.Selector = out.selector })
		}
		out.matchLabelKeys = slices.DeleteFunc(out.matchLabelKeys, func(k string) bool { return namesKey(out.selector, k) })
	}
	return out, problem
}

// namesKey reports whether the selector names the key: the API refuses a key in
// both the selector and matchLabelKeys.
func namesKey(s *metav1.LabelSelector, key string) bool {
	_, literal := s.MatchLabels[key]
	return literal || slices.ContainsFunc(s.MatchExpressions, func(e metav1.LabelSelectorRequirement) bool { return e.Key == key })
}

// subjectOwn selects the pods of the workload itself: by the object's own
// selector, or else by the labels that its controller puts on the pods, or else
// by the labels of the template.
func (d *draft) subjectOwn() (subject, *subjectProblem) {
	var out subject
	if d.t.RevisionLabel != "" && hasReplicaSets(d.w) && d.c.facts.supports(27) {
		out.matchLabelKeys = append(out.matchLabelKeys, d.t.RevisionLabel)
	}
	if sel := ownSelector(d.w.Selector); sel != nil && selects(sel, d.t.Labels) && !namesKey(sel, controllerUIDLabel) && !namesKey(sel, "controller-uid") {
		out.selector = sel
		return out, nil
	}
	if d.t.RunLabel != "" {
		return d.subjectRun()
	}
	for _, l := range []map[string]string{d.t.PodLabels, lasting(d.t.Labels)} {
		if len(l) > 0 {
			out.selector = &metav1.LabelSelector{MatchLabels: maps.Clone(l)}
			return out, nil
		}
	}
	return subject{}, &subjectProblem{
		rule: "compile/no-own-labels", path: []string{"of"},
		message: "the pod template has no labels by which its pods could be told from others; give it one, such as app",
	}
}

// subjectRun selects the pods of one run of a CronJob.
func (d *draft) subjectRun() (subject, *subjectProblem) {
	out := subject{matchLabelKeys: []string{d.t.RunLabel}}
	if l := lasting(d.t.Labels); len(l) > 0 {
		out.selector = &metav1.LabelSelector{MatchLabels: l}
		return out, nil
	}
	// A key must not be in both, so the run is named by its other label.
	other := jobNameLabel
	if d.t.RunLabel == jobNameLabel {
		other = controllerUIDLabel
	}
	out.selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: other, Operator: metav1.LabelSelectorOpExists}}}
	return out, nil
}

// lasting returns the labels without those that name a gang, which policies write
// and which therefore tell nobody which pods are meant.
func lasting(labels map[string]string) map[string]string {
	out := maps.Clone(labels)
	maps.DeleteFunc(out, func(k, _ string) bool { return workload.PlacementLabel(k) })
	return out
}

// hasReplicaSets reports whether a rollout makes the pods of a new revision
// beside those of the old one, in no order that the pods could be told by.
func hasReplicaSets(w *workload.Workload) bool {
	return w.Group != "apps" || w.Kind != "StatefulSet" && w.Kind != "DaemonSet"
}

func ownSelector(s *workload.Selector) *metav1.LabelSelector {
	if s == nil || len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		return nil
	}
	out := &metav1.LabelSelector{MatchLabels: maps.Clone(s.MatchLabels)}
	for _, e := range s.MatchExpressions {
		out.MatchExpressions = append(out.MatchExpressions, metav1.LabelSelectorRequirement{
			Key: e.Key, Operator: metav1.LabelSelectorOperator(e.Operator), Values: slices.Clone(e.Values),
		})
	}
	return out
}

// selects reports whether the selector matches the labels; one that the API
// would refuse matches nothing.
func selects(s *metav1.LabelSelector, l map[string]string) bool {
	sel, err := metav1.LabelSelectorAsSelector(s)
	return err == nil && sel.Matches(labels.Set(l))
}

func (d *draft) subjectByLabels(s policy.Subject) (subject, *subjectProblem) {
	sel, problem := podSelector(s.Labels, []string{"of", "labels"})
	if problem != nil {
		return subject{}, problem
	}
	out := subject{selector: sel}
	return out, d.resolveNamespaces(&out, s.Namespaces, []string{"of", "namespaces"})
}

// resolveNamespaces says in which namespaces pods are counted. None is the
// pod's own.
func (d *draft) resolveNamespaces(out *subject, names []string, path []string) *subjectProblem {
	if len(names) == 0 {
		return nil
	}
	if slices.Contains(names, "*") {
		out.namespaceSelector = everyNamespace(!slices.Contains(names, systemNamespace))
		return nil
	}
	found := map[string]bool{}
	for _, name := range names {
		if !isGlob(name) {
			found[name] = true
			continue
		}
		if !d.c.facts.NamespacesKnown {
			return inexpressible(path, "the API has no globs for namespaces, and the namespaces that %q would match are not known; list them, or compile with --with-cluster", name)
		}
		for _, known := range sortedKeys(d.c.facts.Namespaces) {
			if grantsNamespace([]pattern{{text: name, glob: true}}, known) {
				found[known] = true
			}
		}
	}
	if len(found) == 0 {
		return inexpressible(path, "no namespace matches %s; write one that exists", quoted(names))
	}
	if len(found) > 1 || !found[d.w.Namespace] {
		out.namespaces = sortedKeys(found)
	}
	return nil
}

// everyNamespace selects all namespaces, or all but kube-system.
func everyNamespace(butSystem bool) *metav1.LabelSelector {
	if !butSystem {
		return &metav1.LabelSelector{}
	}
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: []string{systemNamespace}},
	}}
}

// subjectSelected selects all pods that the policy selects, where a selector on
// pods can say that.
func (d *draft) subjectSelected(r *rule) (subject, *subjectProblem) {
	w := r.Workloads
	var beyond []string
	for field, set := range map[string]bool{
		"kinds": len(w.Kinds) > 0, "names": len(w.Names) > 0, "labels": len(w.Labels) > 0, "templates": len(w.Templates) > 0,
		"not": w.Not != nil,
	} {
		if set {
			beyond = append(beyond, field)
		}
	}
	slices.Sort(beyond)
	path := []string{"of"}
	if len(beyond) > 0 || w.Pods == nil || len(w.Pods.Labels) == 0 {
		why := "it selects by no pod labels"
		if len(beyond) > 0 {
			why = "it also selects by " + strings.Join(beyond, ", ")
		}
		return subject{}, inexpressible(path, "pods are counted by their labels alone, which cannot say all that this policy selects, because %s; write of: {labels: ...} with the labels of the pods that are meant", why)
	}
	sel, problem := podSelector(w.Pods.Labels, path)
	if problem != nil {
		return subject{}, problem
	}
	out := subject{selector: sel}
	switch {
	case len(w.NamespaceLabels) > 0 && len(w.Namespaces) > 0:
		return subject{}, inexpressible(path, "namespaces and namespaceLabels cannot both be said of the pods that count; write of: {labels: ..., namespaces: [...]}")
	case len(w.NamespaceLabels) > 0:
		if out.namespaceSelector, problem = podSelector(w.NamespaceLabels, path); problem != nil {
			return subject{}, problem
		}
		out.namespaceSelector.MatchExpressions = append(out.namespaceSelector.MatchExpressions, everyNamespace(true).MatchExpressions...)
	case len(w.Namespaces) == 0:
		out.namespaceSelector = everyNamespace(true)
	default:
		if problem := d.resolveNamespaces(&out, w.Namespaces, path); problem != nil {
			return subject{}, problem
		}
	}
	return out, nil
}

// podSelector returns the selector for labels that have any of the values.
func podSelector(want map[string]policy.Values, path []string) (*metav1.LabelSelector, *subjectProblem) {
	out := &metav1.LabelSelector{}
	for _, k := range sortedKeys(want) {
		values := want[k]
		switch {
		case slices.Contains(values, "*"):
			out.MatchExpressions = append(out.MatchExpressions, metav1.LabelSelectorRequirement{Key: k, Operator: metav1.LabelSelectorOpExists})
			continue
		case len(values) == 1 && !isGlob(values[0]):
			if out.MatchLabels == nil {
				out.MatchLabels = map[string]string{}
			}
			out.MatchLabels[k] = values[0]
			continue
		}
		for _, v := range values {
			if isGlob(v) {
				return nil, inexpressible(append(slices.Clone(path), k), "label selectors have no globs, so pods cannot be counted by %s: %q; list the values, or write \"*\" for any", k, v)
			}
		}
		list := slices.Compact(slices.Sorted(slices.Values(values)))
		out.MatchExpressions = append(out.MatchExpressions, metav1.LabelSelectorRequirement{Key: k, Operator: metav1.LabelSelectorOpIn, Values: list})
	}
	return out, nil
}

// canonicalSelector writes a selector so that two which say the same in other
// words come out alike.
func canonicalSelector(s *metav1.LabelSelector) string {
	if s == nil {
		return ""
	}
	return keyOf(CanonicalSelector(s).MatchExpressions)
}

// CanonicalSelector says all of a label selector by expressions, in order and each
// once, so that two which say the same are equal; nil stays nil.
func CanonicalSelector(s *metav1.LabelSelector) *metav1.LabelSelector {
	if s == nil {
		return nil
	}
	var parts []metav1.LabelSelectorRequirement
	for _, k := range sortedKeys(s.MatchLabels) {
		parts = append(parts, metav1.LabelSelectorRequirement{Key: k, Operator: metav1.LabelSelectorOpIn, Values: []string{s.MatchLabels[k]}})
	}
	for _, e := range s.MatchExpressions {
		e.Values = slices.Compact(slices.Sorted(slices.Values(e.Values)))
		parts = append(parts, e)
	}
	slices.SortFunc(parts, func(a, b metav1.LabelSelectorRequirement) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Operator, b.Operator), slices.Compare(a.Values, b.Values))
	})
	parts = slices.CompactFunc(parts, func(a, b metav1.LabelSelectorRequirement) bool {
		return a.Key == b.Key && a.Operator == b.Operator && slices.Equal(a.Values, b.Values)
	})
	return &metav1.LabelSelector{MatchExpressions: parts}
}

// describeSelector writes a selector for people.
func describeSelector(s *metav1.LabelSelector) string {
	if s == nil || len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		return "no labels"
	}
	return metav1.FormatLabelSelector(s)
}
