package apply

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-sched/kubectl-sched/compiler/admission"
	"github.com/kubectl-sched/kubectl-sched/policy"
)

// TestGuardsOfSomeNamespaces holds that whoever restricts a guard to namespaces
// is told that it keeps nobody out elsewhere.
func TestGuardsOfSomeNamespaces(t *testing.T) {
	t.Parallel()
	binding := func(name, role string) wantedObject {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "admissionregistration.k8s.io/v1", "kind": validatingBind}}
		o.SetName(name)
		if role != "" {
			o.SetLabels(map[string]string{admission.RoleLabel: role})
		}
		return wantedObject{object: o}
	}
	all := []wantedObject{binding("audit", admission.RoleAudit), binding("guard", "")}
	step := Step{Surface: policy.SurfaceAdmission}
	objects, findings, err := step.objects(all, Scope{Namespaces: []string{"shop"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(findings) != 1 || findings[0].Rule != "apply/guard-narrowed" || !strings.Contains(findings[0].Message, "shop") || !strings.HasSuffix(findings[0].Message, ": guard") {
		t.Errorf("findings: %v", findings)
	}
	for _, w := range objects {
		list, _, err := unstructured.NestedSlice(w.object.Object, "spec", "matchResources", "namespaceSelector", "matchExpressions")
		if err != nil || len(list) != 1 {
			t.Errorf("%s acts by %v, %v", w.object.GetName(), list, err)
		}
	}
	if objects, findings, err = step.objects(all, Scope{}); err != nil || len(objects) != 2 || len(findings) > 0 {
		t.Errorf("everywhere: %d objects, %v, %v", len(objects), findings, err)
	}
}
