package install

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-sched/kubectl-sched/compiler/guard"
	"github.com/kubectl-sched/kubectl-sched/internal/cluster"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/deploy"
)

// The minor versions of API servers that a scheduler of 1.37 may work with: its own
// and the next, which an upgrade goes through (Kubernetes' version skew policy: a
// scheduler must not be newer than the API server; one minor older is allowed).
const (
	minMinor = 37
	maxMinor = 38
)

// listed are the resources that kube-scheduler 1.37 lists when it starts
// (pkg/scheduler/eventhandlers.go and the informers of its default plugins). One
// that is not served keeps it waiting for ever.
var listed = []schema.GroupVersionResource{
	{Version: "v1", Resource: "pods"},
	{Version: "v1", Resource: "nodes"},
	{Version: "v1", Resource: "namespaces"},
	{Version: "v1", Resource: "services"},
	{Version: "v1", Resource: "replicationcontrollers"},
	{Version: "v1", Resource: "persistentvolumes"},
	{Version: "v1", Resource: "persistentvolumeclaims"},
	{Version: "v1", Resource: "resourcequotas"},
	{Group: "apps", Version: "v1", Resource: "replicasets"},
	{Group: "apps", Version: "v1", Resource: "statefulsets"},
	{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"},
	{Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses"},
	{Group: "storage.k8s.io", Version: "v1", Resource: "csinodes"},
	{Group: "storage.k8s.io", Version: "v1", Resource: "csidrivers"},
	{Group: "storage.k8s.io", Version: "v1", Resource: "csistoragecapacities"},
	{Group: "storage.k8s.io", Version: "v1", Resource: "volumeattachments"},
	{Group: "resource.k8s.io", Version: "v1", Resource: "resourceclaims"},
	{Group: "resource.k8s.io", Version: "v1", Resource: "resourceslices"},
	{Group: "resource.k8s.io", Version: "v1", Resource: "deviceclasses"},
}

// Skew returns what speaks against running the scheduler on this API server: its
// version, and resources that it does not serve. With allow the version is a
// Warning only.
func Skew(ctx context.Context, client *cluster.Client, allow bool) (diag.Findings, error) {
	minor, err := client.Minor(ctx)
	if err != nil {
		return nil, err
	}
	var findings diag.Findings
	if minor < minMinor || minor > maxMinor {
		f := diag.Finding{
			Rule: "scheduler/skew", Severity: diag.Error,
			Message: fmt.Sprintf("the API server is version 1.%d, and the scheduler is kube-scheduler 1.%d, which supports 1.%d and 1.%d", minor, minMinor, minMinor, maxMinor),
			Fix:     &diag.Fix{Message: "use the release of kubectl sched for that version, or try it with --allow-skew"},
		}
		if allow {
			f.Severity, f.Fix = diag.Warning, nil
		}
		findings = append(findings, f)
	}
	missing, err := notServed(client)
	if err != nil {
		return findings, err
	}
	if len(missing) > 0 {
		findings = append(findings, diag.Finding{
			Rule: "scheduler/not-served", Severity: diag.Error,
			Message: fmt.Sprintf("the API server does not serve %s, which the scheduler lists when it starts: it would wait for ever", strings.Join(missing, ", ")),
		})
	}
	return findings, nil
}

// notServed returns the resources among listed that the API server lacks.
func notServed(client *cluster.Client) ([]string, error) {
	served := map[schema.GroupVersion]map[string]bool{}
	var missing []string
	for _, r := range listed {
		gv := r.GroupVersion()
		if served[gv] == nil {
			served[gv] = map[string]bool{}
			list, err := client.Kube.Discovery().ServerResourcesForGroupVersion(gv.String())
			if err != nil && !apierrors.IsNotFound(err) {
				return nil, fmt.Errorf("ask %s what it serves of %s: %w", client.Host, gv, err)
			}
			if err == nil {
				for _, resource := range list.APIResources {
					served[gv][resource.Name] = true
				}
			}
		}
		if !served[gv][r.Resource] {
			missing = append(missing, r.Resource+"."+gv.String())
		}
	}
	return missing, nil
}

// Beside says what follows from the scheduler running beside the default one, if
// it does: each counts only what it places itself until the API server has told it
// of the other's pods, so that both can fill one node (kubernetes/kubernetes#60469).
func Beside(profiles []string) diag.Findings {
	if slices.Contains(profiles, corev1.DefaultSchedulerName) {
		return nil
	}
	return diag.Findings{{
		Rule: "scheduler/two-schedulers", Severity: diag.Warning,
		Message: "it will run beside the cluster's default scheduler, and where both place pods on the same nodes, they can overcommit one: kubelet then refuses pods",
		Fix:     &diag.Fix{Message: "give its profiles pools of their own (pools.*.dedicated), or have it serve default-scheduler too in place of the cluster's own"},
	}}
}

// Guarded says which guards of dedicated pools refuse what the scheduler binds, once it
// runs in the namespace: of schedulers they know by themselves only those of kube-system.
func Guarded(ctx context.Context, client *cluster.Client, namespace string) (diag.Findings, error) {
	ours := metav1.ListOptions{LabelSelector: guard.Label}
	api := client.Kube.AdmissionregistrationV1()
	bindings, err := api.ValidatingAdmissionPolicyBindings().List(ctx, ours)
	if err != nil {
		return nil, fmt.Errorf("list the guards of pools: %w", err)
	}
	policies, err := api.ValidatingAdmissionPolicies().List(ctx, ours)
	if err != nil {
		return nil, fmt.Errorf("list the guards of pools: %w", err)
	}
	denying := map[string]bool{}
	for _, b := range bindings.Items {
		if slices.Contains(b.Spec.ValidationActions, admissionv1.Deny) {
			denying[b.Spec.PolicyName] = true
		}
	}
	account := "system:serviceaccount:" + namespace + ":" + deploy.Name
	var findings diag.Findings
	for _, p := range policies.Items {
		if !denying[p.Name] || !judgesBindings(p.Spec) || exempts(p.Spec, account, "system:serviceaccounts:"+namespace, "system:serviceaccounts") {
			continue
		}
		findings = append(findings, diag.Finding{
			Rule: "scheduler/guarded", Severity: diag.Warning, Subject: "ValidatingAdmissionPolicy " + p.Name,
			Message: fmt.Sprintf("the guard of pool %q refuses what user %q binds in namespaces without a grant, so that their pods would stay Pending", p.Labels[guard.Label], account),
			Fix:     &diag.Fix{Message: fmt.Sprintf("name %q under dedicated.exempt.users of the pool, and apply that first", account)},
		})
	}
	return findings, nil
}

// judgesBindings reports whether a policy looks at who binds pods.
func judgesBindings(spec admissionv1.ValidatingAdmissionPolicySpec) bool {
	return spec.MatchConstraints != nil && slices.ContainsFunc(spec.MatchConstraints.ResourceRules, func(r admissionv1.NamedRuleWithOperations) bool {
		return slices.Contains(r.Resources, "pods/binding")
	})
}

// exempts reports whether a guard leaves out requests of any of the users or groups.
func exempts(spec admissionv1.ValidatingAdmissionPolicySpec, who ...string) bool {
	return slices.ContainsFunc(spec.MatchConditions, func(c admissionv1.MatchCondition) bool {
		return slices.ContainsFunc(who, func(name string) bool { return strings.Contains(c.Expression, strconv.Quote(name)) })
	})
}
