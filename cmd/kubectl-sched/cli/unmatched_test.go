package cli

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy"
)

// What is warned of a policy that selects nothing goes by what was read.
func TestUnmatchedOfAPart(t *testing.T) {
	t.Parallel()
	placement := &policy.Placement{Policies: []policy.Policy{
		{Name: "misspelled", Workloads: policy.Workloads{Namespaces: []string{"shop"}, Names: []string{"wbe"}}},
		{Name: "gone", Workloads: policy.Workloads{Namespaces: []string{"shop"}, Names: []string{"checkout"}}},
		{Name: "elsewhere", Workloads: policy.Workloads{Namespaces: []string{"shop", "data"}}},
		{Name: "by-glob", Workloads: policy.Workloads{Namespaces: []string{"sh*p"}, Names: []string{"checkout"}}},
		{Name: "anywhere", Workloads: policy.Workloads{Names: []string{"checkout"}}},
	}}
	var names []string
	for _, p := range placement.Policies {
		names = append(names, p.Name)
	}
	plans := []clusterPlan{{
		Plan:      &compiler.Plan{Policies: names, Unmatched: names},
		Workloads: []*workload.Workload{{Kind: "Deployment", Namespace: "shop", Name: "web"}, {Kind: "Deployment", Namespace: "data", Name: "checkuot"}},
	}}
	remove := "selects no workload; mend the selector, or remove the policy if it is no longer needed"
	misspelled := `selects no workload; there is none of the name "wbe": did you mean "web"?`
	anywhere := `selects no workload; there is none of the name "checkout": did you mean "checkuot"?`
	for name, test := range map[string]struct {
		read extent
		want map[string]string
	}{
		"all":            {extent{}, map[string]string{"misspelled": misspelled, "gone": remove, "elsewhere": remove, "by-glob": remove, "anywhere": anywhere}},
		"a file":         {extent{part: true}, map[string]string{"misspelled": misspelled, "anywhere": anywhere}},
		"one namespace":  {extent{namespaces: []string{"shop"}}, map[string]string{"misspelled": misspelled, "gone": remove, "anywhere": anywhere}},
		"two namespaces": {extent{namespaces: []string{"shop", "data"}}, map[string]string{"misspelled": misspelled, "gone": remove, "elsewhere": remove, "anywhere": anywhere}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := map[string]string{}
			for _, f := range unmatched(placement, plans, test.read) {
				got[f.Policy] = f.Message
			}
			if d := cmp.Diff(test.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}
