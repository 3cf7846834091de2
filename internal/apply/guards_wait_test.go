package apply

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/compiler/guard"
	"github.com/kubectl-sched/kubectl-sched/policy"
)

// guarding are the objects that guard a pool of the lab's.
func (l *lab) guarding(how policy.Guard, granted string, exempt policy.GuardExempt) []compiler.Object {
	p := guard.Pool{
		Name: "gpu", Taint: corev1.Taint{Key: "example.com/" + l.namespace, Effect: corev1.TaintEffectNoSchedule},
		Guard: how, Grants: policy.Grants{Namespaces: []string{granted}}, Exempt: exempt, Set: l.set.Label(),
	}
	var objects []compiler.Object
	for _, made := range p.Policies() {
		objects = append(objects, compiler.Object{Object: made.Policy}, compiler.Object{Object: made.Binding})
	}
	return objects
}

// TestGuardsAreInForceAfterTheWait changes the guard of a pool on the surface live,
// and holds after each wait that the very next pod meets the new one.
func TestGuardsAreInForceAfterTheWait(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	a := l.applier(nil)
	l.untilPodsMay(l.namespace)
	intrude := func() string {
		t.Helper()
		heard := &warnings{}
		pod := probePod("")
		pod.Name, pod.GenerateName, pod.Annotations = "intruder", "", nil
		pod.Spec.Tolerations = []corev1.Toleration{{Key: "example.com/" + l.namespace, Operator: corev1.TolerationOpExists}}
		err := l.client.Kube.CoreV1().RESTClient().Post().Namespace(l.namespace).Resource("pods").
			Param("dryRun", metav1.DryRunAll).WarningHandler(heard).Body(pod).Do(t.Context()).Error()
		const complaint = `pool "gpu" is dedicated`
		switch {
		case err != nil && strings.Contains(err.Error(), complaint):
			return "refused"
		case err != nil:
			t.Fatal(err)
		case strings.Contains(strings.Join(heard.texts, ""), complaint):
			return "warned"
		}
		return "taken"
	}
	everybody := policy.GuardExempt{Groups: []string{"system:authenticated"}}
	for _, step := range []struct {
		what    string
		objects []compiler.Object
		want    string
	}{
		{"denying", l.guarding(policy.GuardDeny, "elsewhere", policy.GuardExempt{}), "refused"},
		{"granting", l.guarding(policy.GuardDeny, l.namespace, policy.GuardExempt{}), "taken"},
		{"warning", l.guarding(policy.GuardWarn, "elsewhere", policy.GuardExempt{}), "warned"},
		{"denying once more", l.guarding(policy.GuardDeny, "elsewhere", policy.GuardExempt{}), "refused"},
		{"noting", l.guarding(policy.GuardAudit, "elsewhere", policy.GuardExempt{}), "taken"},
		{"denying all but who applies", l.guarding(policy.GuardDeny, "elsewhere", everybody), "taken"},
		{"denying again", l.guarding(policy.GuardDeny, "elsewhere", policy.GuardExempt{}), "refused"},
		{"taking it away", nil, "taken"},
	} {
		changes, findings := l.prepareObjects(a, step.objects)
		if findings.HasErrors() {
			t.Fatal(findings)
		}
		if _, findings, err := a.Run(t.Context(), changes, RunOptions{}); err != nil || findings.HasErrors() {
			t.Fatal(findings, err)
		}
		findings, err := a.WaitInForce(t.Context(), changes, time.Minute)
		if err != nil || len(findings) > 0 {
			t.Errorf("%s: %v, %v", step.what, findings, err)
		}
		if got := intrude(); got != step.want {
			t.Errorf("%s: right after the wait a pod is %s, want %s", step.what, got, step.want)
		}
	}
	l.delete(a)
}
