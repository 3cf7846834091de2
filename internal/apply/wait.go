package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// pollEvery is how often a rollout is looked at: a person sees no difference to
// a watch, and a watch for each of hundreds of workloads costs the server more.
const pollEvery = 500 * time.Millisecond

// unplacedEvery is how often the pods without a node are looked at, in looks at
// the rollouts: the scheduler itself needs a moment for each.
const unplacedEvery = 3

// WaitFor waits until the rollouts of the workloads are complete, each judged as
// `kubectl rollout status` does. Kinds that have no rollout are complete. So is
// a workload that the run does not restart, unless an earlier run's rollout is
// still under way.
//
// A rollout that fails, as one does that exceeds its progress deadline, ends the
// wait; it and those that are not complete in time are Errors among the
// findings, with what the scheduler says of pods that it cannot place and the
// policies' lines that ask for it. The error is for a cluster that cannot be
// asked, and for a ctx that ends.
func (a *Applier) WaitFor(ctx context.Context, changes []*WorkloadChange, timeout time.Duration) (diag.Findings, error) {
	w := &waiting{Applier: a, timeout: timeout, said: map[string]string{}, told: map[string]string{}, stuck: map[types.UID]*stuckPods{}}
	for _, change := range changes {
		if hasRollout(change.Workload) {
			w.pending = append(w.pending, change)
		}
	}
	if err := w.first(ctx); err != nil {
		return nil, waitStopped(err)
	}
	err := wait.PollUntilContextTimeout(ctx, pollEvery, timeout, true, w.look)
	if wait.Interrupted(err) && ctx.Err() == nil {
		return w.late(), nil
	}
	if err != nil {
		return w.findings, waitStopped(err)
	}
	return w.findings, nil
}

// waiting is one wait for rollouts.
type waiting struct {
	*Applier
	timeout     time.Duration
	pending     []*WorkloadChange
	total, done int
	looks       int
	// said is the last word on each workload's rollout, told what was told of it
	// last; by its Ref.
	said, told map[string]string
	// stuck are the pods that have no node, by the UID of their workload.
	stuck    map[types.UID]*stuckPods
	findings diag.Findings
}

// first leaves out what the run did not restart and nobody else is rolling out.
func (w *waiting) first(ctx context.Context) error {
	under := make([]bool, len(w.pending))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(concurrency)
	for i, change := range w.pending {
		if change.Restarts {
			under[i] = true
			continue
		}
		group.Go(func() error {
			_, complete, err := w.rollout(groupCtx, change.Workload)
			var failed rolloutError
			if errors.As(err, &failed) {
				// What had failed before this run is not its rollout.
				return nil
			}
			under[i] = !complete
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	var kept []*WorkloadChange
	for i, change := range w.pending {
		if under[i] {
			kept = append(kept, change)
		}
	}
	w.pending, w.total = kept, len(kept)
	return nil
}

// look asks once for each rollout that is not complete, and tells what is new.
// It ends the wait when all are complete or one has failed.
func (w *waiting) look(ctx context.Context) (bool, error) {
	if w.looks%unplacedEvery == unplacedEvery-1 {
		if err := w.findStuck(ctx); err != nil {
			return false, err
		}
	}
	w.looks++
	var rest []*WorkloadChange
	for _, change := range w.pending {
		ref := change.Workload.Ref()
		message, complete, err := w.rollout(ctx, change.Workload)
		var failed rolloutError
		switch {
		case errors.As(err, &failed):
			if err := w.findStuck(ctx); err != nil {
				return false, err
			}
			w.findings = append(w.findings, w.finding(change, "its rollout has failed: "+failed.Error()))
		case err != nil:
			return false, err
		case complete:
			w.done++
			w.tell(Event{Kind: Done, Subject: ref, Count: w.done, Total: w.total})
		default:
			rest = append(rest, change)
			w.passOn(change, message)
		}
	}
	w.pending = rest
	return len(rest) == 0 || len(w.findings) > 0, nil
}

// passOn tells where a rollout is, if that is new.
func (w *waiting) passOn(change *WorkloadChange, message string) {
	ref := change.Workload.Ref()
	w.said[ref] = message
	var origins []compiler.Origin
	if stuck := w.stuck[types.UID(change.Workload.UID)]; stuck != nil {
		message += "; " + stuck.String()
		origins = stuck.origins(change.Origins)
	}
	if w.told[ref] == message {
		return
	}
	w.told[ref] = message
	w.tell(Event{Kind: Waiting, Subject: ref, Message: message, Origins: origins, Count: w.done, Total: w.total})
}

// late returns the findings for what is not complete when the time is over.
func (w *waiting) late() diag.Findings {
	for _, change := range w.pending {
		message := fmt.Sprintf("its rollout is not complete after %s", short(w.timeout))
		if said := w.said[change.Workload.Ref()]; said != "" {
			message += ": " + said
		}
		w.findings = append(w.findings, w.finding(change, message))
	}
	return w.findings
}

// finding says what is wrong with one rollout, and why as far as that is known.
func (w *waiting) finding(change *WorkloadChange, message string) diag.Finding {
	f := diag.Finding{Rule: "apply/rollout", Severity: diag.Error, Subject: change.Workload.Ref(), Message: message}
	stuck := w.stuck[types.UID(change.Workload.UID)]
	if stuck == nil {
		return f
	}
	f.Message += "; " + stuck.String()
	for i, origin := range stuck.origins(change.Origins) {
		if i == 0 {
			f.Policy, f.Range = origin.Policy, origin.Range
			continue
		}
		f.Related = append(f.Related, diag.Related{Range: origin.Range, Message: fmt.Sprintf("policy %q asks for it too", origin.Policy)})
	}
	return f
}

// short writes a time as people do: 10m, not 10m0s.
func short(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// findStuck notes the pods of the pending workloads that have no node.
func (w *waiting) findStuck(ctx context.Context) error {
	var namespaces []string
	for _, change := range w.pending {
		namespaces = append(namespaces, change.Workload.Namespace)
	}
	slices.Sort(namespaces)
	pods, err := w.Client.UnplacedByOwner(ctx, slices.Compact(namespaces))
	if err != nil {
		return fmt.Errorf("list pods without a node: %w", err)
	}
	clear(w.stuck)
	for _, change := range w.pending {
		uid := types.UID(change.Workload.UID)
		if stuck := stuckIn(pods[uid]); stuck != nil {
			w.stuck[uid] = stuck
		}
	}
	return nil
}
