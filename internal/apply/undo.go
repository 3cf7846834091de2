package apply

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/internal/workload/ownership"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// UndoTarget returns the revision that an undo goes back to: the given one, or,
// for 0, the newest complete one before the newest.
func (s *State) UndoTarget(number int) (*Revision, error) {
	if !s.Exists() || s.Latest() == nil {
		return nil, noRevision("set %q has no revisions in namespace %q", s.Set.Name, s.Set.Namespace)
	}
	if number != 0 {
		r := s.Revision(number)
		if r == nil {
			return nil, noRevision("set %q has no revision %d; \"kubectl sched history --set %s\" lists those that are kept", s.Set.Name, number, s.Set.Name)
		}
		return r, nil
	}
	for _, r := range slices.Backward(s.Revisions[:len(s.Revisions)-1]) {
		if r.State == Complete {
			return r, nil
		}
	}
	return nil, noRevision("set %q has no complete revision before revision %d; \"kubectl sched delete --set %s\" takes it out of the cluster", s.Set.Name, s.Latest().Number, s.Set.Name)
}

// noRevision is the finding on an undo that leads nowhere.
func noRevision(format string, args ...any) diag.Findings {
	return diag.Findings{{Rule: "apply/no-revision", Severity: diag.Error, Message: fmt.Sprintf(format, args...)}}
}

// PrepareUndo finds out what going back to the revision changes. Its fields are
// written again as a new revision, and what later revisions added is withdrawn.
// Objects that git is the truth of are refused: what has to be reverted there is
// in the findings.
func (a *Applier) PrepareUndo(ctx context.Context, state *State, to *Revision) (*ChangeSet, diag.Findings, error) {
	in := &intent{state: state, scope: to.Scope, step: to.Step, source: to.Source, cause: fmt.Sprintf("undo to revision %d", to.Number), prune: true}
	records := state.Records()
	var findings diag.Findings
	seen := map[types.UID]bool{}
	for _, item := range to.Items {
		w, fs, err := a.fetch(ctx, item, records)
		findings = append(findings, fs...)
		if err != nil {
			return nil, findings, err
		}
		if w == nil {
			findings = append(findings, diag.Finding{
				Rule: "apply/gone", Severity: diag.Warning, Subject: item.Ref(),
				Message: fmt.Sprintf("it was part of revision %d and does not exist any more", to.Number),
			})
			continue
		}
		seen[types.UID(w.UID)] = true
		in.targets = append(in.targets, recorded(w, item))
	}
	gone, fs, err := a.unread(ctx, state, seen)
	findings = append(findings, fs...)
	if err != nil {
		return nil, findings, err
	}
	in.targets = append(in.targets, gone...)
	for _, o := range to.Objects {
		in.objects = append(in.objects, wantedObject{object: o.unstructured(), origins: o.Origins})
	}
	in.nodes, in.pools = recordedMarks(to), to.Pools

	changes, fs, err := a.examine(ctx, in)
	findings = append(findings, fs...)
	for i := range findings {
		if findings[i].Rule == "apply/owned" {
			explainRevert(&findings[i], to)
		}
	}
	return changes, findings, err
}

// explainRevert says what to revert where the object comes from.
func explainRevert(f *diag.Finding, to *Revision) {
	f.Fix = &diag.Fix{Message: fmt.Sprintf(
		"revert the change to its manifest in git that was made after revision %d (%s), or compile the policies as they were then", to.Number, to.Started.Format("2006-01-02 15:04 MST"))}
	for _, item := range to.Items {
		if item.Ref() != f.Subject || item.Record == nil {
			continue
		}
		f.Fix.Message += "; the fields are"
		for i, field := range item.Record.Fields {
			if i > 0 {
				f.Fix.Message += ","
			}
			f.Fix.Message += " " + fieldOfPointer(field.Path)
		}
	}
}

// recorded returns the target that writes an item's fields again. What somebody
// else has changed in the meantime stays beside them.
func recorded(w *workload.Workload, item Item) *target {
	derive := func(w *workload.Workload, stamp workload.Stamp) (*workload.Written, error) {
		base := w.Object
		if w.Record != nil {
			base, _ = ownership.Withdraw(w.Object, w.Record)
		}
		var writes []ownership.Write
		object := base
		for _, f := range item.Record.Fields {
			before, _ := valueAt(base, f.Path)
			write := ownership.Write{Path: f.Path, Template: f.Template, Before: before, After: replay(f, before)}
			writes = append(writes, write)
			changed, err := withValue(object, f.Path, write.After)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", w.Ref(), err)
			}
			object = changed
		}
		record := ownership.Build(base, writes)
		if record != nil {
			record.UID, record.Revision = stamp.UID, stamp.Revision
		}
		return &workload.Written{Object: object, Record: record}, nil
	}
	return &target{w: w, derive: derive, policies: item.Policies, origins: item.Origins}
}

// replay returns what the field comes to when what was done to it once is done
// to the value that is there now.
func replay(f ownership.Field, now any) any {
	if same(plain(f.Before), plain(now)) {
		return f.Wrote
	}
	wrote, ok := plain(f.Wrote).([]any)
	current, isList := plain(now).([]any)
	if !ok || !isList && now != nil {
		return f.Wrote
	}
	before, _ := plain(f.Before).([]any)
	result := slices.Clone(current)
	for _, element := range wrote {
		has := func(list []any) bool { return slices.ContainsFunc(list, func(e any) bool { return same(e, element) }) }
		if !has(before) && !has(result) {
			result = append(result, element)
		}
	}
	return result
}
