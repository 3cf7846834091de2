package apply

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubectl-sched/kubectl-sched/internal/cluster"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/internal/workload/ownership"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// examine turns an intent into a ChangeSet by dry run.
func (a *Applier) examine(ctx context.Context, in *intent) (*ChangeSet, diag.Findings, error) {
	changes := &ChangeSet{Set: in.state.Set, Scope: in.scope, Step: in.step, source: in.source, Cause: in.cause, Prune: in.prune, Revision: 1, state: in.state}
	if latest := in.state.Latest(); latest != nil {
		changes.Revision = latest.Number + 1
	}
	results := make([]WorkloadChange, len(in.targets))
	found := make([]diag.Findings, len(in.targets))
	conflicts := make([][]Conflict, len(in.targets))
	records := in.state.Records()

	var mu sync.Mutex
	count := 0
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(concurrency)
	for i, t := range in.targets {
		group.Go(func() error {
			var err error
			results[i], conflicts[i], found[i], err = a.examineOne(groupCtx, in, changes, t, a.isOurs(in.state.Set, t.w, records))
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			count++
			a.tell(Event{Kind: Checked, Subject: t.w.Ref(), Action: results[i].Action, Count: count, Total: len(in.targets)})
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, slices.Concat(found...), err
	}
	findings := slices.Concat(found...)
	changes.Workloads = results
	changes.Conflicts = slices.Concat(conflicts...)
	for _, c := range changes.Conflicts {
		findings = append(findings, c.Finding())
	}

	fs, err := a.examineObjects(ctx, in, changes)
	findings = append(findings, fs...)
	if err != nil {
		return nil, findings, err
	}
	fs, err = a.lasting(ctx, changes)
	findings = append(findings, fs...)
	if err != nil {
		return nil, findings, err
	}
	fs, err = a.examineNodes(ctx, in, changes)
	findings = append(findings, fs...)
	if err != nil {
		return nil, findings, err
	}
	fs, err = a.keepUsed(ctx, in, changes)
	findings = append(findings, fs...)
	if err != nil {
		return nil, findings, err
	}
	if err := a.findDisruptions(ctx, changes); err != nil {
		return nil, findings, err
	}
	changes.pools = in.pools
	changes.stateChanges = stateChanges(in)
	return changes, findings, nil
}

// stateChanges reports whether the state of the set must be written even if no
// object changes: a run was interrupted or failed, or the scope is another.
func stateChanges(in *intent) bool {
	latest := in.state.Latest()
	if latest == nil {
		return false
	}
	return latest.State != Complete || !sameScope(in.scope, in.state.Scope) || in.step != latest.Step || !samePools(in.pools, latest.Pools)
}

func sameScope(a, b Scope) bool {
	return slices.Equal(a.Folders, b.Folders) && slices.Equal(a.Namespaces, b.Namespaces)
}

// examineOne finds out what happens to one workload. If somebody else writes the
// object between our reading it and the dry run (a status, a scale), it is read
// again.
func (a *Applier) examineOne(ctx context.Context, in *intent, cs *ChangeSet, t *target, ours bool) (WorkloadChange, []Conflict, diag.Findings, error) {
	var change WorkloadChange
	var conflicts []Conflict
	var findings diag.Findings
	err := a.whileStale(ctx, t.w.Ref(), func() (err error) {
		change, conflicts, findings, err = a.examineOnce(ctx, in, cs, t, ours)
		return err
	}, func() error {
		now, err := a.again(ctx, t.w)
		if err == nil {
			t.w = now
		}
		return err
	})
	if err != nil {
		findings, err = refusal(t.w.Ref(), err)
	}
	return change, conflicts, findings, err
}

func (a *Applier) examineOnce(ctx context.Context, in *intent, cs *ChangeSet, t *target, ours bool) (WorkloadChange, []Conflict, diag.Findings, error) {
	w := t.w
	change := WorkloadChange{
		Workload: w, Action: Keep, Before: w.Object, After: w.Object,
		Policies: t.policies, Origins: t.origins, Changes: t.changes, target: t,
	}
	written, err := t.derive(w, workload.Stamp{UID: w.UID, Revision: cs.Revision})
	var overtaken *overtakenError
	switch {
	case errors.As(err, &overtaken):
		return change, nil, nil, err
	case err != nil:
		return change, nil, diag.Findings{{Rule: "apply/cannot-carry", Severity: diag.Error, Subject: w.Ref(), Message: err.Error()}}, nil
	}
	change.record = written.Record
	if settled(w, written, cs.Set) {
		change.record = inCluster(w.Record)
		return change, nil, nil, nil
	}
	if finding, stop := a.mayChange(in, cs.Set, t, written, ours); stop {
		change.Action = Refuse
		change.record = inCluster(w.Record)
		if finding.Rule != nextRun {
			return change, nil, diag.Findings{finding}, nil
		}
		change.Action = NextRun
		if len(t.changes) > 0 {
			// The compiler has said so, with the policy's line.
			return change, nil, nil, nil
		}
		return change, nil, diag.Findings{finding}, nil
	}
	if written.Record == nil {
		change.Action = Withdraw
		err = a.dryWithdraw(ctx, &change, written)
	} else {
		change.Action = Update
		var conflicts []Conflict
		conflicts, err = a.dryUpdate(ctx, cs.Set, &change, written)
		if err == nil && len(conflicts) > 0 {
			change.Action = Refuse
			return change, conflicts, nil, nil
		}
	}
	if err != nil {
		return change, nil, nil, err
	}
	change.Restarts, change.Pods = Restarts(change.Before, change.After)
	return change, nil, nil, nil
}

// inCluster returns the record of an object if a run in the cluster has written it. One
// that came with a manifest is no set's, and no set may take it back.
func inCluster(record *ownership.Record) *ownership.Record {
	if record != nil && record.UID == "" {
		return nil
	}
	return record
}

// settled reports whether the object already is as it shall be, in our fields,
// our record of them and our label; then it is not written at all.
func settled(w *workload.Workload, written *workload.Written, set Set) bool {
	for _, path := range ownedPaths(w.Record, written.Record) {
		got, _ := valueAt(w.Object, path)
		want, _ := valueAt(written.Object, path)
		if !covers(plain(got), plain(want), path) {
			return false
		}
	}
	if written.Record == nil {
		// With a record in a manifest and nothing of ours to add, there is nothing
		// of this set's to take away.
		return inCluster(w.Record) == nil
	}
	if w.Record != nil && inCluster(w.Record) == nil && w.Labels[ownership.SetLabel] == "" {
		// The manifest says all of it already, and keeps on saying it.
		return true
	}
	return !w.Remembered && w.Labels[ownership.SetLabel] == set.Label() && sameRecord(w.Record, written.Record)
}

// nextRun is the rule of findings on templates that cannot be changed any more.
const nextRun = "apply/next-run"

// mayChange says whether the workload may be changed by this set; if not, why.
func (a *Applier) mayChange(in *intent, set Set, t *target, written *workload.Written, ours bool) (diag.Finding, bool) {
	w := t.w
	if label, ok := w.Labels[ownership.SetLabel]; ok && label != set.Label() {
		other := setOfLabel(label)
		return diag.Finding{
			Rule: "apply/other-set", Severity: diag.Error, Subject: w.Ref(),
			Message: fmt.Sprintf("it belongs to set %q in namespace %q, and only one set may place a workload", other.Name, other.Namespace),
			Fix:     &diag.Fix{Message: fmt.Sprintf("let one of the sets not match it, or take it out of the other first (kubectl sched apply or delete --set %s)", other.Name)},
		}, true
	}
	if w.Record != nil && w.Record.UID == "" {
		return diag.Finding{
			Rule: "apply/rendered", Severity: diag.Error, Subject: w.Ref(),
			Message: "its placement was compiled into its manifest, which would undo a change made here",
			Fix:     &diag.Fix{Message: "compile the manifest again (kubectl sched compile --in-place) and apply that"},
		}, true
	}
	if w.Record != nil && !ours {
		return diag.Finding{
			Rule: "apply/unknown-set", Severity: diag.Error, Subject: w.Ref(),
			Message: fmt.Sprintf("it has fields of a set that cannot be told, because its label %q is gone", ownership.SetLabel),
			Fix:     &diag.Fix{Message: fmt.Sprintf("label it again with the name of its set: kubectl label … %s=NAME", ownership.SetLabel)},
		}, true
	}
	immutable := slices.ContainsFunc(w.Templates, func(t workload.Template) bool { return t.Immutable })
	if immutable {
		return diag.Finding{
			Rule: nextRun, Severity: diag.Info, Subject: w.Ref(),
			Message: "its pods cannot be changed once it exists; the policies apply to the next run",
		}, true
	}
	// Taking back what is ours never makes a new fight.
	if written.Record == nil && in.withdrawKept {
		return diag.Finding{}, false
	}
	if keeper := keeperOf(w); keeper != nil {
		return keeper.finding(w, a.SkipOwned), true
	}
	return diag.Finding{}, false
}

// missingRight tells a right that is missing from what an admission plugin
// forbids, which has the same status: User "x" cannot patch resource "pods".
var missingRight = regexp.MustCompile(`cannot [a-z]+ resource`)

// refusal turns what the API server says about one object into a finding; an
// error that is not about the object is returned as an error.
func refusal(subject string, err error) (diag.Findings, error) {
	var overtaken *overtakenError
	if errors.As(err, &overtaken) {
		return diag.Findings{{Rule: "apply/refused", Severity: diag.Error, Subject: subject, Message: overtaken.message}}, nil
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return nil, err
	}
	f := diag.Finding{Rule: "apply/refused", Severity: diag.Error, Subject: subject, Message: status.Status().Message}
	switch {
	case apierrors.IsForbidden(err) && missingRight.MatchString(f.Message):
		f.Rule = "apply/no-permission"
	case apierrors.IsServerTimeout(err), apierrors.IsTooManyRequests(err), apierrors.IsServiceUnavailable(err),
		apierrors.IsInternalError(err), apierrors.IsUnauthorized(err), apierrors.IsTimeout(err):
		return nil, fmt.Errorf("%s: %w", subject, err)
	}
	return diag.Findings{f}, nil
}

// fieldOwners returns who, besides the manager that we write under, owns the
// field at the pointer, or the list that it leads through.
func fieldOwners(object map[string]any, at, manager string) []string {
	var path workload.Path
	var node any = object
	for _, step := range splitPointer(at) {
		fields, ok := node.(map[string]any)
		if _, isList := node.([]any); isList {
			break
		}
		if ok {
			node = fields[step]
		}
		path = append(path, step)
	}
	owners := cluster.FieldOwners(object, path)
	return slices.DeleteFunc(owners, func(o string) bool { return o == manager })
}

func (a *Applier) tell(e Event) {
	if a.Progress == nil {
		return
	}
	a.telling.Lock()
	defer a.telling.Unlock()
	a.Progress(e)
}
