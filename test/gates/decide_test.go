package gates_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kubectl-sched/kubectl-sched/internal/cluster"
	"github.com/kubectl-sched/kubectl-sched/internal/gating"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gates/approval"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gates/condition"
)

// plugin returns the plugin's client of a user.
func (l *lab) plugin(user string) *cluster.Client {
	l.Helper()
	client, err := cluster.Connect(l.as(user))
	if err != nil {
		l.Fatal(err)
	}
	return client
}

// inForce puts the approval policy in force, if no other test has.
func (l *lab) inForce() {
	l.Helper()
	policy, binding := approval.Objects(account)
	_, err := l.admin.AdmissionregistrationV1().ValidatingAdmissionPolicies().Create(l.Context(), policy, metav1.CreateOptions{})
	if err == nil || apierrors.IsAlreadyExists(err) {
		_, err = l.admin.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Create(l.Context(), binding, metav1.CreateOptions{})
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		l.Fatal(err)
	}
}

// TestDecide holds that gates are listed with who put them in, since when and why,
// and that decisions are written in the name of the user, where that one may.
func TestDecide(t *testing.T) {
	t.Parallel()
	l := newLab(t, "decide")
	l.inForce()
	read := []string{"get", "list", "watch"}
	l.grant(account,
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: append(read, "patch")},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"resourcequotas"}, Verbs: read},
		rbacv1.PolicyRule{APIGroups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create"}})
	events := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"list"}}
	l.grant("carla", append(approver(), events)...)
	l.grant("dora", editor()...)
	wait := &condition.Condition{Approval: &condition.Approval{}}
	for _, name := range []string{"a", "b", "c"} {
		l.create(name, wait, map[string]string{"app": name})
	}
	l.create("quota", &condition.Condition{Quota: &condition.Quota{Name: "none"}}, map[string]string{"app": "a"})
	l.controller()
	carla, dora, ctx := l.plugin("carla"), l.plugin("dora"), t.Context()
	all := gating.Query{Namespace: l.namespace}

	l.until("all gates are listed with why", func(ctx context.Context) error {
		waits, findings, err := gating.List(ctx, carla, all)
		if err != nil || len(findings) > 0 {
			t.Fatal(err, findings)
		}
		var got []string
		for _, w := range waits {
			if w.Since.IsZero() || w.Namespace != l.namespace {
				t.Fatalf("%+v", w)
			}
			got = append(got, fmt.Sprintf("%s %s %t %s %q %s", w.Pod, w.Name, w.Ours, w.For, w.Why, w.By))
		}
		want := []string{}
		for _, name := range []string{"a", "b", "c"} {
			want = append(want, name+` example.com/other false  "" gates.test`, name+` g true approval "nobody has approved it" `)
		}
		want = append(want, `quota example.com/other false  "" gates.test`, `quota g true quota "there is no resource quota \"none\"" `)
		if !slices.Equal(got, want) {
			return fmt.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		return nil
	})
	// The policy is in force a while after it is created.
	l.until("one who may not approve is refused", func(ctx context.Context) error {
		done, findings, err := gating.Decide(ctx, dora, gating.Query{Namespace: l.namespace, Names: []string{"a"}}, gating.Decision{Gate: "g", DryRun: true})
		if err != nil {
			t.Fatal(err)
		}
		if len(done) > 0 || len(findings) != 1 || !strings.Contains(findings[0].Message, "that takes the verb approve") {
			return fmt.Errorf("done %v, findings %q", done, findings.Error())
		}
		return nil
	})
	decide := func(q gating.Query, d gating.Decision) ([]gating.Decided, diag.Findings) {
		t.Helper()
		done, findings, err := gating.Decide(ctx, carla, q, d)
		if err != nil {
			t.Fatal(err)
		}
		return done, findings
	}
	selected := gating.Query{Namespace: l.namespace, Selector: labels.SelectorFromSet(labels.Set{"app": "a"})}
	done, findings := decide(selected, gating.Decision{Gate: "g", DryRun: true})
	if len(done) != 1 || done[0].Pod != "a" || done[0].By != "carla" {
		t.Errorf("done %v", done)
	}
	if len(findings) != 1 || !strings.Contains(findings[0].Subject, "quota") || !strings.Contains(findings[0].Message, "waits for quota") {
		t.Errorf("findings %v", findings)
	}
	if err := l.gated(ctx, "a", stranger, gate); err != nil {
		t.Errorf("after a dry run: %v", err)
	}
	// A denial keeps what would be approved, until somebody approves after all.
	if _, findings = decide(gating.Query{Namespace: l.namespace, Names: []string{"a", "b"}}, gating.Decision{Gate: gate, Deny: true}); len(findings) > 0 {
		t.Error(findings)
	}
	if done, _ := decide(gating.Query{Namespace: l.namespace, Names: []string{"a"}}, gating.Decision{Gate: "g", Deny: true}); len(done) != 1 || !done[0].Unchanged {
		t.Errorf("denied again: %v", done)
	}
	done, findings = decide(gating.Query{Namespace: l.namespace, Names: []string{"a", "c", "none"}}, gating.Decision{Gate: "g"})
	if len(done) != 2 || len(findings) != 1 || findings[0].Subject != "pod none" {
		t.Errorf("done %v, findings %v", done, findings)
	}
	for _, name := range []string{"a", "c"} {
		l.until(name+" is released", func(ctx context.Context) error { return l.gated(ctx, name, stranger) })
	}
	pod, err := l.admin.CoreV1().Pods(l.namespace).Get(ctx, "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if by, no := condition.ApprovedBy(pod.Annotations, gate), condition.DeniedBy(pod.Annotations, gate); by != "carla" || no != "" {
		t.Errorf("approved by %q, denied by %q", by, no)
	}
	if err := l.gated(ctx, "b", stranger, gate); err != nil {
		t.Error(err)
	}
	_, _, err = gating.Decide(ctx, carla, all, gating.Decision{Gate: "gg"})
	if err == nil || !strings.Contains(err.Error(), `did you mean "g"?`) {
		t.Errorf("another gate: %v", err)
	}
	_, _, err = gating.Decide(ctx, carla, gating.Query{Namespace: corev1.NamespaceDefault}, gating.Decision{Gate: "g"})
	if err == nil || !strings.Contains(err.Error(), "nor at any other gate") || errors.Is(err, context.Canceled) {
		t.Errorf("a namespace without gates: %v", err)
	}
}
