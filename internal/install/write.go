package install

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kubectl-sched/kubectl-sched/internal/cluster"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/deploy"
)

// Written is what became of one object.
type Written struct {
	Object string `json:"object"` // "Kind name" or "Kind namespace/name"
	// Action is what was done, or would be on a dry run: "created", "configured",
	// "unchanged" or "deleted".
	Action string `json:"action"`
}

// Writer writes the objects of the scheduler.
type Writer struct {
	Client *cluster.Client
	// DryRun has the API server check all and keep nothing.
	DryRun bool
	// Force takes fields over from others that own them.
	Force bool
	// Hear is told of each object; it may be nil.
	Hear func(Written)
}

func (w *Writer) say(object *unstructured.Unstructured, action string) {
	if w.Hear == nil {
		return
	}
	name := object.GetName()
	if object.GetNamespace() != "" {
		name = object.GetNamespace() + "/" + name
	}
	w.Hear(Written{Object: object.GetKind() + " " + name, Action: action})
}

// Write applies the objects in their order, by server-side apply. It may be
// interrupted and run again.
func (w *Writer) Write(ctx context.Context, objects []*unstructured.Unstructured) error {
	missing := map[string]bool{} // namespaces that a dry run did not create
	for _, object := range objects {
		resource, err := w.resource(object.GroupVersionKind(), object.GetNamespace())
		if err != nil {
			return err
		}
		before, err := resource.Get(ctx, object.GetName(), metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("read %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		created := err != nil
		if !created && object.GetKind() == "Namespace" && before.GetDeletionTimestamp() != nil {
			// It goes with an installation that was just taken away, and nothing can be
			// created in it any more.
			created = true
			if !w.DryRun {
				if err := gone(ctx, resource, before); err != nil {
					return err
				}
			}
		}
		if w.DryRun && created && object.GetKind() == "Namespace" {
			missing[object.GetName()] = true
		}
		if missing[object.GetNamespace()] {
			w.say(object, "created") // the API server could not check it
			continue
		}
		options := metav1.ApplyOptions{FieldManager: FieldManager, Force: w.Force}
		if w.DryRun {
			options.DryRun = []string{metav1.DryRunAll}
		}
		after, err := resource.Apply(ctx, object.GetName(), object, options)
		switch {
		case apierrors.IsConflict(err):
			return fmt.Errorf("%s %s: others own what is to be written: %s; give --force-conflicts to take it over", object.GetKind(), object.GetName(), cluster.Describe(err))
		case err != nil:
			return fmt.Errorf("write %s %s: %w", object.GetKind(), object.GetName(), err)
		case created:
			w.say(object, "created")
		case before.GetResourceVersion() == after.GetResourceVersion():
			w.say(object, "unchanged")
		default:
			w.say(object, "configured")
		}
	}
	return nil
}

func (w *Writer) resource(gvk schema.GroupVersionKind, namespace string) (resourceInterface, error) {
	mapping, err := w.Client.Resource(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, fmt.Errorf("look up %s: %w", gvk, err)
	}
	return w.Client.Interface(mapping, namespace), nil
}

// RolloutError says that the replicas do not come to run what was written. Those
// that ran before still do.
type RolloutError struct {
	// After is how long was waited.
	After time.Duration
	// Missing is what is not there yet; Reasons are what the new pods say.
	Missing string
	Reasons []string
}

// Error implements error.
func (e *RolloutError) Error() string {
	text := fmt.Sprintf("after %s the scheduler does not run as it should: %s", e.After, e.Missing)
	if len(e.Reasons) > 0 {
		text += " (" + strings.Join(e.Reasons, "; ") + ")"
	}
	return text + "; replicas that ran before go on with what they had"
}

// Wait waits until all replicas run what was written. If they do not within limit
// the error is a *RolloutError.
func (w *Writer) Wait(ctx context.Context, limit time.Duration) (*Scheduler, error) {
	var last *Scheduler
	missing := ""
	err := wait.PollUntilContextTimeout(ctx, 500*time.Millisecond, limit, true, func(ctx context.Context) (bool, error) {
		found, err := Find(ctx, w.Client)
		if err == nil && found == nil {
			return false, errors.New("the scheduler's Deployment is gone")
		}
		done, lacking := false, fmt.Sprint(err) // the API server may be restarting
		if found != nil {
			last = found
			done, lacking = found.RolledOut()
		}
		missing = lacking
		return done, nil
	})
	if err == nil {
		return last, nil
	}
	if ctx.Err() != nil || !wait.Interrupted(err) {
		return last, errors.Join(err, ctx.Err())
	}
	return last, &RolloutError{After: limit, Missing: missing, Reasons: w.complaints(ctx, last)}
}

// complaints are why containers of the scheduler do not run.
func (w *Writer) complaints(ctx context.Context, s *Scheduler) []string {
	if s == nil {
		return nil
	}
	pods, err := w.Client.Kube.CoreV1().Pods(s.Deployment.Namespace).List(ctx, metav1.ListOptions{LabelSelector: deploy.NameLabel + "=" + deploy.Name})
	if err != nil {
		return nil
	}
	var out []string
	for _, pod := range pods.Items {
		for _, c := range pod.Status.ContainerStatuses {
			switch {
			case c.State.Waiting != nil:
				out = append(out, fmt.Sprintf("pod %s: %s %s", pod.Name, c.State.Waiting.Reason, c.State.Waiting.Message))
			case c.State.Terminated != nil:
				out = append(out, fmt.Sprintf("pod %s: %s %s", pod.Name, c.State.Terminated.Reason, c.State.Terminated.Message))
			}
		}
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
				out = append(out, fmt.Sprintf("pod %s: %s", pod.Name, c.Message))
			}
		}
	}
	slices.Sort(out)
	return out
}
