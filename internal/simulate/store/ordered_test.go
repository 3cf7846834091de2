package store_test

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/kubectl-sched/kubectl-sched/internal/simulate/store"
)

// Plugins may take the first of a list that will do, so lists must have an order.
func TestListsHaveAnOrder(t *testing.T) {
	t.Parallel()
	s := store.New(fake.NewClientset())
	services := s.Factory().Core().V1().Services()
	services.Informer()
	var want []string
	for i := range 40 {
		ns, name := fmt.Sprintf("ns-%d", i*7%4), fmt.Sprintf("s-%02d", i*11%40)
		want = append(want, ns+"/"+name)
		if err := s.Put(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(want)
	names := func(list []*corev1.Service, err error) (names []string) {
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range list {
			names = append(names, s.Namespace+"/"+s.Name)
		}
		return names
	}
	if got := names(services.Lister().List(labels.Everything())); !slices.Equal(got, want) {
		t.Errorf("all: %v", got)
	}
	if got := names(services.Lister().Services("ns-1").List(labels.Everything())); !slices.IsSorted(got) || len(got) != 10 {
		t.Errorf("of a namespace: %v", got)
	}
}
