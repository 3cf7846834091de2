package snapshot

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Sort brings every list into the order of namespace and name (custom workloads
// also of group and kind), and the schedulers into that of their names.
func (s *Snapshot) Sort() {
	for _, k := range allKinds() {
		k.list.sort(s)
	}
	slices.SortStableFunc(s.Custom, func(a, b *unstructured.Unstructured) int {
		x, y := a.GroupVersionKind(), b.GroupVersionKind()
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()), cmp.Compare(x.Group, y.Group), cmp.Compare(x.Kind, y.Kind))
	})
	slices.SortStableFunc(s.Schedulers, func(a, b Scheduler) int { return cmp.Compare(a.Name, b.Name) })
	slices.Sort(s.Served)
	slices.SortStableFunc(s.Missing, func(a, b Missing) int { return cmp.Compare(a.Resource, b.Resource) })
}

func sortObjects[T any](list []T, object func(T) metav1.Object) {
	order := func(a, b T) int {
		x, y := object(a), object(b)
		return cmp.Or(cmp.Compare(x.GetNamespace(), y.GetNamespace()), cmp.Compare(x.GetName(), y.GetName()))
	}
	if !slices.IsSortedFunc(list, order) {
		slices.SortStableFunc(list, order)
	}
}
