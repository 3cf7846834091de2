package apply

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kubectl-sched/kubectl-sched/internal/cluster"
	"github.com/kubectl-sched/kubectl-sched/internal/sandbox"
	"github.com/kubectl-sched/kubectl-sched/internal/sandbox/sandboxtest"
)

// TestServerGoesAwayMidApply kills the API server in the middle of a run. The
// run ends with an error that says how far it came, and running it again
// finishes it.
func TestServerGoesAwayMidApply(t *testing.T) {
	t.Parallel()
	sb := sandboxtest.ForTest(t, sandbox.Options{})
	l := labOn(t, sb)
	var names []string
	for i := range 20 {
		name := fmt.Sprintf("web-%02d", i)
		names = append(names, name)
		l.create(deployment(name))
	}
	policies := matching(tolerate("gpu"), names...)
	var once sync.Once
	patches := 0
	var mu sync.Mutex
	a := l.applier(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPatch && r.URL.Query().Get("dryRun") == "" {
				mu.Lock()
				patches++
				kill := patches == 10
				mu.Unlock()
				if kill {
					once.Do(func() {
						if err := sb.Kill(sandbox.APIServer); err != nil {
							t.Error(err)
						}
					})
				}
			}
			return next.RoundTrip(r)
		})
	})
	changes, findings := l.prepare(a, policies)
	if findings.HasErrors() {
		t.Fatal(findings)
	}
	_, _, err := a.Run(t.Context(), changes, RunOptions{})
	if err == nil || !strings.Contains(err.Error(), "of 20 writes, in revision 1; run the command again to finish it") {
		t.Fatalf("error is %v", err)
	}
	if err := sb.StartPart(t.Context(), sandbox.APIServer); err != nil {
		t.Fatal(err)
	}
	if latest := l.state().Latest(); latest == nil || latest.State != Open {
		t.Errorf("the interrupted revision is %+v, want it open", latest)
	}
	l.apply(l.applier(nil), policies)
	if latest := l.state().Latest(); latest.State != Complete || len(latest.Items) != 20 {
		t.Errorf("the revision after it is %s with %d items", latest.State, len(latest.Items))
	}
	if got := l.apply(l.applier(nil), policies); !got.Unchanged {
		t.Errorf("and then: %+v", got)
	}
}

func TestUnreachableServer(t *testing.T) {
	t.Parallel()
	client, err := cluster.Connect(&rest.Config{Host: "https://127.0.0.1:1", Timeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if _, findings := client.Capabilities(t.Context()); !findings.HasErrors() || !strings.Contains(findings[0].Message, "127.0.0.1:1") {
		t.Errorf("capabilities: %v", findings)
	}
	if _, findings := client.Workloads(t.Context(), cluster.Scope{}); !findings.HasErrors() {
		t.Errorf("workloads: %v", findings)
	}
	if _, err := LoadState(t.Context(), client, Set{Name: "x", Namespace: "y"}); err == nil {
		t.Error("state: no error")
	}
}

// as returns the lab for a user who may do what the rules say in the lab's
// namespace, and nothing else.
func (l *lab) as(user string, rules ...rbacv1.PolicyRule) *lab {
	l.Helper()
	rbac := l.client.Kube.RbacV1()
	meta := metav1.ObjectMeta{Name: user, Namespace: l.namespace}
	if _, err := rbac.Roles(l.namespace).Create(l.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{}); err != nil {
		l.Fatal(err)
	}
	_, err := rbac.RoleBindings(l.namespace).Create(l.Context(), &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}, metav1.CreateOptions{})
	if err != nil {
		l.Fatal(err)
	}
	other := *l
	other.config = rest.CopyConfig(l.config)
	other.config.Impersonate = rest.ImpersonationConfig{UserName: user}
	if other.client, err = cluster.Connect(other.config); err != nil {
		l.Fatal(err)
	}
	// The API server hears of new roles by watching them.
	last := rules[len(rules)-1]
	l.eventually("the role of "+user+" holds", func(ctx context.Context) bool {
		allowed, _, err := other.applier(nil).allowed(ctx, permission{last.Verbs[0], last.APIGroups[0], last.Resources[0], l.namespace})
		return err == nil && allowed
	})
	return &other
}

func rule(verbs string, group string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: strings.Split(verbs, ","), APIGroups: []string{group}, Resources: resources}
}

func TestNamespacedPermissionsSuffice(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	u := l.create(deployment("web"))
	user := l.as("dev-"+l.namespace,
		rule("get,list,create,update,patch,delete", "", "configmaps"),
		rule("get,list", "", "pods"), rule("get,list", "batch", "jobs", "cronjobs"),
		rule("get,list,patch", "apps", "deployments", "daemonsets", "statefulsets", "replicasets"))
	user.set.Namespace = l.namespace
	a := user.applier(nil)
	// The cluster's facts are not theirs to read: that is said, and no failure.
	caps, findings := user.client.Capabilities(t.Context())
	if findings.HasErrors() || len(findings) != 1 || !strings.HasPrefix(findings[0].Message, "you may not list nodes, namespaces, persistentvolumes, priorityclasses, ") ||
		caps.NodesKnown || caps.Minor == 0 {
		t.Errorf("capabilities: %+v, %v", caps, findings)
	}
	user.apply(a, matching(tolerate("gpu"), "web"))
	if keys := tolerationKeys(l.get(u)); keys != "gpu" {
		t.Errorf("tolerations are %q", keys)
	}
	if label := l.get(u).GetLabels()["kubectl-sched.github.io/set"]; label != user.set.Name+"."+l.namespace {
		t.Errorf("label is %q", label)
	}
	if by := user.state().Latest().By; by != "dev-"+l.namespace {
		t.Errorf("the revision is by %q", by)
	}
	user.delete(a)
	l.sameObject(u)
}

func TestMissingPermissionsStopBeforeTheFirstWrite(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	u := l.create(deployment("web"))
	read := []rbacv1.PolicyRule{
		rule("get,list", "", "pods", "configmaps"), rule("get,list", "batch", "jobs", "cronjobs"),
		rule("get,list", "apps", "deployments", "daemonsets", "statefulsets", "replicasets"),
	}
	user := l.as("reader-"+l.namespace, read...)
	user.set.Namespace = l.namespace
	_, findings := user.prepare(user.applier(nil), matching(tolerate("gpu"), "web"))
	if len(findings) != 1 || findings[0].Rule != "apply/no-permission" || !strings.Contains(findings[0].Message, "deployments") {
		t.Errorf("may not patch: %v", findings)
	}

	patcher := l.as("patcher-"+l.namespace, append(read, rule("patch", "apps", "deployments"))...)
	patcher.set.Namespace = l.namespace
	a := patcher.applier(nil)
	changes, findings := patcher.prepare(a, matching(tolerate("gpu"), "web"))
	if findings.HasErrors() {
		t.Fatal(findings)
	}
	_, findings, err := a.Run(t.Context(), changes, RunOptions{})
	if err != nil || !findings.HasErrors() || findings[0].Message != "you may not create, update, patch, delete configmaps in namespace "+l.namespace {
		t.Errorf("may not keep state: %v, %v", findings, err)
	}
	if keys := tolerationKeys(l.get(u)); keys != "" {
		t.Errorf("it was written all the same: %q", keys)
	}
	other := *patcher
	other.set.Namespace = DefaultNamespace
	if _, err := LoadState(t.Context(), other.client, other.set); err == nil || !strings.Contains(err.Error(), "--set-namespace") {
		t.Errorf("state elsewhere: %v", err)
	}
}

// TestManyWorkloads applies to 200 workloads. A run asks twice for each (a dry
// run and the write), and once for all where nothing changes.
func TestManyWorkloads(t *testing.T) {
	t.Parallel()
	sb := sandboxtest.ForTest(t, sandbox.Options{})
	l := labOn(t, sb)
	const many = 200
	var names []string
	for i := range many {
		name := fmt.Sprintf("web-%03d", i)
		names = append(names, name)
		l.create(strings.Replace(deployment(name), "replicas: 2", "replicas: 0", 1))
	}
	policies := matching(all(tolerate("gpu"), require("class", "gpu")), names...)
	measure := func(what string, most int, run func(*Applier)) {
		t.Helper()
		log := &requestLog{}
		start := time.Now()
		run(l.applier(log.wrap))
		t.Logf("%s: %d requests in %s", what, log.total(), time.Since(start))
		if log.total() > most {
			t.Errorf("%s: %d requests, want at most %d", what, log.total(), most)
		}
	}
	// Besides the two for each there is some discovery, listing, asking for
	// permissions and keeping of state; and a repetition for whatever a controller
	// writes at the same time.
	const rest = 60
	measure("all change", 2*many+rest, func(a *Applier) {
		if got := l.apply(a, policies); got.Updated != many {
			t.Errorf("outcome is %+v", got)
		}
	})
	measure("nothing changes", rest, func(a *Applier) {
		if got := l.apply(a, policies); !got.Unchanged {
			t.Errorf("outcome is %+v", got)
		}
	})
	// A withdrawal fails and is repeated whenever the object has changed meanwhile,
	// and the controllers are still writing the status of all of them.
	measure("all go back", 8*many+rest, func(a *Applier) {
		if got := l.apply(a); got.Withdrawn != many {
			t.Errorf("outcome is %+v", got)
		}
	})
}
