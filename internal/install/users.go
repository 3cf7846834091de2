package install

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/kubectl-sched/kubectl-sched/internal/cluster"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// Users are who names a profile of a scheduler.
type Users struct {
	// Workloads are those with a template that names one, "Kind namespace/name".
	Workloads []User
	// Policies are admission policies that write it into pods.
	Policies []User
	// Pending are pods without a node that name one. The field of a pod cannot be
	// changed: one without its scheduler waits for ever.
	Pending []PendingPod
}

// User is an object that names a profile.
type User struct{ Object, Profile string }

// PendingPod is a pod without a node that names a profile.
type PendingPod struct {
	Namespace, Name, Profile string
	// Controller makes the pod again where it is deleted, "Kind name"; empty for a
	// pod that nobody makes again.
	Controller string
	pod        corev1.Pod
}

// Any reports whether anybody names a profile.
func (u Users) Any() bool { return len(u.Workloads)+len(u.Policies)+len(u.Pending) > 0 }

// FindUsers returns who names one of the profiles. What may not be listed is a
// Warning, and not among them.
func FindUsers(ctx context.Context, client *cluster.Client, profiles []string) (Users, diag.Findings, error) {
	var users Users
	workloads, findings := client.Workloads(ctx, cluster.Scope{})
	for _, w := range workloads {
		for i := range w.Templates {
			// A bare pod is looked at as a pod.
			if name := w.Templates[i].Current.SchedulerName; slices.Contains(profiles, name) && w.Kind != "Pod" {
				users.Workloads = append(users.Workloads, User{w.Ref(), name})
			}
		}
	}
	users.Workloads = slices.Compact(users.Workloads)
	policies, err := client.Kube.AdmissionregistrationV1().MutatingAdmissionPolicies().List(ctx, metav1.ListOptions{})
	if err != nil && !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
		return users, findings, fmt.Errorf("list admission policies: %w", err)
	}
	if err == nil {
		for i := range policies.Items {
			// A policy names the profile in an expression, as a literal.
			text, err := json.Marshal(policies.Items[i].Spec)
			if err != nil {
				return users, findings, err
			}
			for _, name := range profiles {
				if strings.Contains(string(text), strings.Trim(strconv.Quote(strconv.Quote(name)), `"`)) {
					users.Policies = append(users.Policies, User{"MutatingAdmissionPolicy " + policies.Items[i].Name, name})
				}
			}
		}
	}
	users.Pending, err = pending(ctx, client, profiles)
	return users, findings, err
}

// pending returns the pods without a node that name one of the profiles.
func pending(ctx context.Context, client *cluster.Client, profiles []string) ([]PendingPod, error) {
	var out []PendingPod
	for _, name := range profiles {
		selector := fields.Set{"spec.nodeName": "", "status.phase": string(corev1.PodPending), "spec.schedulerName": name}.String()
		list, err := client.Kube.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: selector})
		if err != nil {
			return nil, fmt.Errorf("list the pods that wait for profile %q: %w", name, err)
		}
		for _, pod := range list.Items {
			p := PendingPod{Namespace: pod.Namespace, Name: pod.Name, Profile: name, pod: pod}
			if c := metav1.GetControllerOf(&pod); c != nil {
				p.Controller = c.Kind + " " + c.Name
			}
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b PendingPod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out, nil
}

// Findings say of all users that a profile cannot go; pending pods that can be made
// again, and are to be, are none.
func (u Users) Findings(recreate bool) diag.Findings {
	var findings diag.Findings
	named := func(users []User, fix string) {
		for _, user := range users {
			findings = append(findings, diag.Finding{
				Rule: "scheduler/profile-in-use", Severity: diag.Error, Subject: user.Object,
				Message: fmt.Sprintf("it sends pods to profile %q, which nobody would serve any more", user.Profile),
				Fix:     &diag.Fix{Message: fix},
			})
		}
	}
	named(u.Workloads, "apply policies that do not need the profile, or take schedulerName out of the manifest")
	named(u.Policies, "apply the set that it belongs to without the policies that need the profile")
	for _, p := range u.Pending {
		if recreate && p.Controller != "" {
			continue
		}
		f := diag.Finding{
			Rule: "scheduler/pending-pod", Severity: diag.Error, Subject: fmt.Sprintf("pod %s/%s", p.Namespace, p.Name),
			Message: fmt.Sprintf("it has no node yet and names profile %q; that cannot be changed in a pod", p.Profile),
			Fix:     &diag.Fix{Message: "delete it, and make it again without the schedulerName"},
		}
		if p.Controller != "" {
			f.Fix.Message = fmt.Sprintf("delete it, and %s makes it again without (kubectl sched scheduler uninstall does so with --recreate-pods)", p.Controller)
		}
		findings = append(findings, f)
	}
	return findings
}

// Removed returns what keeps profiles in place that the running scheduler has and
// the next configuration has not.
func Removed(ctx context.Context, client *cluster.Client, running *Scheduler, next []string) (diag.Findings, error) {
	gone := slices.DeleteFunc(slices.Clone(running.Profiles), func(name string) bool { return slices.Contains(next, name) })
	if len(gone) == 0 {
		return nil, nil
	}
	users, findings, err := FindUsers(ctx, client, gone)
	return append(findings, users.Findings(false)...), err
}
