package adopt

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/compiler/nodeexpr"
)

// sortedKeys returns the keys of a map in order.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// canonical writes an API value so that two which say the same in other words, or
// in another order, come out alike. It forgets nothing that a scheduler reads.
func canonical(value any) any {
	switch v := value.(type) {
	case corev1.Toleration:
		v.Operator = cmp.Or(v.Operator, corev1.TolerationOpEqual)
		return v
	case corev1.PreferredSchedulingTerm:
		if e, err := nodeexpr.FromTerm(v.Preference); err == nil {
			if terms := e.Terms(); len(terms) == 1 {
				v.Preference = terms[0]
			}
		}
		return v
	case corev1.TopologySpreadConstraint:
		v.LabelSelector = compiler.CanonicalSelector(v.LabelSelector)
		v.MatchLabelKeys = sorted(v.MatchLabelKeys)
		return v
	case podTerm:
		v.Term.LabelSelector = compiler.CanonicalSelector(v.Term.LabelSelector)
		v.Term.NamespaceSelector = compiler.CanonicalSelector(v.Term.NamespaceSelector)
		v.Term.Namespaces = sorted(v.Term.Namespaces)
		v.Term.MatchLabelKeys = sorted(v.Term.MatchLabelKeys)
		v.Term.MismatchLabelKeys = sorted(v.Term.MismatchLabelKeys)
		return v
	default:
		return value
	}
}

// sorted returns the values in order, nil for none.
func sorted(values []string) []string {
	if len(values) == 0 {
		return nil
	}
	return slices.Compact(slices.Sorted(slices.Values(values)))
}

// isEmpty reports whether the selector selects by nothing.
func isEmpty(s *metav1.LabelSelector) bool {
	return s == nil || len(s.MatchLabels)+len(s.MatchExpressions) == 0
}
