package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kubectl-sched/kubectl-sched/compiler/admission"
	"github.com/kubectl-sched/kubectl-sched/compiler/guard"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// An API server hears of policies by watching them and takes up what it heard
// once a second, so that a policy is in force a second or two after it was
// written. Until then pods are judged by what was there before.

// inForceTimeout is far longer than it ever takes: what is not in force then
// never will be.
const inForceTimeout = time.Minute

// WaitInForce waits until the API server acts by the admission policies that the
// run wrote or deleted. It is found out with pods that are created as dry runs,
// so it is that one API server which has been asked; others of the same cluster
// follow within seconds. What the API server's type checker says of the policies
// is among the findings. A policy that is not in force in time is an Error; one
// that cannot be tried is an Info.
func (a *Applier) WaitInForce(ctx context.Context, cs *ChangeSet, timeout time.Duration) (diag.Findings, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, min(timeout, inForceTimeout), errNotInTime)
	defer cancel()
	var findings diag.Findings
	for i := range cs.Objects {
		o := &cs.Objects[i]
		if o.Kind.Kind != validating || o.Action != Create && o.Action != Update {
			continue
		}
		fs, err := a.typeChecked(ctx, o)
		findings = append(findings, fs...)
		if err != nil {
			return findings, err
		}
	}
	for _, asked := range cs.answering() {
		fs, err := a.untilInForce(ctx, cs, asked)
		findings = append(findings, fs...)
		if err != nil {
			return findings, err
		}
	}
	return findings, nil
}

var errNotInTime = errors.New("not in time")

// late reports whether the wait itself, not its caller, has ended.
func late(ctx context.Context) bool { return errors.Is(context.Cause(ctx), errNotInTime) }

// placePolicy returns the change of the policy that places pods, or nil.
func (c *ChangeSet) placePolicy() *ObjectChange {
	i := slices.IndexFunc(c.Objects, func(o ObjectChange) bool { return c.places(&o) })
	if i < 0 {
		return nil
	}
	return &c.Objects[i]
}

// places reports whether the object is the policy that places pods.
func (c *ChangeSet) places(o *ObjectChange) bool {
	return o.Kind.Kind == mutatingPolicy && o.Name == admission.Name(c.Set.Label(), admission.RolePlace)
}

// askedPolicy is a change of a policy that answers probes, or of its binding.
type askedPolicy struct {
	*ObjectChange
	// binding is the change of its binding; nil where none is known.
	binding *ObjectChange
	// ask creates a pod as a dry run in the namespace, and returns the content of
	// the policy that saw it; empty if none did.
	ask func(a *Applier, ctx context.Context, namespace string) (string, error)
	// silent says that it does not answer once the run is over: a guard that notes
	// in the audit log alone.
	silent bool
}

// answering returns the policies that answer probes and change: the one that
// places pods, and those that guard pools.
func (c *ChangeSet) answering() []askedPolicy {
	var asked []askedPolicy
	for i := range c.Objects {
		o := &c.Objects[i]
		p := askedPolicy{ObjectChange: o}
		switch {
		case c.places(o):
			p.binding = c.binding(mutatingBinding, o.Name)
			p.ask = func(a *Applier, ctx context.Context, namespace string) (string, error) {
				return a.probe(ctx, c.Set, namespace)
			}
		case o.Kind.Kind == validating && o.label(guard.Label) != "" && o.annotation(admission.ContentAnnotation) != "":
			p.binding = c.binding(validatingBind, o.Name)
			p.ask = func(a *Applier, ctx context.Context, namespace string) (string, error) {
				return a.probeGuard(ctx, o.Name, namespace)
			}
			p.silent = p.binding == nil || !speaks(p.binding.remaining())
		default:
			continue
		}
		if o.Action != Keep || p.binding != nil && p.binding.Action != Keep {
			asked = append(asked, p)
		}
	}
	return asked
}

// label and annotation are what the object says after the run, or said before it.
func (c *ObjectChange) label(key string) string      { return c.either().GetLabels()[key] }
func (c *ObjectChange) annotation(key string) string { return c.either().GetAnnotations()[key] }

func (c *ObjectChange) either() *unstructured.Unstructured {
	if after := c.remaining(); after != nil {
		return &unstructured.Unstructured{Object: after}
	}
	return &unstructured.Unstructured{Object: c.Before}
}

// speaks reports whether the binding of a guard tells those whom it finds
// something about.
func speaks(binding map[string]any) bool {
	actions, _, err := unstructured.NestedStringSlice(binding, "spec", "validationActions")
	return err == nil && slices.ContainsFunc(actions, func(action string) bool { return action != string(admissionregistrationv1.Audit) })
}

// binding returns the change of the binding of a policy, or nil.
func (c *ChangeSet) binding(kind, policy string) *ObjectChange {
	i := slices.IndexFunc(c.Objects, func(o ObjectChange) bool { return o.Kind.Kind == kind && o.Name == policy })
	if i < 0 {
		return nil
	}
	return &c.Objects[i]
}

// typeChecked waits for what the API server's type checker says of a policy.
func (a *Applier) typeChecked(ctx context.Context, o *ObjectChange) (diag.Findings, error) {
	var live *unstructured.Unstructured
	err := wait.PollUntilContextCancel(ctx, pollEvery, true, func(ctx context.Context) (bool, error) {
		var err error
		if live, err = a.Client.Interface(o.mapping, "").Get(ctx, o.Name, metav1.GetOptions{}); err != nil {
			return false, err
		}
		seen, _ := valueAt(live.Object, "/status/observedGeneration")
		_, checked := valueAt(live.Object, "/status/typeChecking")
		return checked && same(seen, live.GetGeneration()), nil
	})
	switch {
	case late(ctx):
		// It says nothing of whether the policy is in force, and a cluster may
		// run without that controller.
		return diag.Findings{o.finding("apply/not-checked", diag.Info, "no controller of the cluster has checked its expressions yet")}, nil
	case err != nil:
		return nil, fmt.Errorf("wait for the type checker on %s: %w", o.Ref(), err)
	}
	var findings diag.Findings
	warnings, _, err := unstructured.NestedSlice(live.Object, "status", "typeChecking", "expressionWarnings")
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", o.Ref(), err)
	}
	for _, w := range warnings {
		at, _ := valueAt(w, "/fieldRef")
		text, _ := valueAt(w, "/warning")
		findings = append(findings, o.finding("apply/type-check", diag.Warning, fmt.Sprintf("the API server says of %v: %s", at, strings.TrimSpace(fmt.Sprint(text)))))
	}
	return findings, nil
}

// finding is a finding on the object, at the line of the policy that asks for it.
func (c *ObjectChange) finding(rule string, severity diag.Severity, message string) diag.Finding {
	f := diag.Finding{Rule: rule, Severity: severity, Subject: c.Ref(), Message: message}
	if len(c.Origins) > 0 {
		f.Policy, f.Range = c.Origins[0].Policy, c.Origins[0].Range
	}
	return f
}

// untilInForce creates probes until the answers are what was written: the
// content where the policy acts, and none where it does not act any more.
func (a *Applier) untilInForce(ctx context.Context, cs *ChangeSet, p askedPolicy) (diag.Findings, error) {
	groups, err := a.probeGroups(ctx, cs, p)
	if err != nil {
		return nil, err
	}
	for _, g := range groups {
		findings, err := a.untilAnswered(ctx, p, g)
		if err != nil || len(findings) > 0 {
			return findings, err
		}
	}
	return nil, nil
}

// probeGroup are namespaces in which probes get the same answer.
type probeGroup struct {
	namespaces []string
	// answer is the content; empty where the policy does not act.
	answer string
}

// untilAnswered probes one namespace of the group until its answer is right; the
// next one, where a quota or others' admission refuse the probe.
func (a *Applier) untilAnswered(ctx context.Context, p askedPolicy, g probeGroup) (diag.Findings, error) {
	var refused string
	for _, namespace := range g.namespaces[:min(len(g.namespaces), mostProbed)] {
		err := wait.PollUntilContextCancel(ctx, pollEvery, true, func(ctx context.Context) (bool, error) {
			got, err := p.ask(a, ctx, namespace)
			return got == g.answer, err
		})
		var status apierrors.APIStatus
		switch {
		case err == nil:
			return nil, nil
		case late(ctx):
			return diag.Findings{p.finding("apply/not-in-force", diag.Error,
				fmt.Sprintf("the API server does not act by what was written yet (asked in namespace %s)", namespace))}, nil
		case !errors.As(err, &status):
			return nil, fmt.Errorf("ask whether %s is in force: %w", p.Ref(), err)
		}
		refused = status.Status().Message
		if strings.Contains(refused, p.Name) {
			return diag.Findings{p.finding("apply/fails", diag.Error, "it refuses pods: "+refused)}, nil
		}
	}
	return diag.Findings{p.finding("apply/not-probed", diag.Info,
		"whether it is in force cannot be tried; it should be within seconds ("+refused+")")}, nil
}

// mostProbed is in how many namespaces a probe is tried.
const mostProbed = 5

// probeGroups returns the namespaces by what happens to them: those that the
// policy comes to, those that it leaves, and those that it stays in.
func (a *Applier) probeGroups(ctx context.Context, cs *ChangeSet, p askedPolicy) ([]probeGroup, error) {
	list, err := a.Client.Kube.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("list namespaces: %w", err)
	}
	content := ""
	if p.Action != Delete && !p.silent {
		content = p.annotation(admission.ContentAnnotation)
	}
	came, left, stayed := probeGroup{answer: content}, probeGroup{}, probeGroup{answer: content}
	if err != nil {
		// Who may not list namespaces can still ask in those that they name.
		came.namespaces = cs.Scope.Namespaces
	}
	for i := range list.Items {
		n := &list.Items[i]
		if n.Status.Phase != corev1.NamespaceActive {
			continue
		}
		before, err := acts(n, p, func(o *ObjectChange) map[string]any { return o.Before })
		if err != nil {
			return nil, err
		}
		after, err := acts(n, p, (*ObjectChange).remaining)
		if err != nil {
			return nil, err
		}
		switch {
		case before && after:
			stayed.namespaces = append(stayed.namespaces, n.Name)
		case before:
			left.namespaces = append(left.namespaces, n.Name)
		case after:
			came.namespaces = append(came.namespaces, n.Name)
		}
	}
	var groups []probeGroup
	for _, g := range []probeGroup{came, left, stayed} {
		if len(g.namespaces) == 0 {
			continue
		}
		// One that is there for long has its service account.
		slices.SortStableFunc(g.namespaces, func(a, b string) int {
			return boolOrder(a != metav1.NamespaceDefault, b != metav1.NamespaceDefault)
		})
		groups = append(groups, g)
	}
	return groups, nil
}

// remaining is the object as it is after the run; nil if it goes.
func (c *ObjectChange) remaining() map[string]any {
	if c.Action == Delete {
		return nil
	}
	return c.After
}

// acts reports whether the policy acts in the namespace, in the state of it and
// its binding that is asked for.
func acts(n *corev1.Namespace, p askedPolicy, state func(*ObjectChange) map[string]any) (bool, error) {
	if p.binding == nil || state(p.ObjectChange) == nil || state(p.binding) == nil {
		return false, nil
	}
	ok, err := selects(state(p.ObjectChange), "/spec/matchConstraints/namespaceSelector", n.Labels)
	if err != nil || !ok {
		return false, err
	}
	return selects(state(p.binding), "/spec/matchResources/namespaceSelector", n.Labels)
}

// selects reports whether the selector at the pointer of the object matches the
// labels; one that is not there matches all.
func selects(object map[string]any, at string, of map[string]string) (bool, error) {
	raw, ok := valueAt(object, at)
	fields, isMap := raw.(map[string]any)
	if !ok || !isMap {
		return true, nil
	}
	var selector metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &selector); err != nil {
		return false, fmt.Errorf("read %s: %w", at, err)
	}
	matcher, err := metav1.LabelSelectorAsSelector(&selector)
	if err != nil {
		return false, fmt.Errorf("read %s: %w", at, err)
	}
	return matcher.Matches(labels.Set(of)), nil
}
