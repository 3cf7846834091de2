package naming_test

import (
	"strings"
	"testing"

	"github.com/kubectl-sched/kubectl-sched/internal/policytest/naming"
)

// FuzzNames holds that a name finds only what it names, and that every workload is
// found by the name that messages suggest for it.
func FuzzNames(f *testing.F) {
	f.Add("web", "Deployment", "shop", "web")
	f.Add("deployment/web", "StatefulSet", "shop", "web")
	f.Add("shop/deployment/web", "Deployment", "other", "web")
	f.Add("a/b/c/d", "", "", "")
	f.Add("x", "\u0130tefulSet", "shop", "web")
	f.Fuzz(func(t *testing.T, said, kind, namespace, name string) {
		workloads := []naming.Workload{
			{Kind: kind, Namespace: namespace, Name: name},
			{Kind: "Deployment", Namespace: "shop", Name: "web"},
		}
		find := func(said string) (found []naming.Workload) {
			for _, w := range workloads {
				if w.Is(said) {
					found = append(found, w)
				}
			}
			return found
		}
		for _, w := range find(said) {
			full := strings.ToLower(w.Namespace + "/" + w.Kind + "/" + w.Name)
			if full != strings.ToLower(said) && !strings.HasSuffix(full, "/"+strings.ToLower(said)) {
				t.Errorf("%q finds %s", said, full)
			}
		}
		if strings.ContainsAny(name+kind+namespace, "/") {
			return // no name of Kubernetes has one
		}
		for i, short := range naming.Shortest(workloads) {
			found := find(short)
			if len(found) == 0 || found[0] != workloads[i] && len(found) == 1 {
				t.Errorf("%q is suggested for %s and finds %v", short, workloads[i], found)
			}
		}
	})
}
