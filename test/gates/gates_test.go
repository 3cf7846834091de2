// Package gates_test holds on a real API server that the gate controller, with the
// rights of its own account alone, releases pods as each kind of condition says,
// and that nobody gets past the policy that protects approvals.
package gates_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/utils/ptr"

	"github.com/kubectl-sched/kubectl-sched/internal/sandbox/sandboxtest"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gates"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gates/approval"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gates/condition"
)

const (
	// patience limits every wait: the machine may be busy with other tests, and a
	// window opens at a full minute.
	patience = 3 * time.Minute
	account  = "system:serviceaccount:placement-system:placement-scheduler"
	gate     = condition.Prefix + "g"
	stranger = "example.com/other"
)

var shared sandboxtest.Shared

func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }

// lab is a namespace in which gates are.
type lab struct {
	*testing.T
	config    *rest.Config
	admin     kubernetes.Interface
	namespace string
}

func newLab(t *testing.T, namespace string) *lab {
	t.Helper()
	sb := shared.Get(t)
	l := &lab{T: t, config: sb.RESTConfig(), admin: sb.Client(), namespace: namespace}
	if err := sandboxtest.MakeNamespace(t.Context(), l.admin, namespace, nil); err != nil {
		t.Fatal(err)
	}
	return l
}

// until waits until try has no error.
func (l *lab) until(what string, try func(context.Context) error) {
	l.Helper()
	var last error
	err := wait.PollUntilContextTimeout(l.Context(), 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		last = try(ctx)
		return last == nil, nil
	})
	if err != nil {
		l.Fatalf("not in time: %s: %v", what, last)
	}
}

// as returns the configuration of a user.
func (l *lab) as(user string) *rest.Config {
	c := rest.CopyConfig(l.config)
	c.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	return c
}

func (l *lab) client(user string) kubernetes.Interface {
	l.Helper()
	client, err := kubernetes.NewForConfig(l.as(user))
	if err != nil {
		l.Fatal(err)
	}
	return client
}

// grant lets a user do in the whole cluster what the rules say.
func (l *lab) grant(user string, rules ...rbacv1.PolicyRule) {
	l.Helper()
	name := l.namespace + "-" + strings.ReplaceAll(user, ":", "-")
	_, err := l.admin.RbacV1().ClusterRoles().Create(l.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}, metav1.CreateOptions{})
	if err == nil {
		_, err = l.admin.RbacV1().ClusterRoleBindings().Create(l.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		}, metav1.CreateOptions{})
	}
	if err != nil {
		l.Fatal(err)
	}
}

// controller runs a controller as its own account, until the function that it
// returns is called.
func (l *lab) controller() (stop func()) {
	l.Helper()
	config := l.as(account)
	client := l.client(account)
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		l.Fatal(err)
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	c, err := gates.New(gates.Options{
		Client: client, Dynamic: objects, Informers: factory, Instance: "test",
		Mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery())),
	})
	if err != nil {
		l.Fatal(err)
	}
	ctx, cancel := context.WithCancel(l.Context())
	factory.StartWithContext(ctx)
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			l.Errorf("the controller: %v", err)
		}
		factory.Shutdown()
	}
	l.Cleanup(stop)
	return stop
}

// pod returns a pod with a stranger's gate, and one of ours with the condition.
func pod(name string, c *condition.Condition, labels map[string]string) (*corev1.Pod, error) {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: corev1.PodSpec{
			SchedulingGates: []corev1.PodSchedulingGate{{Name: stranger}},
			Containers: []corev1.Container{{Name: "main", Image: "example.com/main:1", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")},
			}}},
		},
	}
	if c == nil {
		return p, nil
	}
	text, err := condition.Encode(c)
	p.Annotations = map[string]string{gate: text}
	p.Spec.SchedulingGates = append(p.Spec.SchedulingGates, corev1.PodSchedulingGate{Name: gate})
	return p, err
}

// create makes such a pod.
func (l *lab) create(name string, c *condition.Condition, labels map[string]string) {
	l.Helper()
	p, err := pod(name, c, labels)
	if err == nil {
		_, err = l.admin.CoreV1().Pods(l.namespace).Create(l.Context(), p, metav1.CreateOptions{})
	}
	if err != nil {
		l.Fatal(err)
	}
}

// gated is an error if the pod has other gates than these.
func (l *lab) gated(ctx context.Context, name string, want ...string) error {
	p, err := l.admin.CoreV1().Pods(l.namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	var got []string
	for _, g := range p.Spec.SchedulingGates {
		got = append(got, g.Name)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		return fmt.Errorf("pod %s has the gates %v, not %v", name, got, want)
	}
	return nil
}

// said returns when an event about the pod with the reason was written.
func (l *lab) said(ctx context.Context, name, reason string) (time.Time, error) {
	list, err := l.admin.EventsV1().Events(l.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return time.Time{}, err
	}
	for _, e := range list.Items {
		if e.Regarding.Name == name && e.Reason == reason {
			return e.EventTime.Time, nil
		}
	}
	return time.Time{}, fmt.Errorf("no event %s about pod %s", reason, name)
}

// TestRelease holds that each kind of condition keeps a pod, with an event that
// says why, and lets it go, across a restart, and that a stranger's gate stays.
func TestRelease(t *testing.T) {
	t.Parallel()
	l := newLab(t, "release")
	read := []string{"get", "list", "watch"}
	l.grant(account,
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: append(read, "patch")},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"resourcequotas", "configmaps"}, Verbs: read},
		rbacv1.PolicyRule{APIGroups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create"}})
	now := time.Now().UTC()
	at, opens := now.Add(8*time.Second).Truncate(time.Second), now.Add(time.Minute).Truncate(time.Minute)
	if opens.Sub(now) < 10*time.Second {
		opens = opens.Add(time.Minute) // or it would be open before the wait is seen
	}
	tests := []struct {
		name, reason string
		condition    condition.Condition
		// meet makes the condition hold; where there is none, time does.
		meet      func()
		notBefore time.Time
	}{
		{"peers", gates.ReasonPeers, condition.Condition{Peers: &condition.Peers{Selector: "app=peer", Min: 2}}, func() {
			l.create("peer-1", nil, map[string]string{"app": "peer"})
			l.create("peer-2", nil, map[string]string{"app": "peer"})
		}, time.Time{}},
		{"ready", gates.ReasonPeers, condition.Condition{Peers: &condition.Peers{Selector: "app=ready", Min: 1, Ready: true}}, func() {
			l.create("ready-1", nil, map[string]string{"app": "ready"})
			status := []byte(`{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`)
			if _, err := l.admin.CoreV1().Pods(l.namespace).Patch(t.Context(), "ready-1", types.StrategicMergePatchType, status, metav1.PatchOptions{}, "status"); err != nil {
				t.Fatal(err)
			}
		}, time.Time{}},
		{"object", gates.ReasonObject, condition.Condition{Object: &condition.Object{APIVersion: "v1", Kind: "ConfigMap", Name: "data", Path: "{.data.state}", Value: ptr.To("loaded")}}, func() {
			data := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Data: map[string]string{"state": "loading"}}
			data, err := l.admin.CoreV1().ConfigMaps(l.namespace).Create(t.Context(), data, metav1.CreateOptions{})
			if err == nil {
				data.Data["state"] = "loaded"
				_, err = l.admin.CoreV1().ConfigMaps(l.namespace).Update(t.Context(), data, metav1.UpdateOptions{})
			}
			if err != nil {
				t.Fatal(err)
			}
		}, time.Time{}},
		{"approval", gates.ReasonApproval, condition.Condition{Approval: &condition.Approval{}}, func() {
			// Whatever the other test has put in force, its own approver may.
			l.grant("release-approver", approver()...)
			l.until("the approval", func(ctx context.Context) error {
				return annotate(ctx, l.client("release-approver"), l.namespace, "approval", condition.ApprovedPrefix+"g", "release-approver")
			})
		}, time.Time{}},
		{"time", gates.ReasonTime, condition.Condition{NotBefore: at.Format(time.RFC3339)}, nil, at},
		{"window", gates.ReasonWindow, condition.Condition{Window: &condition.Window{
			Zone: "America/New_York", From: clockIn(t, opens), To: clockIn(t, opens.Add(2*time.Hour)),
		}}, nil, opens},
		// Last, since admission heeds the quota as well.
		{"quota", gates.ReasonQuota, condition.Condition{Quota: &condition.Quota{Name: "ml"}}, func() {
			quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "ml"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourceRequestsCPU: resource.MustParse("10m")}}}
			_, err := l.admin.CoreV1().ResourceQuotas(l.namespace).Create(t.Context(), quota, metav1.CreateOptions{})
			if err == nil {
				_, err = l.admin.CoreV1().ResourceQuotas(l.namespace).Patch(t.Context(), "ml", types.MergePatchType, []byte(`{"spec":{"hard":{"requests.cpu":"100"}}}`), metav1.PatchOptions{})
			}
			if err != nil {
				t.Fatal(err)
			}
		}, time.Time{}},
	}
	for _, test := range tests {
		l.create(test.name, &test.condition, nil)
	}
	l.create("unreadable", &condition.Condition{Approval: &condition.Approval{}}, nil)
	if err := annotate(t.Context(), l.admin, l.namespace, "unreadable", gate, `{"approve":{}}`); err != nil {
		t.Fatal(err)
	}
	stop := l.controller()
	for _, test := range tests {
		l.until(test.name+" is said to wait", func(ctx context.Context) error {
			_, err := l.said(ctx, test.name, test.reason)
			return err
		})
		if test.meet != nil {
			if err := l.gated(t.Context(), test.name, stranger, gate); err != nil {
				t.Error(err)
			}
		}
	}
	stop()
	for _, test := range tests {
		if test.meet != nil {
			test.meet()
		}
	}
	l.controller()
	for _, test := range tests {
		var opened time.Time
		l.until(test.name+" is released", func(ctx context.Context) error {
			var err error
			if opened, err = l.said(ctx, test.name, gates.ReasonOpened); err != nil {
				return err
			}
			return l.gated(ctx, test.name, stranger)
		})
		if late := opened.Sub(test.notBefore); !test.notBefore.IsZero() && late < 0 {
			t.Errorf("%s was released %s before its time", test.name, -late)
		} else if !test.notBefore.IsZero() {
			t.Logf("%s was released %s after its time", test.name, late)
		}
	}
	if _, err := l.said(t.Context(), "unreadable", gates.ReasonUnreadable); err != nil {
		t.Error(err)
	}
	if err := l.gated(t.Context(), "unreadable", stranger, gate); err != nil {
		t.Error(err)
	}
}

// clockIn returns what the clocks of New York show.
func clockIn(t *testing.T, at time.Time) string {
	t.Helper()
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	return at.In(zone).Format("15:04")
}

// approver are the rights of one who may approve the gate g.
func approver() []rbacv1.PolicyRule {
	return append(editor(), rbacv1.PolicyRule{APIGroups: []string{approval.Group}, Resources: []string{approval.Resource}, ResourceNames: []string{"g"}, Verbs: []string{approval.Verb}})
}

// editor are the rights of one who may do anything with pods.
func editor() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods", "pods/status"}, Verbs: []string{"*"}}}
}

// annotate writes one annotation of a pod, through a subresource if there is one.
func annotate(ctx context.Context, by kubernetes.Interface, namespace, pod, key, value string, subresources ...string) error {
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, key, value)
	_, err := by.CoreV1().Pods(namespace).Patch(ctx, pod, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...)
	return err
}

// TestApproval holds that an approval names the one who wrote it, that the
// authorizer lets it be written, and that there is no way around it.
func TestApproval(t *testing.T) {
	t.Parallel()
	l := newLab(t, "approval")
	l.inForce()
	l.until("the API server's check of the policy's types", func(ctx context.Context) error {
		got, err := l.admin.AdmissionregistrationV1().ValidatingAdmissionPolicies().Get(ctx, approval.Name, metav1.GetOptions{})
		if err == nil && got.Status.TypeChecking == nil {
			err = errors.New("it is not checked yet")
		}
		if err == nil && len(got.Status.TypeChecking.ExpressionWarnings) > 0 {
			t.Errorf("warnings: %v", got.Status.TypeChecking.ExpressionWarnings)
		}
		return err
	})
	l.grant("anna", approver()...)
	l.grant("bert", editor()...)
	l.grant(account, editor()...)
	anna, bert := l.client("anna"), l.client("bert")
	approved := condition.ApprovedPrefix + "g"
	wait := &condition.Condition{Approval: &condition.Approval{}}
	l.create("p", wait, nil)

	refused := func(what string, try func(context.Context) error) {
		t.Helper()
		l.until(what+" is refused", func(ctx context.Context) error {
			err := try(ctx)
			if err == nil {
				return errors.New("it is not")
			}
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), approval.Name) {
				return fmt.Errorf("it is, by something else: %w", err)
			}
			return nil
		})
	}
	// The policy is in force a while after it is created.
	forged, err := pod("forged", wait, nil)
	if err != nil {
		t.Fatal(err)
	}
	forged.Annotations[approved] = "anna"
	refused("a pod that comes with an approval", func(ctx context.Context) error {
		_, err := bert.CoreV1().Pods(l.namespace).Create(ctx, forged, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	})
	// It says what was wrong, not only that something was.
	_, err = bert.CoreV1().Pods(l.namespace).Create(t.Context(), forged, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if want := fmt.Sprintf("annotation %s must name the user who writes it, bert", approved); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want it to say %q", err, want)
	}
	// From here on, one attempt must do: whatever gets through is a hole.
	refusedNow := func(what string, err error) {
		t.Helper()
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), approval.Name) {
			t.Errorf("%s is not refused by the policy: %v", what, err)
		}
	}
	ctx := t.Context()
	refusedNow("another's approval", annotate(ctx, bert, l.namespace, "p", approved, "anna"))
	refusedNow("another's approval through the status", annotate(ctx, bert, l.namespace, "p", approved, "anna", "status"))
	refusedNow("an approval without the right", annotate(ctx, bert, l.namespace, "p", approved, "bert"))
	refusedNow("a denial without the right", annotate(ctx, bert, l.namespace, "p", condition.DeniedPrefix+"g", "bert"))
	refusedNow("an approver's approval in another's name", annotate(ctx, anna, l.namespace, "p", approved, "bert"))
	refusedNow("another condition", annotate(ctx, bert, l.namespace, "p", gate, `{"notBefore":"2020-01-01T00:00:00Z"}`))
	refusedNow("another gate's approval", annotate(ctx, anna, l.namespace, "p", condition.ApprovedPrefix+"other", "anna"))
	remove := fmt.Appendf(nil, `{"spec":{"schedulingGates":[{"$patch":"delete","name":%q}]}}`, gate)
	_, err = bert.CoreV1().Pods(l.namespace).Patch(ctx, "p", types.StrategicMergePatchType, remove, metav1.PatchOptions{})
	refusedNow("the removal of the gate", err)

	if err := annotate(ctx, bert, l.namespace, "p", "example.com/note", "mine"); err != nil {
		t.Errorf("an annotation of one's own: %v", err)
	}
	if err := annotate(ctx, anna, l.namespace, "p", approved, "anna"); err != nil {
		t.Errorf("an approval: %v", err)
	}
	_, err = bert.CoreV1().Pods(l.namespace).Patch(ctx, "p", types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:null}}}`, approved), metav1.PatchOptions{})
	refusedNow("the withdrawal of another's approval", err)
	if _, err := l.client(account).CoreV1().Pods(l.namespace).Patch(ctx, "p", types.StrategicMergePatchType, remove, metav1.PatchOptions{}); err != nil {
		t.Errorf("the controller may not remove the gate: %v", err)
	}
	if err := l.gated(ctx, "p", stranger); err != nil {
		t.Error(err)
	}
}

// TestAccount holds that the controller's account, which may patch pods, can
// change nothing of them but what is ours.
func TestAccount(t *testing.T) {
	t.Parallel()
	l := newLab(t, "account")
	// Another account than the other tests', which may do what it wants.
	const ours = "system:serviceaccount:account:scheduler"
	policy, binding := approval.Account(ours)
	_, err := l.admin.AdmissionregistrationV1().ValidatingAdmissionPolicies().Create(t.Context(), policy, metav1.CreateOptions{})
	if err == nil {
		_, err = l.admin.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Create(t.Context(), binding, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	l.grant(ours, approver()...)
	l.create("p", &condition.Condition{Approval: &condition.Approval{}}, nil)
	by := l.client(ours).CoreV1().Pods(l.namespace)
	patch := func(ctx context.Context, text string) error {
		_, err := by.Patch(ctx, "p", types.StrategicMergePatchType, []byte(text), metav1.PatchOptions{})
		return err
	}
	label := `{"metadata":{"labels":{"a":"b"}}}`
	l.until("a label is refused", func(ctx context.Context) error {
		_, err := by.Patch(ctx, "p", types.StrategicMergePatchType, []byte(label), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		if !apierrors.IsForbidden(err) {
			return fmt.Errorf("it is not, but: %w", err)
		}
		return nil
	})
	for what, text := range map[string]string{
		"a label":                 label,
		"a finalizer":             `{"metadata":{"finalizers":["example.com/stay"]}}`,
		"another's annotation":    `{"metadata":{"annotations":{"example.com/a":"b"}}}`,
		"an approval":             fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, condition.ApprovedPrefix+"g", ours),
		"a condition":             fmt.Sprintf(`{"metadata":{"annotations":{%q:"{}"}}}`, gate),
		"an image":                `{"spec":{"containers":[{"name":"main","image":"example.com/other:1"}]}}`,
		"a toleration":            `{"spec":{"tolerations":[{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300},{"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute","tolerationSeconds":300},{"key":"example.com/gpu","operator":"Exists"}]}}`,
		"a node selector":         `{"spec":{"nodeSelector":{"a":"b"}}}`,
		"a stranger's gate":       fmt.Sprintf(`{"spec":{"schedulingGates":[{"$patch":"delete","name":%q}]}}`, stranger),
		"a deadline of its own":   `{"spec":{"activeDeadlineSeconds":1}}`,
		"both gates in one patch": `{"spec":{"schedulingGates":null}}`,
	} {
		if err := patch(t.Context(), text); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), approval.AccountName) {
			t.Errorf("%s is not refused by the policy: %v", what, err)
		}
	}
	for what, text := range map[string]string{
		"an annotation of a plugin": `{"metadata":{"annotations":{"kubectl-sched.github.io/gpu-index":"0"}}}`,
		"the gate":                  fmt.Sprintf(`{"spec":{"schedulingGates":[{"$patch":"delete","name":%q}]}}`, gate),
	} {
		if err := patch(t.Context(), text); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := l.gated(t.Context(), "p", stranger); err != nil {
		t.Error(err)
	}
}
