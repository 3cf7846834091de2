package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/internal/workload/ownership"
)

// dryUpdate asks for a dry run of an update and settles how it will be written.
// It returns the conflicts, unless they are to be forced.
func (a *Applier) dryUpdate(ctx context.Context, set Set, change *WorkloadChange, written *workload.Written) ([]Conflict, error) {
	w := change.Workload
	change.route = routeFor(w, written.Record)
	change.restored = restored(w, written, a.manager())
	change.record = transitional(written, change.restored)
	if a.ClientOnly {
		change.After = written.Object
		return nil, nil
	}
	if change.route == byPatch {
		return a.dryPatch(ctx, set, change, written)
	}

	result, err := a.claimIn(ctx, set, change, true)
	conflicts := conflictsIn(err, w.Ref(), change.Origins)
	switch {
	case len(conflicts) > 0 && !a.takesNothing(w, conflicts) && !a.ForceConflicts:
		return conflicts, nil
	case len(conflicts) > 0:
		change.force = true
		result, err = a.claimIn(ctx, set, change, true)
	}
	if err != nil {
		return nil, err
	}
	missed := slices.DeleteFunc(ownedPaths(w.Record, change.record), func(path string) bool {
		got, _ := valueAt(result, path)
		want, _ := valueAt(written.Object, path)
		return covers(plain(got), plain(want), path)
	})
	if len(missed) == 0 {
		change.After = result
		change.record = asStored(change.record, result)
		return nil, nil
	}
	// Server-side apply leaves what others own too. Only a patch gets it out.
	if !a.ForceConflicts {
		for _, path := range missed {
			for _, owner := range fieldOwners(w.Object, path, a.manager()) {
				conflicts = append(conflicts, Conflict{Subject: w.Ref(), Field: fieldOfPointer(path), Owner: owner, Origins: originsAt(change.Origins, path)})
			}
		}
		if len(conflicts) > 0 {
			return conflicts, nil
		}
	}
	change.route = byPatch
	return a.dryPatch(ctx, set, change, written)
}

// dryPatch is dryUpdate by the other route. A field inside a list belongs to
// whoever owns the list; that alone is no conflict, but a value that somebody
// else has set is.
func (a *Applier) dryPatch(ctx context.Context, set Set, change *WorkloadChange, written *workload.Written) ([]Conflict, error) {
	w := change.Workload
	change.restored = nil
	change.record = written.Record
	if conflicts := setByOthers(w, written.Record, change.Origins, a.manager()); len(conflicts) > 0 && !a.ForceConflicts {
		return conflicts, nil
	}
	result, err := a.patchIn(ctx, set, change, written, true)
	if err != nil {
		return nil, err
	}
	change.After = result
	return nil, nil
}

// setByOthers returns a conflict for each field that would be ours and has a
// value that somebody else set, unless an earlier run already took it over. Once
// a list has been patched the API server names us as the owner of all of it, so
// that who set the value may not be known any more.
func setByOthers(w *workload.Workload, record *ownership.Record, origins map[string][]compiler.Origin, manager string) []Conflict {
	var conflicts []Conflict
	for _, f := range record.Fields {
		taken := w.Record != nil && slices.ContainsFunc(w.Record.Fields, func(g ownership.Field) bool {
			return g.Path == f.Path && same(plain(g.Before), plain(f.Before))
		})
		if f.Before == nil || taken || f.Container != "" && keepsAll(f) || nobodysChoice(w, f.Path, manager) {
			continue
		}
		owners := fieldOwners(w.Object, f.Path, manager)
		if len(owners) == 0 {
			owners = []string{""}
		}
		for _, owner := range owners {
			conflicts = append(conflicts, Conflict{Subject: w.Ref(), Field: fieldOfPointer(f.Path), Owner: owner, Origins: originsAt(origins, f.Path)})
		}
	}
	return conflicts
}

// restored returns the fields that the object's record has and the new one does
// not, and that go back to a value from before us: server-side apply can only
// take away what it no longer mentions, so these are applied once more with
// their old value, and let go of afterwards.
func restored(w *workload.Workload, written *workload.Written, manager string) []string {
	if w.Record == nil {
		return nil
	}
	var paths []string
	for _, f := range w.Record.Fields {
		kept := slices.ContainsFunc(written.Record.Fields, func(g ownership.Field) bool { return g.Path == f.Path })
		value, ok := valueAt(written.Object, f.Path)
		if kept || !ok || value == nil || onlyAdded(w, f) {
			continue
		}
		if now, _ := valueAt(w.Object, f.Path); len(fieldOwners(w.Object, f.Path, manager)) > 0 && same(plain(now), plain(value)) {
			// Somebody has set it since; it is theirs.
			continue
		}
		paths = append(paths, f.Path)
	}
	return paths
}

// onlyAdded reports whether the field is a list to which we added elements that
// the API server tells from the others: they go as soon as they are not applied
// any more, and the others were never ours.
func onlyAdded(w *workload.Workload, f ownership.Field) bool {
	return isKeyedList(f.Path) && builtin(w.Group) && keepsAll(f)
}

// keepsAll reports whether all elements of the list that was there are in the one
// that we wrote, as they were.
func keepsAll(f ownership.Field) bool {
	before, ok := plain(f.Before).([]any)
	wrote, ok2 := plain(f.Wrote).([]any)
	return ok && ok2 && !slices.ContainsFunc(before, func(b any) bool {
		return !slices.ContainsFunc(wrote, func(v any) bool { return same(b, v) })
	})
}

// transitional returns the new record with the restored fields still in it: as
// long as we are named as their owner, the record says so too.
func transitional(written *workload.Written, restored []string) *ownership.Record {
	record := *written.Record
	record.Fields = slices.Clone(record.Fields)
	for _, path := range restored {
		value, _ := valueAt(written.Object, path)
		record.Fields = append(record.Fields, ownership.Field{Path: path, Before: value, Wrote: value})
	}
	slices.SortFunc(record.Fields, func(a, b ownership.Field) int { return strings.Compare(a.Path, b.Path) })
	return &record
}

// asStored returns the record with the values as the API server will store
// them, so that what it fills in is not taken for a change by somebody else.
func asStored(record *ownership.Record, result map[string]any) *ownership.Record {
	stored := *record
	stored.Fields = slices.Clone(record.Fields)
	for i, f := range stored.Fields {
		if value, ok := valueAt(result, f.Path); ok && !same(plain(value), plain(f.Wrote)) {
			stored.Fields[i].Wrote = value
		}
	}
	return &stored
}

// claimIn sends the server-side apply.
func (a *Applier) claimIn(ctx context.Context, set Set, change *WorkloadChange, dryRun bool) (map[string]any, error) {
	w := change.Workload
	resource, err := a.resource(w)
	if err != nil {
		return nil, err
	}
	object, err := claim(w, set, change.record)
	if err != nil {
		return nil, err
	}
	if change.force {
		// What is overwritten must be what was recorded as the value before.
		object.SetResourceVersion(w.ResourceVersion)
	}
	options := metav1.ApplyOptions{FieldManager: a.manager(), Force: change.force, DryRun: dryRunOption(dryRun)}
	result, err := resource.Apply(ctx, w.Name, object, options)
	if err != nil {
		return nil, err
	}
	return result.Object, nil
}

// patchIn sends the update as a JSON patch.
func (a *Applier) patchIn(ctx context.Context, set Set, change *WorkloadChange, written *workload.Written, dryRun bool) (map[string]any, error) {
	w := change.Workload
	text, err := change.record.Encode()
	if err != nil {
		return nil, fmt.Errorf("%s: encode the placement record: %w", w.Ref(), err)
	}
	live := raw(w)
	after := withMetadata(live, set.Label(), text)
	ops := append([]operation{atVersion(w.ResourceVersion)}, bodyDifference(live, written.Object)...)
	ops = append(ops, difference(live["metadata"], after["metadata"], "metadata")...)
	return a.send(ctx, w, ops, dryRun)
}

// dryWithdraw asks for a dry run of a withdrawal.
func (a *Applier) dryWithdraw(ctx context.Context, change *WorkloadChange, written *workload.Written) error {
	if a.ClientOnly {
		change.After = written.Object
		return nil
	}
	result, err := a.send(ctx, change.Workload, withdrawal(change.Workload, written, true, a.manager()), true)
	if err != nil {
		return err
	}
	change.After = result
	return nil
}

// withdrawal returns the patch that takes our fields out of the object. With
// release it takes our mark off the object as well.
func withdrawal(w *workload.Workload, written *workload.Written, release bool, manager string) []operation {
	live := raw(w)
	ops := append([]operation{atVersion(w.ResourceVersion)}, bodyDifference(live, written.Object)...)
	if release {
		ops = append(ops, releaseOps(live, manager)...)
	}
	return ops
}

// raw is the object as it is in the cluster, without an annotation that is only
// remembered.
func raw(w *workload.Workload) map[string]any {
	if !w.Remembered {
		return w.Object
	}
	return withoutAnnotation(w.Object)
}

// send sends a JSON patch; one without operations besides the test is not sent.
func (a *Applier) send(ctx context.Context, w *workload.Workload, ops []operation, dryRun bool) (map[string]any, error) {
	if len(ops) < 2 {
		return w.Object, nil
	}
	resource, err := a.resource(w)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(ops)
	if err != nil {
		return nil, fmt.Errorf("%s: encode the patch: %w", w.Ref(), err)
	}
	result, err := resource.Patch(ctx, w.Name, types.JSONPatchType, data, metav1.PatchOptions{FieldManager: a.manager(), DryRun: dryRunOption(dryRun)})
	if err != nil {
		return nil, err
	}
	return result.Object, nil
}

func dryRunOption(dryRun bool) []string {
	if dryRun {
		return []string{metav1.DryRunAll}
	}
	return nil
}
