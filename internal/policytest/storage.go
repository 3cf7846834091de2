package policytest

import (
	"slices"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-sched/kubectl-sched/internal/cluster/snapshot"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
)

// defaultClass is the storage class of claims that name none.
const defaultClass = "standard"

// provision gives a cluster that the test describes the storage classes that the
// workloads' claim templates ask for and nobody has written down. Volumes are made
// where their pods go: a test is about placement, and a cluster without storage has
// none. A snapshot says itself what there is.
func (r *run) provision(workloads []*workload.Workload) {
	if r.test.Snapshot != "" {
		return
	}
	for _, w := range workloads {
		templates, _, err := unstructured.NestedSlice(w.Object, "spec", "volumeClaimTemplates")
		if err != nil {
			continue // the workload's own to report
		}
		for _, t := range templates {
			claim, ok := t.(map[string]any)
			if !ok {
				continue
			}
			name, found, _ := unstructured.NestedString(claim, "spec", "storageClassName")
			if !found {
				name = defaultClass
			}
			if name == "" || slices.ContainsFunc(r.snapshot.StorageClasses, func(c *storagev1.StorageClass) bool { return c.Name == name }) {
				continue
			}
			class := &storagev1.StorageClass{
				ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: "described.by/the-test",
				VolumeBindingMode: new(storagev1.VolumeBindingWaitForFirstConsumer),
			}
			if !found {
				class.Annotations = map[string]string{snapshot.DefaultClassAnnotation: "true"}
			}
			r.snapshot.StorageClasses = append(r.snapshot.StorageClasses, class)
		}
	}
}
