package install

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"

	"github.com/kubectl-sched/kubectl-sched/internal/cluster"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/deploy"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gates/approval"
)

// Status is how the scheduler of a cluster does.
type Status struct {
	Namespace string `json:"namespace"`
	Image     string `json:"image"`
	// Ready of Replicas replicas are ready. RolledOut says that all run what the
	// Deployment says; Missing is what lacks.
	Replicas  int32  `json:"replicas"`
	Ready     int32  `json:"ready"`
	RolledOut bool   `json:"rolledOut"`
	Missing   string `json:"missing,omitempty"`
	// Leader is the replica that schedules; empty if none does. Renewed is when it
	// last said so.
	Leader  string    `json:"leader,omitempty"`
	Renewed time.Time `json:"renewed,omitzero"`
	// Profiles are those of its configuration, and what names each.
	Profiles []ProfileStatus `json:"profiles"`
}

// ProfileStatus counts who names a profile.
type ProfileStatus struct {
	Name      string `json:"name"`
	Workloads int    `json:"workloads"`
	// Pods have a node; Pending ones have none.
	Pods    int `json:"pods"`
	Pending int `json:"pending"`
}

// leaseLimit is how old a lease may be for its holder to lead still: twice the
// default duration.
const leaseLimit = 30 * time.Second

// StatusOf returns how the scheduler does, and what is wrong with it.
func StatusOf(ctx context.Context, client *cluster.Client, s *Scheduler, now time.Time) (*Status, diag.Findings, error) {
	d := s.Deployment
	st := &Status{Namespace: d.Namespace, Image: s.Image(), Replicas: 1, Ready: d.Status.ReadyReplicas, Profiles: []ProfileStatus{}}
	if d.Spec.Replicas != nil {
		st.Replicas = *d.Spec.Replicas
	}
	st.RolledOut, st.Missing = s.RolledOut()
	findings, err := Skew(ctx, client, true)
	if err != nil {
		return nil, nil, err
	}
	lease, err := client.Kube.CoordinationV1().Leases(d.Namespace).Get(ctx, deploy.Name, metav1.GetOptions{})
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		return nil, findings, fmt.Errorf("read the scheduler's lease: %w", err)
	case err == nil && lease.Spec.HolderIdentity != nil && lease.Spec.RenewTime != nil:
		st.Leader, st.Renewed = *lease.Spec.HolderIdentity, lease.Spec.RenewTime.Time
	}
	if st.Leader == "" || now.Sub(st.Renewed) > leaseLimit {
		findings = append(findings, diag.Finding{
			Rule: "scheduler/no-leader", Severity: diag.Error, Subject: "lease " + d.Namespace + "/" + deploy.Name,
			Message: "no replica schedules: nobody holds the lease, or has renewed it lately",
			Fix:     &diag.Fix{Message: "kubectl logs -n " + d.Namespace + " deployment/" + deploy.Name},
		})
	}
	fs, err := unprotected(ctx, client)
	if err != nil {
		return nil, findings, err
	}
	findings = append(findings, fs...)
	users, fs, err := FindUsers(ctx, client, s.Profiles)
	if err != nil {
		return nil, findings, err
	}
	findings = append(findings, fs...)
	placed, err := placedPods(ctx, client)
	if err != nil {
		return nil, findings, err
	}
	for _, name := range s.Profiles {
		p := ProfileStatus{Name: name, Pods: placed[name]}
		for _, w := range users.Workloads {
			if w.Profile == name {
				p.Workloads++
			}
		}
		for _, pod := range users.Pending {
			if pod.Profile == name {
				p.Pending++
			}
		}
		st.Profiles = append(st.Profiles, p)
	}
	return st, findings, nil
}

// unprotected says which of the admission policies about gates are missing.
func unprotected(ctx context.Context, client *cluster.Client) (diag.Findings, error) {
	list, err := client.Kube.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().List(ctx, metav1.ListOptions{})
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list admission policies: %w", err)
	}
	var bound []string
	for _, b := range list.Items {
		bound = append(bound, b.Name)
	}
	var findings diag.Findings
	for name, consequence := range map[string]string{
		approval.Name:        "whoever may change pods can approve gates in anybody's name",
		approval.AccountName: "the scheduler's account can change more of pods than it needs to",
	} {
		if !slices.Contains(bound, name) {
			findings = append(findings, diag.Finding{
				Rule: "scheduler/unprotected", Severity: diag.Warning, Subject: "ValidatingAdmissionPolicyBinding " + name,
				Message: "it is not there, so " + consequence,
				Fix:     &diag.Fix{Message: "kubectl sched scheduler upgrade"},
			})
		}
	}
	return findings, nil
}

// placedPods counts the pods that have a node and have not ended, by scheduler.
func placedPods(ctx context.Context, client *cluster.Client) (map[string]int, error) {
	counts := map[string]int{}
	p := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		o.FieldSelector = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed,spec.schedulerName!=" + corev1.DefaultSchedulerName
		return client.Kube.CoreV1().Pods(metav1.NamespaceAll).List(ctx, o)
	})
	err := p.EachListItem(ctx, metav1.ListOptions{}, func(o runtime.Object) error {
		if pod, ok := o.(*corev1.Pod); ok {
			counts[pod.Spec.SchedulerName]++
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	return counts, nil
}
