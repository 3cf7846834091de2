package gating

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-sched/kubectl-sched/internal/cluster"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gates/condition"
)

// FieldManager is the manager of what decisions write.
const FieldManager = "kubectl-sched"

// Decision is what a person decides about a gate.
type Decision struct {
	// Gate is what users call it, or its full name.
	Gate string
	// Deny says no, so that the gate stays whatever was said before; otherwise it
	// is approved.
	Deny bool
	// DryRun has the API server check everything and keep nothing.
	DryRun bool
}

// Decided is one pod that a decision was written to.
type Decided struct {
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	// Gate is what users call the gate.
	Gate string `json:"gate"`
	// By is the user who decided.
	By string `json:"by"`
	// Unchanged says that the same user had decided so before.
	Unchanged bool `json:"unchanged,omitempty"`
}

// Decide writes the decision, in the name of the user who makes it, to the pods of
// the query that wait for it. A pod that it cannot be written to is an Error among
// the findings, and the others are decided all the same. It is an error if no pod
// of the query has such a gate.
func Decide(ctx context.Context, client *cluster.Client, q Query, d Decision) ([]Decided, diag.Findings, error) {
	gate, err := condition.Name(condition.Short(d.Gate))
	if err != nil {
		return nil, nil, err
	}
	pods, err := gatedPods(ctx, client, q)
	if err != nil {
		return nil, nil, err
	}
	waiting := slices.DeleteFunc(slices.Clone(pods), func(p corev1.Pod) bool { return !slices.Contains(ours(&p), gate) })
	if len(waiting) == 0 {
		return nil, nil, noSuchGate(gate, pods)
	}
	user, err := whoAmI(ctx, client)
	if err != nil {
		return nil, nil, err
	}
	var done []Decided
	findings := absent(q.Names, waiting, condition.Short(gate))
	for i := range waiting {
		pod := &waiting[i]
		result := Decided{Namespace: pod.Namespace, Pod: pod.Name, Gate: condition.Short(gate), By: user}
		switch finding, unchanged := decideOne(ctx, client, pod, gate, user, d); {
		case ctx.Err() != nil:
			return done, findings, ctx.Err()
		case finding != nil:
			findings = append(findings, *finding)
		default:
			result.Unchanged = unchanged
			done = append(done, result)
		}
	}
	return done, findings, nil
}

// decideOne writes the decision to one pod, and reports whether it stood there.
func decideOne(ctx context.Context, client *cluster.Client, pod *corev1.Pod, gate, user string, d Decision) (_ *diag.Finding, unchanged bool) {
	finding := diag.Finding{Rule: "gates/not-decided", Severity: diag.Error, Subject: fmt.Sprintf("pod %s/%s", pod.Namespace, pod.Name)}
	c, err := condition.Of(pod.Annotations, gate)
	switch {
	case err != nil:
		finding.Message = err.Error()
		return &finding, false
	case c.Kind() != condition.KindApproval:
		finding.Message = fmt.Sprintf("gate %q waits for %s and not for anybody's approval", condition.Short(gate), c.Kind())
		return &finding, false
	}
	says, contradicts := condition.ApprovedPrefix+condition.Short(gate), condition.DeniedPrefix+condition.Short(gate)
	if d.Deny {
		says, contradicts = contradicts, says
	}
	if _, other := pod.Annotations[contradicts]; pod.Annotations[says] == user && !other {
		return nil, true
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": pod.UID, "annotations": map[string]any{says: user, contradicts: nil},
	}})
	if err == nil {
		options := metav1.PatchOptions{FieldManager: FieldManager}
		if d.DryRun {
			options.DryRun = []string{metav1.DryRunAll}
		}
		_, err = client.Kube.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, patch, options)
	}
	switch {
	case err == nil:
		return nil, false
	case apierrors.IsNotFound(err) || apierrors.IsConflict(err):
		finding.Message = "it is gone or another pod by now; list the gates again"
	default:
		finding.Message = cluster.Describe(err)
	}
	return &finding, false
}

// whoAmI returns the name of the user as which the cluster knows us.
func whoAmI(ctx context.Context, client *cluster.Client) (string, error) {
	review, err := client.Kube.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("ask the cluster who you are, which the decision must say: %w", err)
	}
	return review.Status.UserInfo.Username, nil
}

// absent are the findings on pods that were named and do not have the gate.
func absent(names []string, waiting []corev1.Pod, gate string) diag.Findings {
	var findings diag.Findings
	for _, name := range names {
		if !slices.ContainsFunc(waiting, func(p corev1.Pod) bool { return p.Name == name }) {
			findings = append(findings, diag.Finding{
				Rule: "gates/not-decided", Severity: diag.Error, Subject: "pod " + name,
				Message: fmt.Sprintf("there is no such pod that waits at gate %q", gate),
			})
		}
	}
	return findings
}

// noSuchGate is the error for a gate that none of the pods has.
func noSuchGate(gate string, pods []corev1.Pod) error {
	var names []string
	for i := range pods {
		for _, g := range ours(&pods[i]) {
			names = append(names, condition.Short(g))
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	message := fmt.Sprintf("no pod that was asked for waits at gate %q", condition.Short(gate))
	if near, ok := diag.Nearest(condition.Short(gate), names); ok {
		return fmt.Errorf("%s; did you mean %q?", message, near)
	}
	if len(names) > 0 {
		return fmt.Errorf("%s; the gates that pods wait at are %s", message, strings.Join(names, ", "))
	}
	return errors.New(message + ", nor at any other gate of kubectl sched")
}
