package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kubectl-sched/kubectl-sched/compiler/admission"
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
	place := cs.placePolicy()
	if place == nil || place.Action == Keep && !cs.rebinds() {
		return findings, nil
	}
	fs, err := a.untilInForce(ctx, cs, place)
	return append(findings, fs...), err
}

var errNotInTime = errors.New("not in time")

// late reports whether the wait itself, not its caller, has ended.
func late(ctx context.Context) bool { return errors.Is(context.Cause(ctx), errNotInTime) }

// placePolicy returns the change of the policy that places pods, or nil.
func (c *ChangeSet) placePolicy() *ObjectChange {
	name := admission.Name(c.Set.Label(), admission.RolePlace)
	i := slices.IndexFunc(c.Objects, func(o ObjectChange) bool { return o.Kind.Kind == mutatingPolicy && o.Name == name })
	if i < 0 {
		return nil
	}
	return &c.Objects[i]
}

// binding returns the change of the binding of a policy, or nil.
func (c *ChangeSet) binding(kind, policy string) *ObjectChange {
	i := slices.IndexFunc(c.Objects, func(o ObjectChange) bool { return o.Kind.Kind == kind && o.Name == policy })
	if i < 0 {
		return nil
	}
	return &c.Objects[i]
}

// rebinds reports whether the binding of the place policy changes.
func (c *ChangeSet) rebinds() bool {
	b := c.binding(mutatingBinding, admission.Name(c.Set.Label(), admission.RolePlace))
	return b != nil && b.Action != Keep
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
func (a *Applier) untilInForce(ctx context.Context, cs *ChangeSet, place *ObjectChange) (diag.Findings, error) {
	groups, err := a.probeGroups(ctx, cs, place)
	if err != nil {
		return nil, err
	}
	for _, g := range groups {
		findings, err := a.untilAnswered(ctx, cs.Set, place, g)
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
func (a *Applier) untilAnswered(ctx context.Context, set Set, place *ObjectChange, g probeGroup) (diag.Findings, error) {
	var refused string
	for _, namespace := range g.namespaces[:min(len(g.namespaces), mostProbed)] {
		err := wait.PollUntilContextCancel(ctx, pollEvery, true, func(ctx context.Context) (bool, error) {
			got, err := a.probe(ctx, set, namespace)
			return got == g.answer, err
		})
		var status apierrors.APIStatus
		switch {
		case err == nil:
			return nil, nil
		case late(ctx):
			return diag.Findings{place.finding("apply/not-in-force", diag.Error,
				fmt.Sprintf("the API server does not act by what was written yet (asked in namespace %s)", namespace))}, nil
		case !errors.As(err, &status):
			return nil, fmt.Errorf("ask whether %s is in force: %w", place.Ref(), err)
		}
		refused = status.Status().Message
		if strings.Contains(refused, place.Name) {
			return diag.Findings{place.finding("apply/fails", diag.Error, "it refuses pods: "+refused)}, nil
		}
	}
	return diag.Findings{place.finding("apply/not-probed", diag.Info,
		"whether it is in force cannot be tried; it should be within seconds ("+refused+")")}, nil
}

// mostProbed is in how many namespaces a probe is tried.
const mostProbed = 5

// probeGroups returns the namespaces by what happens to them: those that the
// policy comes to, those that it leaves, and those that it stays in.
func (a *Applier) probeGroups(ctx context.Context, cs *ChangeSet, place *ObjectChange) ([]probeGroup, error) {
	list, err := a.Client.Kube.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("list namespaces: %w", err)
	}
	content := ""
	if place.Action != Delete {
		content = (&unstructured.Unstructured{Object: place.After}).GetAnnotations()[admission.ContentAnnotation]
	}
	came, left, stayed := probeGroup{answer: content}, probeGroup{}, probeGroup{answer: content}
	if err != nil {
		// Who may not list namespaces can still ask in those that they name.
		came.namespaces = cs.Scope.Namespaces
	}
	binding := cs.binding(mutatingBinding, place.Name)
	for i := range list.Items {
		n := &list.Items[i]
		if n.Status.Phase != corev1.NamespaceActive {
			continue
		}
		before, err := acts(n, place, binding, func(o *ObjectChange) map[string]any { return o.Before })
		if err != nil {
			return nil, err
		}
		after, err := acts(n, place, binding, (*ObjectChange).remaining)
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
func acts(n *corev1.Namespace, place, binding *ObjectChange, state func(*ObjectChange) map[string]any) (bool, error) {
	if binding == nil || state(place) == nil || state(binding) == nil {
		return false, nil
	}
	ok, err := selects(state(place), "/spec/matchConstraints/namespaceSelector", n.Labels)
	if err != nil || !ok {
		return false, err
	}
	return selects(state(binding), "/spec/matchResources/namespaceSelector", n.Labels)
}

// probe creates a pod as a dry run, and returns the content of the place policy
// that saw it; empty if none did.
func (a *Applier) probe(ctx context.Context, set Set, namespace string) (string, error) {
	no, yes := false, true
	small := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1m"), corev1.ResourceMemory: resource.MustParse("1Mi")}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "kubectl-sched-probe-", Annotations: map[string]string{admission.ProbeAnnotation: set.Label()}},
		// So little that no quota and no rule of pod security minds.
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: &no,
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: &yes, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: "probe", Image: "registry.k8s.io/pause:3.10",
				Resources: corev1.ResourceRequirements{Requests: small, Limits: small},
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		},
	}
	made, err := a.Client.Kube.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{FieldManager: a.manager(), DryRun: dryRunOption(true)})
	if err != nil {
		return "", err
	}
	if answer := made.Annotations[admission.ProbeAnnotation]; answer != set.Label() {
		return answer, nil
	}
	return "", nil
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
