package capture

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
	"github.com/kubectl-sched/kubectl-sched/internal/cluster/snapshot"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/deploy"
)

// leaseLimit is how old a lease may be for its holder to lead still: twice the
// default duration.
const leaseLimit = 30 * time.Second

// schedulers reads the bundled scheduler, wherever it runs. Others cannot be told
// from any other program; the cluster's own keeps its configuration in a file.
func (c *capturer) schedulers(ctx context.Context) error {
	found, err := c.client.Kube.AppsV1().Deployments(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		LabelSelector: capability.SchedulerLabel + "=" + capability.BundledScheduler,
	})
	if err != nil {
		// Where Deployments cannot be listed, that is said of them as a kind.
		if apierrors.IsForbidden(err) {
			return nil
		}
		return c.verdict("deployments", "apps", err)
	}
	for i := range found.Items {
		d := &found.Items[i]
		s := snapshot.Scheduler{Name: d.Namespace + "/" + d.Name, Bundled: true, Profiles: capability.ProfilesIn(d.Annotations)}
		if s.Configuration, err = c.configuration(ctx, d); err != nil {
			return err
		}
		if s.Ready, err = c.leads(ctx, d); err != nil {
			return err
		}
		c.s.Schedulers = append(c.s.Schedulers, s)
	}
	return nil
}

// configuration returns what the ConfigMap that the scheduler's pods mount has.
func (c *capturer) configuration(ctx context.Context, d *appsv1.Deployment) (string, error) {
	for _, v := range d.Spec.Template.Spec.Volumes {
		if v.ConfigMap == nil {
			continue
		}
		m, err := c.client.Kube.CoreV1().ConfigMaps(d.Namespace).Get(ctx, v.ConfigMap.Name, metav1.GetOptions{})
		if err != nil {
			return "", c.verdict("configmaps", "", err)
		}
		if text, ok := m.Data[deploy.ConfigKey]; ok {
			return text, nil
		}
	}
	return "", nil
}

// leads reports whether a replica of the scheduler is ready and holds the lease.
func (c *capturer) leads(ctx context.Context, d *appsv1.Deployment) (bool, error) {
	lease, err := c.client.Kube.CoordinationV1().Leases(d.Namespace).Get(ctx, deploy.Name, metav1.GetOptions{})
	if err != nil {
		return false, c.verdict("leases", "coordination.k8s.io", err)
	}
	held := lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != "" && lease.Spec.RenewTime != nil
	return held && d.Status.ReadyReplicas > 0 && c.o.Now().Sub(lease.Spec.RenewTime.Time) <= leaseLimit, nil
}
