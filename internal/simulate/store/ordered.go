package store

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// ordered is an index that lists objects by namespace and name. Client-go's lists
// them as a map has them, and plugins take the first that will do: where two
// CSIStorageCapacities are about one node, say, a score hangs on the order.
type ordered struct{ cache.Indexer }

// List returns all objects, in order.
func (o ordered) List() []any { return inOrder(o.Indexer.List()) }

// Index returns the objects that share a value of the index with the given one, in
// order. The error is client-go's.
func (o ordered) Index(index string, like any) ([]any, error) {
	found, err := o.Indexer.Index(index, like)
	return inOrder(found), err
}

// ByIndex returns the objects with the value, in order. The error is client-go's.
func (o ordered) ByIndex(index, value string) ([]any, error) {
	found, err := o.Indexer.ByIndex(index, value)
	return inOrder(found), err
}

func inOrder(objects []any) []any {
	if len(objects) < 2 {
		return objects
	}
	slices.SortFunc(objects, func(a, b any) int {
		x, isObject := a.(metav1.Object)
		y, areObjects := b.(metav1.Object)
		if !isObject || !areObjects {
			return 0 // the store holds objects alone
		}
		if c := strings.Compare(x.GetNamespace(), y.GetNamespace()); c != 0 {
			return c
		}
		return strings.Compare(x.GetName(), y.GetName())
	})
	return objects
}
