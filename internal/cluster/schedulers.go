package cluster

import (
	"cmp"
	"context"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
)

// schedulers returns the bundled scheduler where it runs, in whatever namespace,
// with the profiles that its configuration in force has. One that has no replica
// ready serves nothing and is left out. Other schedulers cannot be told from any
// other program.
func (c *Client) schedulers(ctx context.Context) ([]capability.Scheduler, error) {
	selected := func(ctx context.Context, o metav1.ListOptions) (*appsv1.DeploymentList, error) {
		o.LabelSelector = capability.SchedulerLabel + "=" + capability.BundledScheduler
		return c.Kube.AppsV1().Deployments(metav1.NamespaceAll).List(ctx, o)
	}
	var schedulers []capability.Scheduler
	err := eachPaged(ctx, selected, func(o runtime.Object) error {
		d := o.(*appsv1.Deployment)
		if d.Status.ReadyReplicas > 0 {
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
	s := capability.Scheduler{Name: d.Name, Bundled: true, ProfilesKnown: true}
	for name := range strings.SplitSeq(d.Annotations[capability.ProfilesAnnotation], ",") {
		if name = strings.TrimSpace(name); name != "" {
			s.Profiles = append(s.Profiles, name)
		}
	}
	slices.Sort(s.Profiles)
	return s
}
