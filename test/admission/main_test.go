// Package admission holds the compiled admission policies against a real API
// server: what it stores of a pod must be what it stores of one whose template
// was rendered. It knows the compiler and the API server, and neither the plugin
// nor how policies are applied.
package admission

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/compiler/admission"
	"github.com/kubectl-sched/kubectl-sched/compiler/admission/admissiontest"
	"github.com/kubectl-sched/kubectl-sched/internal/sandbox/sandboxtest"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// shared is the control plane of all tests; each has namespaces and a set of its
// own.
var shared = sandboxtest.Shared{}

func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }

// lab is the API server as one test uses it.
type lab struct {
	kubernetes.Interface
	t *testing.T
	// set is the set of the test, and home the namespace that its probes are made
	// in.
	set, home string
}

// newLab returns the control plane, with the set's own namespace made.
func newLab(t *testing.T, set string) *lab {
	t.Helper()
	config := shared.Get(t).RESTConfig()
	config.QPS, config.Burst = 1000, 1000
	client, err := kubernetes.NewForConfig(rest.CopyConfig(config))
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{Interface: client, t: t, set: set, home: "home-" + set}
	l.namespace(l.home, nil, "default")
	return l
}

// namespace makes a namespace with labels and service accounts, unless they are
// there.
func (l *lab) namespace(name string, labels map[string]string, accounts ...string) {
	l.t.Helper()
	_, err := l.CoreV1().Namespaces().Create(l.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}, metav1.CreateOptions{})
	l.must(err)
	for _, account := range accounts {
		_, err := l.CoreV1().ServiceAccounts(name).Create(l.t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}, metav1.CreateOptions{})
		l.must(err)
	}
}

// must fails the test, unless the error says that the object is there already.
func (l *lab) must(err error) {
	l.t.Helper()
	if err != nil && !apierrors.IsAlreadyExists(err) {
		l.t.Fatal(err)
	}
}

// compile compiles for the admission surface, with one policy more that selects
// probes.
func (l *lab) compile(p policy.Placement, r compiler.Request) *compiler.Plan {
	l.t.Helper()
	p.Policies = append(append([]policy.Policy{}, p.Policies...), policy.Policy{
		Name: "zz-probe", Level: policy.Mandatory, Workloads: policy.Workloads{Namespaces: []string{l.home}},
		Tolerate:  &policy.Tolerate{Taints: map[string]policy.Taint{"probe": {Key: "probe"}}},
		Positions: policy.Positions{"": diag.At(diag.Pos{File: "probe", Line: 1, Column: 1})},
	})
	// What fails shall be seen.
	p.Clusters = []policy.Cluster{{Name: "here", Surface: policy.SurfaceAdmission, Admission: &policy.Admission{FailurePolicy: policy.FailureFail}}}
	r.Placement, r.Surface, r.Set, r.Capabilities.Cluster = &p, policy.SurfaceAdmission, l.set, "here"
	plan, findings := compiler.Compile(r)
	for _, f := range findings {
		if f.Severity == diag.Error && f.Subject == "" {
			l.t.Fatal(f)
		}
	}
	return plan
}

// install creates the plan's objects, or brings those that are there to it, and
// waits until the API server goes by them.
func (l *lab) install(plan *compiler.Plan) {
	l.t.Helper()
	content := ""
	for _, o := range plan.Objects {
		l.put(o.Object)
		if o.Object.GetLabels()[admission.RoleLabel] == admission.RolePlace {
			content = admissionContent(o.Object, content)
		}
	}
	l.awaitMark(content)
}

func admissionContent(o compiler.KubeObject, was string) string {
	if c := o.GetAnnotations()[admission.ContentAnnotation]; c != "" {
		return c
	}
	return was
}

// put creates or replaces an object.
func (l *lab) put(object runtime.Object) {
	l.t.Helper()
	ctx := l.t.Context()
	var err error
	switch o := object.DeepCopyObject().(type) {
	case *schedulingv1.PriorityClass:
		_, err = l.SchedulingV1().PriorityClasses().Create(ctx, o, metav1.CreateOptions{})
	case *admissionregistrationv1.MutatingAdmissionPolicy:
		err = replace(ctx, l.AdmissionregistrationV1().MutatingAdmissionPolicies(), o)
	case *admissionregistrationv1.MutatingAdmissionPolicyBinding:
		err = replace(ctx, l.AdmissionregistrationV1().MutatingAdmissionPolicyBindings(), o)
	case *admissionregistrationv1.ValidatingAdmissionPolicy:
		err = replace(ctx, l.AdmissionregistrationV1().ValidatingAdmissionPolicies(), o)
	case *admissionregistrationv1.ValidatingAdmissionPolicyBinding:
		err = replace(ctx, l.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings(), o)
	}
	l.must(err)
}

// resource is a typed client of one kind of object.
type resource[T any] interface {
	Create(ctx context.Context, o T, options metav1.CreateOptions) (T, error)
	Update(ctx context.Context, o T, options metav1.UpdateOptions) (T, error)
	Get(ctx context.Context, name string, options metav1.GetOptions) (T, error)
}

func replace[T metav1.Object](ctx context.Context, client resource[T], o T) error {
	_, err := client.Create(ctx, o, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	// The API server writes to the status of some of them by itself.
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		have, err := client.Get(ctx, o.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		o.SetResourceVersion(have.GetResourceVersion())
		_, err = client.Update(ctx, o, metav1.UpdateOptions{})
		return err
	})
}

// awaitMark waits until a probe that comes with a mark of its own gets the set's
// mark with the content: then both policies are in force. No content waits until
// probes get no mark.
func (l *lab) awaitMark(content string) {
	l.t.Helper()
	probe := pod("probe", l.home)
	probe.Annotations = map[string]string{admission.Annotation(l.set): "forged nothing"}
	want, last := content, ""
	err := wait.PollUntilContextTimeout(context.WithoutCancel(l.t.Context()), 100*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		stored, err := l.CoreV1().Pods(l.home).Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			last = err.Error()
			return isForbidden(err, "failed to evaluate"), nil
		}
		last = stored.Annotations[admission.Annotation(l.set)]
		if content == "" {
			return last == "forged nothing", nil
		}
		mark, ok := admission.ParseMark(last)
		return ok && mark.Content == want, nil
	})
	if err != nil || strings.Contains(last, "failed to evaluate") {
		l.t.Fatalf("the set's policies are not in force: the probe's mark is %q, want %q", last, want)
	}
}

// uninstall takes the bindings of the set away and waits until it acts no more.
func (l *lab) uninstall() {
	l.t.Helper()
	ctx := context.WithoutCancel(l.t.Context())
	for _, role := range []string{admission.RolePlace, admission.RoleUnmark} {
		err := l.AdmissionregistrationV1().MutatingAdmissionPolicyBindings().Delete(ctx, admission.Name(l.set, role), metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			l.t.Fatal(err)
		}
	}
	err := l.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Delete(ctx, admission.Name(l.set, admission.RoleAudit), metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		l.t.Fatal(err)
	}
	l.awaitMark("")
}

// stored returns the object, a pod or a DaemonSet, as the API server would store
// it.
func (l *lab) stored(object runtime.Object) (runtime.Object, error) {
	dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	switch o := object.DeepCopyObject().(type) {
	case *corev1.Pod:
		return l.CoreV1().Pods(o.Namespace).Create(l.t.Context(), o, dry)
	case *appsv1.DaemonSet:
		return l.AppsV1().DaemonSets(o.Namespace).Create(l.t.Context(), o, dry)
	}
	return nil, errors.New("neither a pod nor a DaemonSet")
}

// spec returns what counts of a stored object: its pod spec, with tolerations in
// order and without the random names of tokens.
func spec(t *testing.T, object runtime.Object) map[string]any {
	t.Helper()
	out := admissiontest.Comparable(object)
	if out == nil {
		t.Fatal("the spec has no JSON form")
	}
	return out
}

// same fails the test where two stored objects differ in what counts.
func same(t *testing.T, what string, want, got runtime.Object) bool {
	t.Helper()
	diff := cmp.Diff(spec(t, want), spec(t, got))
	if diff != "" {
		t.Errorf("%s, marked %v, differs (-render +admission):\n%s", what, got.(metav1.Object).GetAnnotations(), diff)
	}
	return diff == ""
}

// pod returns a plain pod.
func pod(name, namespace string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "registry.example/c"}}},
	}
}

// policyFor returns a policy for a namespace, to be filled in.
func policyFor(name string, namespaces ...string) policy.Policy {
	return policy.Policy{
		Name: name, Level: policy.Mandatory, Workloads: policy.Workloads{Namespaces: namespaces},
		Positions: policy.Positions{"": diag.At(diag.Pos{File: "policy.cue", Line: 1, Column: 1})},
	}
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1fs", d.Seconds()) }

func isForbidden(err error, because string) bool {
	return err != nil && strings.Contains(err.Error(), because)
}
