package scheduler_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/podgroup"
)

// tornTimeout is the timeout of a gang that is to be seen as bound in part.
const tornTimeout = 5 * time.Second

// TestFailedBindIsRetriedFirst holds that a member whose Binding was refused gets
// its seat when it is not any more, though another pod waits for room.
func TestFailedBindIsRetriedFirst(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, p *plane) {
		l := newLab(t, p, 3)
		allow := l.refuseBinding("torn-2")
		l.podGroup("torn", 3)
		for i := range 3 {
			l.create(l.member("torn", i))
		}
		l.untilBound("torn", 2)
		l.create(l.pod("single", nil))
		l.untilUnschedulable("single", 1)
		allow()
		l.untilBound("torn", 3)
		if bound := l.bound("single"); len(bound) > 0 {
			t.Error("another pod has the seat of a member whose bind failed")
		}
	})
}

// TestPartIsReported holds that a gang which stays bound in part is reported after
// its timeout and left alone, and is whole as soon as it can be.
func TestPartIsReported(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, p *plane) {
		l := newLab(t, p, 3)
		allow := l.refuseBinding("torn-2")
		l.podGroupOf(podGroups, "torn", 3, tornTimeout)
		for i := range 3 {
			l.create(l.member("torn", i))
		}
		l.untilEvent("PodGroup", "torn", podgroup.ReasonPartial, "gang torn is bound in part after 5s: 3 of 3 members exist, 2 have a node")
		if bound := l.bound("torn"); len(bound) != 2 {
			t.Errorf("%v are bound, want 2", bound)
		}
		allow()
		l.untilBound("torn", 3)
	})
}

// TestPartIsEvicted holds that where a profile says so the bound members of a gang
// that stays bound in part are evicted, and that it starts whole when they are
// there anew.
func TestPartIsEvicted(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, p *plane) {
		l := newLab(t, p, 3)
		allow := l.refuseBinding("torn-2")
		l.podGroupOf(podGroups, "torn", 3, tornTimeout)
		member := func(i int) *corev1.Pod {
			pod := l.member("torn", i)
			pod.Spec.SchedulerName = evictName
			return pod
		}
		for i := range 3 {
			l.create(member(i))
		}
		l.untilBound("torn", 2)
		l.until("the bound members evicted", func(context.Context) (bool, string) {
			pods := l.pods("torn")
			return len(pods) == 1 && pods[0].Name == "torn-2", fmt.Sprint(l.bound("torn"))
		})
		allow()
		for i := range 2 {
			l.create(member(i))
		}
		l.untilBound("torn", 3)
	})
}

// refuseBinding has the API server refuse the Bindings of the pod, until the
// function that it returns is called.
func (l *lab) refuseBinding(name string) (allow func()) {
	l.Helper()
	api := l.client.AdmissionregistrationV1()
	meta := metav1.ObjectMeta{Name: l.namespace}
	const message = "refused by the test"
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionregistrationv1.MatchResources{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: l.namespace}},
			ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods/binding"}},
			}}},
		},
		Validations: []admissionregistrationv1.Validation{{Expression: fmt.Sprintf("request.name != %q", name), Message: message}},
	}}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta, Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: meta.Name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
	}}
	if _, err := api.ValidatingAdmissionPolicies().Create(l.Context(), policy, metav1.CreateOptions{}); err != nil {
		l.Fatal(err)
	}
	if _, err := api.ValidatingAdmissionPolicyBindings().Create(l.Context(), binding, metav1.CreateOptions{}); err != nil {
		l.Fatal(err)
	}
	remove := func(ctx context.Context) {
		_ = api.ValidatingAdmissionPolicyBindings().Delete(ctx, meta.Name, metav1.DeleteOptions{})
		_ = api.ValidatingAdmissionPolicies().Delete(ctx, meta.Name, metav1.DeleteOptions{})
	}
	l.Cleanup(func() {
		ctx, cancel := afterwards()
		defer cancel()
		remove(ctx)
	})
	l.until("Bindings refused", func(ctx context.Context) (bool, string) {
		// There is no such pod yet: what does not refuse says so.
		try := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: name}, Target: corev1.ObjectReference{Kind: "Node", Name: "none"}}
		err := l.client.CoreV1().Pods(l.namespace).Bind(ctx, try, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), message), fmt.Sprint(err)
	})
	return func() { remove(l.Context()) }
}
