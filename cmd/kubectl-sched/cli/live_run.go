package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/kubectl-sched/kubectl-sched/internal/apply"
	"github.com/kubectl-sched/kubectl-sched/internal/report"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// liveRun carries out a change set and says what it does: the common end of
// apply, undo and delete.
type liveRun struct {
	app     *app
	applier *apply.Applier
	flags   runFlags
	format  report.Format
	// cluster is its name in the policies; empty where they speak of none.
	cluster string
	// pools names the pools of nodes.
	pools map[string]string

	progress *progress
}

func (r *liveRun) run(ctx context.Context, changes *apply.ChangeSet, options apply.RunOptions) error {
	if r.flags.dryRun != dryRunNone {
		return r.dryRun(changes, options)
	}
	if r.format == report.Text {
		r.app.sayChanges(changes)
	}
	r.progress = r.app.newProgress(r.format)
	r.progress.total = len(changes.Restarting())
	defer r.progress.end()
	r.applier.Progress = r.progress.hear
	options.MaxUnavailable, options.RolloutTimeout, options.HistoryLimit = r.flags.maxWorkloads, r.flags.timeout, r.flags.historyLimit
	options.Settle = settleTime
	if r.flags.wait {
		options.Settle = max(settleTime, r.flags.timeout)
	}
	outcome, findings, err := r.applier.Run(ctx, changes, options)
	r.progress.end()
	r.app.printFindings(findings.Sort())
	if err != nil {
		return interrupted(ctx, err)
	}
	refused := findings.HasErrors()
	if refused && outcome.Revision == 0 {
		// It was not let begin.
		return exitError{code: exitFailure}
	}
	failed := refused
	if r.flags.wait {
		if findings, err = r.wait(ctx, changes); err != nil {
			return interrupted(ctx, err)
		}
		failed = failed || findings.HasErrors()
	}
	if err := r.finish(ctx, changes, outcome, options, refused); err != nil {
		return err
	}
	if failed {
		return exitError{code: exitFailure}
	}
	return nil
}

// settleTime is how long a run that need not wait for rollouts waits all the same
// before it leaves to a later one what pods of an old revision still need.
const settleTime = 10 * time.Second

// wait waits for what the run has set off, and prints what is wrong with it.
func (r *liveRun) wait(ctx context.Context, changes *apply.ChangeSet) (diag.Findings, error) {
	findings, err := r.applier.WaitInForce(ctx, changes, r.flags.timeout)
	if err == nil && !findings.HasErrors() {
		var late diag.Findings
		late, err = r.applier.WaitFor(ctx, changes.Waited(), r.flags.timeout)
		findings = append(findings, late...)
	}
	r.progress.end()
	r.app.printFindings(findings.Sort())
	return findings, err
}

// finish prints the outcome and, after a wait, where the pods are.
func (r *liveRun) finish(ctx context.Context, changes *apply.ChangeSet, outcome apply.Outcome, options apply.RunOptions, refused bool) error {
	var landings []apply.Landing
	if r.flags.wait {
		var err error
		if landings, err = r.applier.Landings(ctx, changes.Placed(), func(node string) string { return r.pools[node] }); err != nil {
			return interrupted(ctx, err)
		}
	}
	if r.format != report.Text {
		return report.Applied(r.app.Out, r.format, r.cluster, changes, outcome, landings)
	}
	switch {
	case refused:
		r.app.say(r.app.Out, "set %s is at revision %d, and some of it was refused: %s", changes.Set.Name, outcome.Revision, counts(outcome))
	case options.Forget && outcome.InUse > 0:
		r.app.say(r.app.Out, "set %s is taken out but for what pods still need: %s, %d still in use; run the command again when that is over", changes.Set.Name, counts(outcome), outcome.InUse)
	case options.Forget:
		r.app.say(r.app.Out, "set %s deleted: %s", changes.Set.Name, counts(outcome))
	case outcome.Unchanged && outcome.Revision == 0:
		r.app.say(r.app.Out, "set %s is empty: no policy holds for anything in its scope, and nothing was written", changes.Set.Name)
	case outcome.Unchanged:
		r.app.say(r.app.Out, "set %s unchanged (revision %d)", changes.Set.Name, outcome.Revision)
	default:
		r.app.say(r.app.Out, "set %s is at revision %d: %s", changes.Set.Name, outcome.Revision, counts(outcome))
	}
	if r.flags.wait && len(landings) > 0 {
		return report.Landings(r.app.Out, landings, r.app.reportOptions(r.app.Out))
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
		{o.Withdrawn, "workload put back as it was", "workloads put back as they were"},
		{o.Nodes, "node changed", "nodes changed"},
		{o.Objects, "object written", "objects written"},
		{o.Removed, "object removed", "objects removed"},
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
		return report.Applied(r.app.Out, r.format, r.cluster, changes, apply.Outcome{Unchanged: changes.Empty()}, nil)
	}
	suffix := fmt.Sprintf(" (%s dry run)", r.flags.dryRun)
	if changes.Empty() && !options.Forget {
		r.app.say(r.app.Out, "set %s unchanged%s", changes.Set.Name, suffix)
		return nil
	}
	r.app.sayChanges(changes)
	for _, w := range changes.Workloads {
		if w.Action != apply.Keep {
			r.app.say(r.app.Out, "%s %s%s", w.Workload.Ref(), past(w.Action), suffix)
		}
	}
	return nil
}

// past says of an action that it has been done.
func past(a apply.Action) string {
	switch a {
	case apply.Update:
		return "updated"
	case apply.Withdraw:
		return "put back as it was"
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
