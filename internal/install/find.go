package install

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-sched/kubectl-sched/internal/cluster"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/deploy"
)

// FieldManager is the manager of what is written.
const FieldManager = "kubectl-sched"

// Scheduler is the bundled scheduler as it is in a cluster.
type Scheduler struct {
	Deployment *appsv1.Deployment
	// Profiles are those of the configuration that it is to run, sorted.
	Profiles []string
}

// Find returns the bundled scheduler of the cluster, nil if there is none. Two are
// an error: they would each have the profiles of the other.
func Find(ctx context.Context, client *cluster.Client) (*Scheduler, error) {
	list, err := client.Kube.AppsV1().Deployments(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: deploy.NameLabel + "=" + deploy.Name})
	if err != nil {
		return nil, fmt.Errorf("look for the bundled scheduler: %w", err)
	}
	switch len(list.Items) {
	case 0:
		return nil, nil
	case 1:
		return schedulerOf(&list.Items[0]), nil
	}
	var names []string
	for _, d := range list.Items {
		names = append(names, d.Namespace+"/"+d.Name)
	}
	slices.Sort(names)
	return nil, fmt.Errorf("there are several bundled schedulers (Deployments %s); a cluster can have one", strings.Join(names, ", "))
}

func schedulerOf(d *appsv1.Deployment) *Scheduler {
	s := &Scheduler{Deployment: d}
	for name := range strings.SplitSeq(d.Annotations[deploy.ProfilesAnnotation], ",") {
		if name != "" {
			s.Profiles = append(s.Profiles, name)
		}
	}
	slices.Sort(s.Profiles)
	return s
}

// RolledOut reports whether all replicas run what the Deployment says now, so that
// whichever of them leads serves its profiles; what is missing if not.
func (s *Scheduler) RolledOut() (bool, string) {
	d := s.Deployment
	want := int32(1)
	if d.Spec.Replicas != nil {
		want = *d.Spec.Replicas
	}
	switch st := d.Status; {
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

// Image is the image of its container.
func (s *Scheduler) Image() string {
	for _, c := range s.Deployment.Spec.Template.Spec.Containers {
		if c.Name == "scheduler" {
			return c.Image
		}
	}
	return ""
}
