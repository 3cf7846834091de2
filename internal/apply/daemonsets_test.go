package apply

import (
	"strings"
	"testing"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/compiler/admission"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy"
)

// TestDaemonSetsThatWait holds which DaemonSets are said to get the placement
// when they are next written.
func TestDaemonSetsThatWait(t *testing.T) {
	t.Parallel()
	set := Set{Name: "shop", Namespace: DefaultNamespace}
	marked := func(content string) map[string]string {
		return map[string]string{admission.Annotation("shop"): admission.Mark{Content: content, Policies: []string{"p"}}.String()}
	}
	workloads := []*workload.Workload{
		{Group: "apps", Kind: "Deployment", Namespace: "a", Name: "web"},
		{Kind: "Pod", Namespace: "a", Name: "bare"},
		{Group: "apps", Kind: "DaemonSet", Namespace: "a", Name: "fresh"},
		{Group: "apps", Kind: "DaemonSet", Namespace: "a", Name: "former", Annotations: marked("c1")},
		{Group: "apps", Kind: "DaemonSet", Namespace: "a", Name: "current", Annotations: marked("c2")},
		{Group: "apps", Kind: "DaemonSet", Namespace: "b", Name: "elsewhere", Annotations: marked("c1")},
	}
	step := Step{Surface: policy.SurfaceAdmission}
	scope := Scope{Namespaces: []string{"a"}}
	findings := step.outdated(set, scope, "c2", workloads)
	if len(findings) != 1 || findings[0].Subject != "DaemonSet a/former" {
		t.Errorf("outdated: %v", findings)
	}
	changes := []compiler.Change{
		{Workload: workloads[0], Effects: []compiler.Effect{{Field: "tolerations"}}},
		{Workload: workloads[2], Effects: []compiler.Effect{{Field: "tolerations"}}},
	}
	findings = step.nextWrites(scope, changes)
	if len(findings) != 1 || findings[0].Subject != "DaemonSet a/fresh" || !strings.Contains(findings[0].Fix.Message, "daemonset/fresh -n a") {
		t.Errorf("next writes: %v", findings)
	}
	if step.Observe = true; len(step.nextWrites(scope, changes))+len(step.outdated(set, scope, "c2", workloads)) > 0 {
		t.Error("observing writes nothing")
	}
}
