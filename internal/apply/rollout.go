package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubectl/pkg/polymorphichelpers"

	"github.com/kubectl-sched/kubectl-sched/internal/workload"
)

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
		return "", false, rolloutError{errors.New(rolloutText(err.Error(), w.Name))}
	}
	return rolloutText(message, w.Name), complete, nil
}

// rolloutText is what the status viewer says, without the name of the workload,
// which stands before it already, and without the words of waiting.
func rolloutText(message, name string) string {
	message = strings.TrimRight(message, ".\n")
	if _, rest, ok := strings.Cut(message, " to finish: "); ok {
		message = rest
	}
	for _, kind := range []string{"deployment", "daemon set", "statefulset"} {
		message = strings.TrimPrefix(message, fmt.Sprintf("%s %q ", kind, name))
	}
	for _, words := range []string{"Waiting for ", "waiting for "} {
		message = strings.TrimPrefix(message, words)
	}
	return message
}
