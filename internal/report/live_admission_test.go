package report_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-sched/kubectl-sched/internal/apply"
	"github.com/kubectl-sched/kubectl-sched/internal/report"
	"github.com/kubectl-sched/kubectl-sched/policy"
)

func admissionStatus(observe bool, nowhere int) *apply.Status {
	return &apply.Status{
		Set:   apply.Set{Name: "shop", Namespace: "kube-system"},
		Scope: apply.Scope{Folders: []string{"placement"}, Namespaces: []string{"shop"}},
		Admission: &apply.AdmissionStatus{
			Step: apply.Step{Surface: policy.SurfaceAdmission, Observe: observe}, Content: "5679ce05d5", Expires: "2027-01-31",
			Pods: 16, Placed: 8,
			Policies: []apply.PolicyStatus{
				{Policy: "batch", Selected: 3, Predating: 3, Pending: 3},
				{Policy: "web-ha", Selected: 9, Predating: 2, Pending: 4, Nowhere: nowhere, Placed: map[int]int{0: 1, 3: 2, 4: 5}},
			},
		},
	}
}

func TestAdmissionStatus(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		observe bool
		nowhere int
		want    string
	}{
		"acting": {false, 2, `set shop (state in namespace kube-system): policies in placement, namespace shop

places new pods in namespace shop; pods that run stay as they are
an exception in it ends on 2027-01-31; apply again then
16 running pods there, 8 of them placed by it

POLICY   FOR PODS   PLACED   PREDATE IT   BY REVISION
batch    3          0        3            <none>
web-ha   9          8        2            4: 5, 3: 2, older: 1

0 workloads, 0 drifts, 0 violations
`},
		"observing": {true, 0, `set shop (state in namespace kube-system): policies in placement, namespace shop

observes in namespace shop: changes no pod, and the audit log says which it
    would
an exception in it ends on 2027-01-31; apply again then
16 running pods there, 8 of them placed by it

POLICY   FOR PODS   PLACED   WOULD CHANGE   BY REVISION
batch    3          0        3              <none>
web-ha   9          8        4              4: 5, 3: 2, older: 1

0 workloads, 0 drifts, 0 violations
`},
		"observing, and some pods would fit no node": {true, 2, `set shop (state in namespace kube-system): policies in placement, namespace shop

observes in namespace shop: changes no pod, and the audit log says which it
    would
an exception in it ends on 2027-01-31; apply again then
16 running pods there, 8 of them placed by it

POLICY   FOR PODS   PLACED   WOULD CHANGE   THEN NO NODE   BY REVISION
batch    3          0        3              0              <none>
web-ha   9          8        4              2              4: 5, 3: 2, older: 1

0 workloads, 0 drifts, 0 violations
`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			if err := report.Status(&out, report.Text, admissionStatus(test.observe, test.nowhere), report.Options{}); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(test.want, out.String()); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestAdmissionStatusForTools(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := report.Status(&out, report.JSON, admissionStatus(false, 0), report.Options{}); err != nil {
		t.Fatal(err)
	}
	var document struct {
		Admission struct {
			Surface, Content, Expires string
			Pods, Placed              int
			Policies                  []struct {
				Policy                      string
				Selected, Placed, Predating int
				ByRevision                  []struct{ Revision, Pods int }
			}
		}
	}
	if err := json.Unmarshal(out.Bytes(), &document); err != nil {
		t.Fatal(err)
	}
	a := document.Admission
	if a.Surface != "admission" || a.Content != "5679ce05d5" || a.Pods != 16 || a.Placed != 8 || a.Expires != "2027-01-31" || len(a.Policies) != 2 {
		t.Errorf("it is %+v", a)
	}
	if web := a.Policies[1]; web.Selected != 9 || web.Placed != 8 || web.Predating != 2 || len(web.ByRevision) != 3 || web.ByRevision[0].Revision != 4 {
		t.Errorf("the policy is %+v", web)
	}
}
