package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
)

// TestSchedulers holds that the bundled scheduler is found by its label, with the
// profiles that it says it serves, and only where all of its replicas serve them.
func TestSchedulers(t *testing.T) {
	t.Parallel()
	deployment := func(namespace, name, label, profiles string, updated, available int32) *appsv1.Deployment {
		return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: name, Labels: map[string]string{"app.kubernetes.io/name": label},
				Annotations: map[string]string{"kubectl-sched.github.io/profiles": profiles},
			},
			Spec:   appsv1.DeploymentSpec{Replicas: ptr.To[int32](2)},
			Status: appsv1.DeploymentStatus{Replicas: 2, UpdatedReplicas: updated, AvailableReplicas: available},
		}
	}
	kube := fake.NewClientset(
		deployment("scheduling", "placement", "placement-scheduler", "placement-pack, placement-gang,", 2, 2),
		deployment("kube-system", "bare", "placement-scheduler", "", 2, 2),
		deployment("kube-system", "down", "placement-scheduler", "placement-pack", 2, 1),
		deployment("kube-system", "half", "placement-scheduler", "placement-pack", 1, 2),
		deployment("shop", "web", "web", "placement-pack", 2, 2),
	)
	got, err := (&Client{Kube: kube}).schedulers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []capability.Scheduler{
		{Name: "bare", Bundled: true, ProfilesKnown: true},
		{Name: "placement", Bundled: true, ProfilesKnown: true, Profiles: []string{"placement-gang", "placement-pack"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
