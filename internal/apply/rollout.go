package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/kubectl/pkg/polymorphichelpers"

	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// pollEvery is how often a rollout is looked at: a person sees no difference to
// a watch, and a watch for each of hundreds of workloads costs the server more.
const pollEvery = 500 * time.Millisecond

// WaitFor waits until the rollouts of the workloads are complete, each judged as
// `kubectl rollout status` does. Kinds that have no rollout are complete. A
// rollout that fails or is not complete in time is an Error among the findings.
func (a *Applier) WaitFor(ctx context.Context, changes []*WorkloadChange, timeout time.Duration) (diag.Findings, error) {
	pending := slices.DeleteFunc(slices.Clone(changes), func(c *WorkloadChange) bool { return !hasRollout(c.Workload) })
	total, done := len(pending), 0
	last := map[string]string{}
	var findings diag.Findings
	err := wait.PollUntilContextTimeout(ctx, pollEvery, timeout, true, func(ctx context.Context) (bool, error) {
		var rest []*WorkloadChange
		for _, change := range pending {
			message, complete, err := a.rollout(ctx, change.Workload)
			var failed rolloutError
			switch {
			case errors.As(err, &failed):
				findings = append(findings, diag.Finding{Rule: "apply/rollout", Severity: diag.Error, Subject: change.Workload.Ref(), Message: failed.Error()})
			case err != nil:
				return false, err
			case complete:
				done++
				a.tell(Event{Kind: Done, Subject: change.Workload.Ref(), Count: done, Total: total})
			default:
				if ref := change.Workload.Ref(); last[ref] != message {
					last[ref] = message
					a.tell(Event{Kind: Waiting, Subject: ref, Message: message, Count: done, Total: total})
				}
				rest = append(rest, change)
			}
		}
		pending = rest
		return len(pending) == 0, nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		for _, change := range pending {
			findings = append(findings, diag.Finding{
				Rule: "apply/rollout", Severity: diag.Error, Subject: change.Workload.Ref(),
				Message: fmt.Sprintf("its rollout is not complete after %s: %s", timeout, last[change.Workload.Ref()]),
			})
		}
		return findings, nil
	}
	if err != nil {
		return findings, fmt.Errorf("wait for rollouts: %w", err)
	}
	return findings, nil
}

// rolloutError is a rollout that has failed for good.
type rolloutError struct{ error }

// hasRollout reports whether the workload's controller replaces its pods by
// itself, in a way that can be watched.
func hasRollout(w *workload.Workload) bool {
	if w.Group != appsv1.GroupName {
		return false
	}
	switch w.Kind {
	case "Deployment":
		return true
	case "StatefulSet", "DaemonSet":
		strategy, _ := valueAt(w.Object, "/spec/updateStrategy/type")
		return strategy != "OnDelete"
	}
	return false
}

// rollout says how far the workload's rollout is.
func (a *Applier) rollout(ctx context.Context, w *workload.Workload) (message string, complete bool, err error) {
	resource, err := a.resource(w)
	if err != nil {
		return "", false, err
	}
	u, err := resource.Get(ctx, w.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", true, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("read %s: %w", w.Ref(), err)
	}
	viewer, err := polymorphichelpers.StatusViewerFor(schema.GroupKind{Group: w.Group, Kind: w.Kind})
	if err != nil {
		return "", true, nil //nolint:nilerr // a kind without a notion of rollout has nothing to wait for
	}
	message, complete, err = viewer.Status(u, 0)
	if err != nil {
		return "", false, rolloutError{err}
	}
	return message, complete, nil
}
