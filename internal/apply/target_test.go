package apply

import (
	"testing"

	"github.com/kubectl-sched/kubectl-sched/internal/workload"
)

// TestEffectPointer holds that a field of a pod spec is found where the kind
// has it: also the parts of an affinity that lie in different places.
func TestEffectPointer(t *testing.T) {
	t.Parallel()
	object := func(apiVersion, kind string, spec map[string]any) map[string]any {
		return map[string]any{
			"apiVersion": apiVersion, "kind": kind,
			"metadata": map[string]any{"name": "x", "namespace": "d"}, "spec": spec,
		}
	}
	deployment := object("apps/v1", "Deployment", map[string]any{"template": map[string]any{"spec": map[string]any{}}})
	cluster := object("postgresql.cnpg.io/v1", "Cluster", map[string]any{"instances": int64(3)})
	tests := []struct {
		object      map[string]any
		field, want string
	}{
		{deployment, "tolerations", "/spec/template/spec/tolerations"},
		{deployment, "affinity.nodeAffinity.required", "/spec/template/spec/affinity/nodeAffinity/required"},
		{deployment, "terminationGracePeriodSeconds", "/spec/template/spec/terminationGracePeriodSeconds"},
		{cluster, "tolerations", "/spec/affinity/tolerations"},
		{cluster, "affinity.nodeAffinity.required", "/spec/affinity/nodeAffinity/required"},
		{cluster, "affinity.podAntiAffinity.required", "/spec/affinity/additionalPodAntiAffinity/required"},
	}
	for _, test := range tests {
		w, findings, ok := workload.FromObject(test.object, workload.Options{}, workload.Source{Live: true})
		if !ok || findings.HasErrors() {
			t.Fatalf("%v: %v", test.object, findings)
		}
		if got := effectPointer(&w.Templates[0], test.field); got != test.want {
			t.Errorf("%s of a %s: %s, want %s", test.field, w.Kind, got, test.want)
		}
	}
}
