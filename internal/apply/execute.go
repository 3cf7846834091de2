package apply

import (
	"context"
	"slices"

	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/internal/workload/ownership"
)

// write carries out one change. It may be stopped after any request: what it
// has done by then is recorded in the object, and doing it again does the rest.
func (a *Applier) write(ctx context.Context, set Set, change *WorkloadChange) error {
	once := a.update
	if change.Action == Withdraw {
		once = a.withdraw
	}
	return a.whileStale(ctx, change.Workload.Ref(), func() error {
		return once(ctx, set, change)
	}, func() error {
		now, err := a.again(ctx, change.Workload)
		if err != nil {
			return err
		}
		return change.rebase(now)
	})
}

// rebase moves the change onto a newer version of its object, provided that the
// newer one asks for the same change.
func (c *WorkloadChange) rebase(now *workload.Workload) error {
	if c.Action != Withdraw {
		written, err := c.target.derive(now, workload.Stamp{UID: now.UID, Revision: c.record.Revision})
		if err != nil {
			return err
		}
		if !sameRecord(c.final(), written.Record) {
			return &overtakenError{subject: now.Ref(), message: "somebody else changed its placement meanwhile; run the command again"}
		}
	}
	c.Workload = now
	return nil
}

// final is the record of the change without the fields that are only let go of.
func (c *WorkloadChange) final() *ownership.Record {
	if c.record == nil || len(c.restored) == 0 {
		return c.record
	}
	record := *c.record
	record.Fields = slices.DeleteFunc(slices.Clone(record.Fields), func(f ownership.Field) bool { return slices.Contains(c.restored, f.Path) })
	return &record
}

// update writes our fields into the object.
func (a *Applier) update(ctx context.Context, set Set, change *WorkloadChange) error {
	if change.route == byPatch {
		written, err := change.target.derive(change.Workload, workload.Stamp{UID: change.Workload.UID, Revision: change.record.Revision})
		if err != nil {
			return err
		}
		_, err = a.patchIn(ctx, set, change, written, false)
		return err
	}
	result, err := a.claimIn(ctx, set, change, false)
	if err != nil || len(change.restored) == 0 {
		return err
	}

	// The restored fields have their old values again, but we are named as their
	// owner. Let go of them first, and only then stop mentioning them: the other
	// way round they would be taken away.
	ops, err := letGoOps(result, change.restored, a.manager())
	if err != nil {
		return err
	}
	w := withObject(change.Workload, result)
	result, err = a.send(ctx, w, append([]operation{atVersion(w.ResourceVersion)}, ops...), false)
	if err != nil {
		return err
	}
	rest := *change
	rest.Workload = withObject(change.Workload, result)
	rest.record, rest.restored = change.final(), nil
	_, err = a.claimIn(ctx, set, &rest, false)
	return err
}

// withdraw takes our fields, and then our mark, out of the object. All fields
// change in one request, so that the pods restart once. Where a value from
// before us is put back, or a list changes inside, we would be named as the
// owner, so the mark is taken off in a second request, which restarts nothing.
func (a *Applier) withdraw(ctx context.Context, _ Set, change *WorkloadChange) error {
	w := change.Workload
	written, err := without(w, workload.Stamp{UID: w.UID})
	if err != nil {
		return err
	}
	fields := bodyDifference(raw(w), written.Object)
	restoring := slices.ContainsFunc(fields, func(o operation) bool { return o.Op != "remove" || throughList(w.Object, o.Path) })
	if !restoring {
		_, err := a.send(ctx, w, withdrawal(w, written, true, a.manager()), false)
		return err
	}
	result, err := a.send(ctx, w, withdrawal(w, written, false, a.manager()), false)
	if err != nil {
		return err
	}
	w = withObject(w, result)
	_, err = a.send(ctx, w, append([]operation{atVersion(w.ResourceVersion)}, releaseOps(w.Object, a.manager())...), false)
	return err
}

// withObject returns the workload with the object as the API server has just
// returned it. Only what writing needs is brought up to date.
func withObject(w *workload.Workload, object map[string]any) *workload.Workload {
	now := *w
	now.Object, now.Remembered = object, false
	if version, ok := valueAt(object, "/metadata/resourceVersion"); ok {
		now.ResourceVersion, _ = version.(string)
	}
	return &now
}
