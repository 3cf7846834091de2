package policytest

import (
	"strings"
	"testing"

	"github.com/kubectl-sched/kubectl-sched/internal/simulate"
)

// FuzzNames holds that a name finds only what it names, and that every workload is
// found by the name that messages suggest for it.
func FuzzNames(f *testing.F) {
	f.Add("web", "Deployment", "shop", "web")
	f.Add("deployment/web", "StatefulSet", "shop", "web")
	f.Add("shop/deployment/web", "Deployment", "other", "web")
	f.Add("a/b/c/d", "", "", "")
	f.Fuzz(func(t *testing.T, said, kind, namespace, name string) {
		n := names{workloads: []simulate.Ref{
			{Kind: kind, Namespace: namespace, Name: name},
			{Kind: "Deployment", Namespace: "shop", Name: "web"},
		}}
		for _, ref := range n.workload(said) {
			full := strings.ToLower(ref.Namespace + "/" + ref.Kind + "/" + ref.Name)
			if full != strings.ToLower(said) && !strings.HasSuffix(full, "/"+strings.ToLower(said)) {
				t.Errorf("%q finds %s", said, full)
			}
		}
		if strings.ContainsAny(name+kind+namespace, "/") {
			return // no name of Kubernetes has one
		}
		for i, known := range n.known() {
			found := n.workload(known)
			if len(found) == 0 || found[0] != n.workloads[i] && len(found) == 1 {
				t.Errorf("%q is suggested for %s and finds %v", known, n.workloads[i], found)
			}
		}
	})
}
