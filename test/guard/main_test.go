// Package guard tries every way past the guard of a dedicated pool that is
// known, and every way in that must stay open, against a real API server with
// controllers and a scheduler.
package guard

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/internal/sandbox"
	"github.com/kubectl-sched/kubectl-sched/internal/sandbox/sandboxtest"
	"github.com/kubectl-sched/kubectl-sched/policy/load"
)

// patience is how long anything may take that the cluster does by itself.
const patience = 3 * time.Minute

var shared sandboxtest.Shared

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "kubectl-sched-guard-")
	var audit string
	if err == nil {
		audit, err = filepath.Abs("testdata/audit.yaml")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	auditLog = filepath.Join(dir, "audit.log")
	shared.Options = sandbox.Options{ExtraArgs: map[sandbox.Part][]string{sandbox.APIServer: {
		// As in real clusters, nodes may do only what is theirs. The flag adds to
		// the mode that the sandbox sets.
		"--authorization-mode=Node", "--enable-admission-plugins=NodeRestriction",
		"--audit-policy-file=" + audit, "--audit-log-path=" + auditLog,
	}}}
	code := shared.Run(m)
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// auditLog is the file of the API server's audit log.
var auditLog string

// cluster is the control plane, with the pools' guards in force.
type cluster struct {
	config *rest.Config
	admin  kubernetes.Interface
	// before is a pod that tolerates everything, and ran before there were guards.
	before *corev1.Pod
}

var theCluster struct {
	once sync.Once
	cluster
	err error
}

// guarded returns the control plane with the guards in force.
func guarded(t *testing.T) *cluster {
	t.Helper()
	sb := shared.Get(t)
	theCluster.once.Do(func() {
		theCluster.config, theCluster.admin = sb.RESTConfig(), sb.Client()
		theCluster.err = theCluster.prepare(context.WithoutCancel(t.Context()), sb)
	})
	if theCluster.err != nil {
		t.Fatal(theCluster.err)
	}
	return &theCluster.cluster
}

// prepare makes nodes, namespaces and users, a pod that runs already, and then
// the guards.
func (c *cluster) prepare(ctx context.Context, sb *sandbox.Sandbox) error {
	data, err := os.ReadFile("testdata/nodes.yaml")
	if err != nil {
		return err
	}
	pools, err := sandbox.ParsePools("nodes.yaml", data)
	if err != nil {
		return err
	}
	if _, err := sb.Nodes(ctx, pools); err != nil {
		return err
	}
	for _, name := range []string{"g-shop", "g-ml-vision", "g-monitoring", "g-ops", "g-sched", "l-shop", "s-shop", "s-jobs", "w-shop", "w-granted", "a-shop", "a-granted"} {
		if err := sandboxtest.MakeNamespace(ctx, c.admin, name, nil); err != nil {
			return err
		}
	}
	if err := sandboxtest.MakeNamespace(ctx, c.admin, "l-vision", map[string]string{"team": "ml"}); err != nil {
		return err
	}
	for _, account := range []*corev1.ServiceAccount{
		{ObjectMeta: metav1.ObjectMeta{Namespace: "g-ops", Name: "agent"}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: "g-shop", Name: "agent"}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: "s-jobs", Name: "runner"}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: "s-shop", Name: "runner"}},
	} {
		if _, err := c.admin.CoreV1().ServiceAccounts(account.Namespace).Create(ctx, account, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	if err := c.rights(ctx); err != nil {
		return err
	}
	c.before, err = c.admin.CoreV1().Pods("g-shop").Create(ctx, pod("before", func(p *corev1.Pod) {
		p.Spec.Tolerations = []corev1.Toleration{wildcard}
		p.Spec.NodeSelector = map[string]string{"node-restriction.kubernetes.io/class": "gpu"}
	}), metav1.CreateOptions{})
	if err == nil {
		err = c.runs(ctx, c.before)
	}
	if err != nil {
		return err
	}
	return c.guard(ctx)
}

// rights lets everybody who is authenticated do to pods and workloads whatever
// there is: what is refused then is refused by admission.
func (c *cluster) rights(ctx context.Context) error {
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "everything-with-pods"},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"", "apps", "batch"}, Verbs: []string{"*"},
			Resources: []string{"pods", "pods/status", "pods/binding", "pods/ephemeralcontainers", "pods/resize", "bindings", "deployments", "daemonsets", "jobs"},
		}},
	}
	if _, err := c.admin.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil {
		return err
	}
	_, err := c.admin.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "system:authenticated"}},
	}, metav1.CreateOptions{})
	return err
}

// guard compiles the document and creates the objects, as "kubectl apply" would,
// and returns when all of them are in force.
func (c *cluster) guard(ctx context.Context) error {
	placement, findings := load.Evaluate(ctx, load.Options{Paths: []string{"testdata"}})
	if len(findings) > 0 {
		return findings
	}
	plan, findings := compiler.Compile(compiler.Request{Placement: placement})
	if len(findings) > 0 {
		return findings
	}
	registration := c.admin.AdmissionregistrationV1()
	var names []string
	for _, o := range plan.Objects {
		var err error
		switch object := o.Object.(type) {
		case *admissionv1.ValidatingAdmissionPolicy:
			names = append(names, object.Name)
			_, err = registration.ValidatingAdmissionPolicies().Create(ctx, object, metav1.CreateOptions{})
		case *admissionv1.ValidatingAdmissionPolicyBinding:
			_, err = registration.ValidatingAdmissionPolicyBindings().Create(ctx, object, metav1.CreateOptions{})
		default:
			err = fmt.Errorf("the plan has an unexpected %s", o.Kind())
		}
		if err != nil {
			return err
		}
	}
	for _, name := range names {
		if err := until(ctx, "policy "+name+" is checked", func() (string, error) {
			policy, err := registration.ValidatingAdmissionPolicies().Get(ctx, name, metav1.GetOptions{})
			switch {
			case err != nil:
				return "", err
			case policy.Status.TypeChecking == nil:
				return "it is not", nil
			case len(policy.Status.TypeChecking.ExpressionWarnings) > 0:
				return "", fmt.Errorf("types of %s: %v", name, policy.Status.TypeChecking.ExpressionWarnings)
			}
			return "", nil
		}); err != nil {
			return err
		}
	}
	return c.inForce(ctx)
}

// inForce returns when each policy of each guard that people see does what it
// shall to a request that changes nothing.
func (c *cluster) inForce(ctx context.Context) error {
	dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	anna := c.as("anna")
	for _, namespace := range []string{"g-shop", "l-shop", "s-shop", "w-shop"} {
		if err := until(ctx, "the guard watches "+namespace, func() (string, error) {
			anna.warnings()
			_, err := anna.CoreV1().Pods(namespace).Create(ctx, pod("probe", tolerating(wildcard)), dry)
			if !apierrors.IsForbidden(err) && len(anna.warnings()) == 0 {
				return "not its pods", err
			}
			// There is no such pod, but admission comes first.
			err = anna.CoreV1().Pods(namespace).Bind(ctx, binding("none", "plain-0"), dry)
			if !apierrors.IsForbidden(err) && len(anna.warnings()) == 0 {
				return "not its bindings", nil
			}
			if _, err = anna.AppsV1().Deployments(namespace).Create(ctx, deployment("probe", tolerating(wildcard)), dry); len(anna.warnings()) == 0 {
				return "not its workloads", err
			}
			return "", nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// client is a client that keeps the warnings which it gets.
type client struct {
	kubernetes.Interface

	mu  sync.Mutex
	got []string
}

// HandleWarningHeader implements rest.WarningHandler.
func (c *client) HandleWarningHeader(_ int, _, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.got = append(c.got, text)
}

// warnings returns the warnings since the last call.
func (c *client) warnings() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.got
	c.got = nil
	return out
}

// as returns a client of the user, with the groups.
func (c *cluster) as(user string, groups ...string) *client {
	out := &client{}
	config := rest.CopyConfig(c.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: append(groups, "system:authenticated")}
	config.WarningHandler = out
	out.Interface = kubernetes.NewForConfigOrDie(config)
	return out
}

// until polls the condition until it holds. Its last error, or what it says is
// missing, comes back when patience is over.
func until(ctx context.Context, what string, condition func() (missing string, err error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		missing, err := condition()
		if err == nil && missing == "" {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not in time: %s: %s: %w", what, missing, errors.Join(err, ctx.Err()))
		case <-tick.C:
		}
	}
}

// runs returns when the pod runs.
func (c *cluster) runs(ctx context.Context, p *corev1.Pod) error {
	return until(ctx, p.Name+" runs", func() (string, error) {
		live, err := c.admin.CoreV1().Pods(p.Namespace).Get(ctx, p.Name, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		if live.Status.Phase != corev1.PodRunning {
			return "it is " + string(live.Status.Phase), nil
		}
		return "", nil
	})
}

// event returns when an event about the object says something with the text.
func (c *cluster) event(ctx context.Context, namespace, kind, text string) error {
	return until(ctx, "an event of a "+kind+" says "+text, func() (string, error) {
		events, err := c.admin.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return "", err
		}
		if slices.ContainsFunc(events.Items, func(e corev1.Event) bool {
			return e.InvolvedObject.Kind == kind && strings.Contains(e.Message, text)
		}) {
			return "", nil
		}
		return fmt.Sprintf("none of %d does", len(events.Items)), nil
	})
}
