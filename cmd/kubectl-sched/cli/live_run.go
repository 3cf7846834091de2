package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/internal/apply"
	"github.com/kubectl-sched/kubectl-sched/internal/report"
)

// liveRun carries out a change set and says what it does: the common end of
// apply, undo and delete.
type liveRun struct {
	app     *app
	applier *apply.Applier
	flags   runFlags
	format  report.Format
	// pools names the pools of nodes.
	pools map[string]string
}

func (r *liveRun) run(ctx context.Context, changes *apply.ChangeSet, options apply.RunOptions) error {
	if r.flags.dryRun != dryRunNone {
		return r.dryRun(changes, options)
	}
	if r.format == report.Text {
		for _, line := range report.ChangeSummary(changes) {
			fmt.Fprintln(r.app.Out, line)
		}
	}
	r.applier.Progress = r.progress
	options.MaxUnavailable, options.RolloutTimeout, options.HistoryLimit = r.flags.maxWorkloads, r.flags.timeout, r.flags.historyLimit
	outcome, findings, err := r.applier.Run(ctx, changes, options)
	r.app.printFindings(findings.Sort())
	if err != nil {
		return interrupted(ctx, err)
	}
	failed := findings.HasErrors()
	if r.flags.wait {
		findings, err = r.applier.WaitInForce(ctx, changes, r.flags.timeout)
		r.app.printFindings(findings.Sort())
		if err != nil {
			return interrupted(ctx, err)
		}
		failed = failed || findings.HasErrors()
		findings, err = r.applier.WaitFor(ctx, changes.Restarting(), r.flags.timeout)
		r.app.printFindings(findings.Sort())
		if err != nil {
			return interrupted(ctx, err)
		}
		failed = failed || findings.HasErrors()
	}
	if err := r.finish(ctx, changes, outcome, options); err != nil {
		return err
	}
	if failed {
		return exitError{code: exitFailure}
	}
	return nil
}

// finish prints the outcome and, after a wait, where the pods are.
func (r *liveRun) finish(ctx context.Context, changes *apply.ChangeSet, outcome apply.Outcome, options apply.RunOptions) error {
	var landings []apply.Landing
	if r.flags.wait {
		var err error
		if landings, err = r.applier.Landings(ctx, changes.Placed(), func(node string) string { return r.pools[node] }); err != nil {
			return interrupted(ctx, err)
		}
	}
	if r.format != report.Text {
		return report.Applied(r.app.Out, r.format, changes, outcome, landings)
	}
	switch {
	case options.Forget:
		fmt.Fprintf(r.app.Out, "set %s deleted: %s\n", changes.Set.Name, counts(outcome))
	case outcome.Unchanged:
		fmt.Fprintf(r.app.Out, "set %s unchanged (revision %d)\n", changes.Set.Name, outcome.Revision)
	default:
		fmt.Fprintf(r.app.Out, "set %s is at revision %d: %s\n", changes.Set.Name, outcome.Revision, counts(outcome))
	}
	if r.flags.wait && len(landings) > 0 {
		return report.Landings(r.app.Out, landings)
	}
	return nil
}

func counts(o apply.Outcome) string {
	var parts []string
	for _, c := range []struct {
		n         int
		one, many string
	}{
		{o.Updated, "workload updated", "workloads updated"},
		{o.Withdrawn, "workload withdrawn from", "workloads withdrawn from"},
		{o.Nodes, "node written", "nodes written"},
		{o.Objects, "object written", "objects written"},
	} {
		if c.n > 0 {
			parts = append(parts, count(c.n, c.one, c.many))
		}
	}
	if len(parts) == 0 {
		return "nothing had to be changed"
	}
	return strings.Join(parts, ", ")
}

// dryRun says what a run would write.
func (r *liveRun) dryRun(changes *apply.ChangeSet, options apply.RunOptions) error {
	if r.format != report.Text {
		return report.Applied(r.app.Out, r.format, changes, apply.Outcome{Unchanged: changes.Empty()}, nil)
	}
	suffix := fmt.Sprintf(" (%s dry run)", r.flags.dryRun)
	if changes.Empty() && !options.Forget {
		fmt.Fprintf(r.app.Out, "set %s unchanged%s\n", changes.Set.Name, suffix)
		return nil
	}
	for _, line := range report.ChangeSummary(changes) {
		fmt.Fprintln(r.app.Out, line)
	}
	for _, w := range changes.Workloads {
		if w.Action != apply.Keep {
			fmt.Fprintf(r.app.Out, "%s %s%s\n", w.Workload.Ref(), past(w.Action), suffix)
		}
	}
	return nil
}

// progress prints a line for each write, and each new word on a rollout.
func (r *liveRun) progress(e apply.Event) {
	switch e.Kind {
	case apply.Wrote:
		if r.format == report.Text {
			fmt.Fprintf(r.app.Out, "%s %s\n", e.Subject, cmp.Or(e.Message, past(e.Action)))
		}
	case apply.Waiting:
		fmt.Fprintf(r.app.ErrOut, "[%d/%d] %s: %s\n", e.Count, e.Total, e.Subject, strings.TrimSpace(e.Message))
	case apply.Done:
		fmt.Fprintf(r.app.ErrOut, "[%d/%d] %s: rolled out\n", e.Count, e.Total, e.Subject)
	case apply.Checked: // shown as the change set, once all is checked
	}
}

// past says of an action that it has been done.
func past(a apply.Action) string {
	switch a {
	case apply.Update:
		return "updated"
	case apply.Withdraw:
		return "withdrawn"
	case apply.Create:
		return "created"
	case apply.Delete:
		return "removed"
	case apply.Replace:
		return "replaced"
	case apply.NextRun:
		return "applies to the next run"
	case apply.Refuse:
		return "left alone"
	case apply.Keep:
	}
	return "unchanged"
}

// interrupted keeps the words of an error that came of the user's own signal,
// which says how to go on.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return exitError{code: exitInterrupted, err: errors.New(err.Error())}
	}
	return err
}
