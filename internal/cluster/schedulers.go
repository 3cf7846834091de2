package cluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
)

// RolledOut reports whether all replicas of the Deployment run what it says now, so
// that whichever of them leads does; and what is missing if not.
func RolledOut(d *appsv1.Deployment) (bool, string) {
	want := int32(1)
	if d.Spec.Replicas != nil {
		want = *d.Spec.Replicas
	}
	switch st := d.Status; {
	case want == 0:
		return false, "it has no replicas"
	case st.ObservedGeneration < d.Generation:
		return false, "its change has not been seen yet"
	case st.UpdatedReplicas < want:
		return false, fmt.Sprintf("%d of %d replicas are new", st.UpdatedReplicas, want)
	case st.Replicas > st.UpdatedReplicas:
		return false, fmt.Sprintf("%d old replicas have not ended", st.Replicas-st.UpdatedReplicas)
	case st.AvailableReplicas < want:
		return false, fmt.Sprintf("%d of %d replicas are available", st.AvailableReplicas, want)
	}
	return true, ""
}

// schedulers returns the bundled scheduler where it runs, in whatever namespace,
// with the profiles that its configuration in force has. One of which not all
// replicas run that configuration may be led by one that does not, and is left out. Other schedulers cannot be told from any
// other program.
func (c *Client) schedulers(ctx context.Context) ([]capability.Scheduler, error) {
	selected := func(ctx context.Context, o metav1.ListOptions) (*appsv1.DeploymentList, error) {
		o.LabelSelector = capability.SchedulerLabel + "=" + capability.BundledScheduler
		return c.Kube.AppsV1().Deployments(metav1.NamespaceAll).List(ctx, o)
	}
	var schedulers []capability.Scheduler
	err := eachPaged(ctx, selected, func(o runtime.Object) error {
		d := o.(*appsv1.Deployment)
		if ok, _ := RolledOut(d); ok {
			schedulers = append(schedulers, bundledScheduler(d))
		}
		return nil
	})
	slices.SortFunc(schedulers, func(a, b capability.Scheduler) int { return cmp.Compare(a.Name, b.Name) })
	return schedulers, err
}

// bundledScheduler reads which profiles the Deployment says that it serves; none if
// it does not say.
func bundledScheduler(d *appsv1.Deployment) capability.Scheduler {
	return capability.Scheduler{Name: d.Name, Bundled: true, ProfilesKnown: true, Profiles: capability.ProfilesIn(d.Annotations)}
}
