package compiler

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy"
)

// TestIndex checks that the index finds exactly the rules that selection finds
// one by one.
func TestIndex(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		list := func(name string, from ...string) []string {
			return rapid.SliceOfN(rapid.SampledFrom(from), 0, 2).Draw(t, name)
		}
		labels := func(name string) map[string]policy.Values {
			values := list(name, "a", "b", "a*", "*")
			if len(values) == 0 {
				return nil
			}
			return map[string]policy.Values{rapid.SampledFrom([]string{"x", "y"}).Draw(t, name+" key"): values}
		}
		var draw func(name string, depth int) policy.Workloads
		draw = func(name string, depth int) policy.Workloads {
			w := policy.Workloads{
				Namespaces:      orNil(list(name+" namespaces", "a", "b", "*", "kube-system", "kube-*")),
				NamespaceLabels: labels(name + " namespaceLabels"),
				Kinds:           orNil(list(name+" kinds", "Pod", "apps/Deployment", "core/Pod", "*/Pod", "Job", "apps/*")),
				Names:           orNil(list(name+" names", "a", "b", "a*")),
				Labels:          labels(name + " labels"),
			}
			if l := labels(name + " pods"); l != nil {
				w.Pods = &policy.Pods{Labels: l}
			}
			if depth > 0 && rapid.Bool().Draw(t, name+" not") {
				n := draw(name+" not", depth-1)
				w.Not = &n
			}
			return w
		}
		f := facts{Capabilities: capability.Capabilities{Namespaces: map[string]map[string]string{"a": {"x": "a"}, "kube-system": nil}, NamespacesKnown: rapid.Bool().Draw(t, "known")}}
		var rules []*rule
		for range rapid.IntRange(1, 4).Draw(t, "rules") {
			r := &rule{Policy: &policy.Policy{}, selects: newSelection(draw("w", 1), false)}
			r.anchors = r.selects.anchors()
			rules = append(rules, r)
		}
		x := newIndex(f, rules)
		for range 3 {
			own := func(name string) map[string]string {
				return map[string]string{rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, name+" key"): rapid.SampledFrom([]string{"a", "b", "ab"}).Draw(t, name)}
			}
			kind := rapid.SampledFrom([][2]string{{"", "Pod"}, {"apps", "Deployment"}, {"batch", "Job"}}).Draw(t, "kind")
			w := &workload.Workload{
				Group: kind[0], Kind: kind[1], Name: rapid.SampledFrom([]string{"a", "b", "ab"}).Draw(t, "name"),
				Namespace: rapid.SampledFrom([]string{"a", "b", "kube-system"}).Draw(t, "namespace"), Labels: own("labels"),
			}
			tpl := &workload.Template{Labels: own("podLabels")}
			selected, uncertain := x.matching(w, tpl)
			for _, r := range rules {
				want := r.selects.selects(f, w, tpl)
				if got := slices.Contains(selected, r); got != (want == yes) {
					t.Fatalf("%+v: selected by %+v is %v, want %v", w, r.selects, got, want)
				}
				if got := slices.Contains(uncertain, r); got != (want == unknown) {
					t.Fatalf("%+v: uncertain by %+v is %v, want %v", w, r.selects, got, want)
				}
			}
		}
	})
}

func orNil(s []string) []string {
	if len(s) == 0 {
		return nil
	}
	return s
}
