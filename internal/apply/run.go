package apply

import (
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/internal/workload/ownership"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// DefaultHistoryLimit is how many revisions are kept.
const DefaultHistoryLimit = 10

// RunOptions say how to carry out a change set.
type RunOptions struct {
	// MaxUnavailable is how many workloads may be in the middle of a rollout that
	// the run caused; 0 for no bound.
	MaxUnavailable int
	// RolloutTimeout bounds the wait for one workload's rollout under
	// MaxUnavailable.
	RolloutTimeout time.Duration
	// HistoryLimit is how many revisions are kept; 0 for DefaultHistoryLimit.
	HistoryLimit int
	// Forget removes the state of the set in the end: there is nothing left of it.
	// What pods may still need keeps the set in the cluster all the same, and the
	// next run with Forget ends it.
	Forget bool
	// Settle bounds the wait for the pods of an old revision that still need what
	// is to be deleted; 0 keeps it at once for a later run.
	Settle time.Duration
}

// Outcome is what a run has done.
type Outcome struct {
	// Revision is the number of the revision that is in force now; 0 for none.
	Revision int
	// Unchanged says that everything already was as it shall be, and that nothing
	// was written.
	Unchanged bool
	// Updated, Withdrawn, Nodes and Objects count what was written; Removed are
	// the objects that were deleted.
	Updated, Withdrawn, Nodes, Objects, Removed int
	// InUse counts what was kept only because pods may still need it.
	InUse int
}

// Run carries out the change set, in phases: objects of our making, nodes (but for
// taints that evict), workloads, what is withdrawn and pruned. A revision is opened before the first
// of these writes and closed after the last.
//
// Findings are workloads and nodes that could not be written, because the API server
// refused it or somebody else always came first; the rest has been done, but
// nothing was pruned, and the revision says that it failed. An error means that
// the run ended early: the revision stays open, and running the command again
// finishes it.
func (a *Applier) Run(ctx context.Context, cs *ChangeSet, o RunOptions) (Outcome, diag.Findings, error) {
	if cs.Empty() && (!o.Forget || cs.InUse() > 0 && cs.state.Latest() != nil) {
		outcome := Outcome{Unchanged: true, InUse: cs.InUse()}
		if latest := cs.state.Latest(); latest != nil {
			outcome.Revision = latest.Number
		}
		return outcome, nil, nil
	}
	findings, err := a.Preflight(ctx, cs)
	if err != nil || findings.HasErrors() {
		return Outcome{}, findings, err
	}
	revision := a.revision(ctx, cs)
	store := a.store(cs.Set)
	held, hold, err := a.take(ctx, store, cs, revision, slices.Concat(cs.state.groupKinds(), cs.groupKinds(true)))
	if err != nil {
		return Outcome{}, findings, err
	}
	defer hold.release(ctx)
	if err := store.open(ctx, hold.current(), revision); err != nil {
		return Outcome{}, findings, err
	}

	r := &run{Applier: a, cs: cs, options: o}
	if err := r.phases(held); err != nil {
		if cause := context.Cause(held); cause != nil && ctx.Err() == nil {
			err = cause
		}
		return r.outcome, append(findings, r.findings...), r.stopped(revision.Number, err)
	}
	parent := hold.end()
	findings = append(findings, r.findings...)
	end := Complete
	if r.findings.HasErrors() {
		end = Failed
	}
	r.outcome.InUse = cs.InUse()
	if o.Forget && end == Complete && r.outcome.InUse == 0 {
		for _, old := range append(slices.Clone(cs.state.Revisions), revision) {
			if err := store.remove(ctx, old); err != nil {
				return r.outcome, findings, err
			}
		}
		hold.settled(nil)
		return r.outcome, findings, store.removeParent(ctx, parent)
	}
	if err := store.finish(ctx, revision, end, a.now()); err != nil {
		return r.outcome, findings, err
	}
	if end == Complete {
		if parent, err = store.saveParent(ctx, parent, cs.Scope, cs.groupKinds(false), nil); err != nil {
			return r.outcome, findings, err
		}
		hold.settled(parent)
	}
	r.outcome.Revision = revision.Number
	cs.state.Revisions = append(cs.state.Revisions, revision)
	limit := o.HistoryLimit
	if limit == 0 {
		limit = DefaultHistoryLimit
	}
	return r.outcome, findings, store.forget(ctx, cs.state, limit)
}

// revision returns the revision that the run sets out to reach.
func (a *Applier) revision(ctx context.Context, cs *ChangeSet) *Revision {
	r := &Revision{
		Format: revisionFormat, Number: cs.Revision, Cause: cs.Cause, By: a.user(ctx), Tool: a.Tool,
		Started: a.now().UTC().Truncate(time.Second), Scope: cs.Scope, Step: cs.Step, Source: cs.source, Pools: cs.pools,
	}
	mentioned := map[string]bool{}
	for i := range cs.Workloads {
		change := &cs.Workloads[i]
		mentioned[change.Workload.UID] = true
		if record := change.final(); record != nil && change.Action != Withdraw {
			r.Items = append(r.Items, itemOf(change, record))
		}
	}
	for _, item := range cs.state.items() {
		// What the run did not look at stays as it is, and known.
		if !cs.Prune && !mentioned[string(item.UID)] {
			r.Items = append(r.Items, item)
		}
	}
	for i := range cs.Objects {
		if o := &cs.Objects[i]; o.Action != Delete {
			r.Objects = append(r.Objects, ObjectItem{Object: o.recorded(), Origins: o.Origins})
		}
	}
	for _, n := range cs.Nodes {
		if n.Action != Delete {
			r.Nodes = append(r.Nodes, NodeItem{Name: n.Name, UID: n.UID, Pool: n.Pool, Taint: n.Taint, Label: n.Label, Value: n.Value})
		}
	}
	return r
}

// user is who we are to the cluster; empty if it does not say.
func (a *Applier) user(ctx context.Context) string {
	review, err := a.Client.Kube.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		// It is for the history alone.
		return ""
	}
	return review.Status.UserInfo.Username
}

// run is the state of one run.
type run struct {
	*Applier
	cs      *ChangeSet
	options RunOptions
	outcome Outcome

	mu          sync.Mutex
	findings    diag.Findings
	done, total int
}

// phases writes everything, in order.
func (r *run) phases(ctx context.Context) error {
	var updates, withdrawals []*WorkloadChange
	for i := range r.cs.Workloads {
		switch change := &r.cs.Workloads[i]; change.Action {
		case Update:
			updates = append(updates, change)
		case Withdraw:
			withdrawals = append(withdrawals, change)
		default: // nothing is written
		}
	}
	nodes := byNode(r.cs.Nodes)
	var before, after []*ObjectChange
	for i := range r.cs.Objects {
		switch o := &r.cs.Objects[i]; o.Action {
		case Create, Update, Replace:
			before = append(before, o)
		case Delete:
			after = append(after, o)
		default: // nothing is written
		}
	}
	slices.Reverse(after)
	var early, late [][]NodeChange
	for _, changes := range nodes {
		switch {
		case !slices.ContainsFunc(changes, func(c NodeChange) bool { return c.Action != Delete }), slices.ContainsFunc(changes, evicts):
			// Pods must tolerate a taint that evicts before it is there.
			late = append(late, changes)
		default:
			early = append(early, changes)
		}
	}
	r.total = len(updates) + len(withdrawals) + len(nodes) + len(before) + len(after)

	if err := r.objects(ctx, before); err != nil {
		return err
	}
	if err := r.nodes(ctx, early); err != nil {
		return err
	}
	if err := r.workloads(ctx, updates); err != nil {
		return err
	}
	if r.findings.HasErrors() {
		// What could not be written may still need what would be taken away.
		return nil
	}
	if len(withdrawals) > 0 && len(before) > 0 {
		// A pod that restarts because its template goes back must meet the
		// admission policies that it gets its placement from instead.
		findings, err := r.WaitInForce(ctx, r.cs, inForceTimeout)
		r.findings = append(r.findings, findings...)
		if err != nil || findings.HasErrors() {
			return err
		}
	}
	if err := r.workloads(ctx, withdrawals); err != nil {
		return err
	}
	if r.findings.HasErrors() {
		return nil
	}
	if err := r.nodes(ctx, late); err != nil {
		return err
	}
	if r.findings.HasErrors() {
		return nil
	}
	if err := r.settle(ctx); err != nil {
		return err
	}
	return r.objects(ctx, after)
}

// evicts reports whether the change makes a node throw pods off.
func evicts(c NodeChange) bool {
	return c.Action != Delete && c.Taint.Effect == corev1.TaintEffectNoExecute
}

// byNode groups the changes that are to be made by node.
func byNode(changes []NodeChange) [][]NodeChange {
	var groups [][]NodeChange
	for _, c := range changes {
		if c.Action == Keep {
			continue
		}
		if n := len(groups); n > 0 && groups[n-1][0].Name == c.Name {
			groups[n-1] = append(groups[n-1], c)
			continue
		}
		groups = append(groups, []NodeChange{c})
	}
	return groups
}

func (r *run) objects(ctx context.Context, changes []*ObjectChange) error {
	for _, c := range changes {
		if err := ctx.Err(); err != nil {
			return err
		}
		if c.inUse {
			continue
		}
		if err := r.writeObject(ctx, c); err != nil {
			return err
		}
		if c.Action == Delete {
			r.outcome.Removed++
		} else {
			r.outcome.Objects++
		}
		r.wrote(c.Ref(), c.Action, "")
	}
	return nil
}

func (r *run) nodes(ctx context.Context, groups [][]NodeChange) error {
	return r.each(ctx, len(groups), concurrency, func(ctx context.Context, i int) error {
		if err := r.writeNode(ctx, r.cs.Set, groups[i]); err != nil {
			return r.refused("Node "+groups[i][0].Name, nil, err)
		}
		r.mu.Lock()
		r.outcome.Nodes++
		r.mu.Unlock()
		r.wrote("Node "+groups[i][0].Name, groups[i][0].Action, markWords(groups[i]))
		return nil
	})
}

// workloads writes the changes, as many at once as the options allow rollouts.
func (r *run) workloads(ctx context.Context, changes []*WorkloadChange) error {
	limit := concurrency
	if r.options.MaxUnavailable > 0 {
		limit = min(limit, r.options.MaxUnavailable)
	}
	return r.each(ctx, len(changes), limit, func(ctx context.Context, i int) error {
		change := changes[i]
		if err := r.write(ctx, r.cs.Set, change); err != nil {
			return r.refused(change.Workload.Ref(), change.Origins, err)
		}
		r.mu.Lock()
		if change.Action == Withdraw {
			r.outcome.Withdrawn++
		} else {
			r.outcome.Updated++
		}
		r.mu.Unlock()
		r.wrote(change.Workload.Ref(), change.Action, "")
		if r.options.MaxUnavailable == 0 || !change.Restarts {
			return nil
		}
		findings, err := r.WaitFor(ctx, []*WorkloadChange{change}, r.options.RolloutTimeout)
		if err != nil {
			return err
		}
		if findings.HasErrors() {
			// To go on would have more workloads down than the user allows.
			return findings
		}
		return nil
	})
}

// refused notes that the API server refused one object; anything else ends the
// run.
func (r *run) refused(subject string, origins map[string][]compiler.Origin, err error) error {
	if conflicts := conflictsIn(err, subject, origins); len(conflicts) > 0 {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, c := range conflicts {
			r.findings = append(r.findings, c.Finding())
		}
		return nil
	}
	findings, err := refusal(subject, err)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.findings = append(r.findings, findings...)
	return nil
}

// each calls do for 0 to n-1, some at once, until one fails or ctx ends.
func (r *run) each(ctx context.Context, n, limit int, do func(context.Context, int) error) error {
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(limit)
	for i := range n {
		group.Go(func() error {
			if err := groupCtx.Err(); err != nil {
				return err
			}
			return do(groupCtx, i)
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return ctx.Err()
}

func (r *run) wrote(subject string, action Action, words string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done++
	r.tell(Event{Kind: Wrote, Subject: subject, Action: action, Message: words, Count: r.done, Total: r.total})
}

// itemOf returns the item of a revision for a change.
func itemOf(change *WorkloadChange, record *ownership.Record) Item {
	w := change.Workload
	return Item{
		Group: w.Group, Version: w.Version, Kind: w.Kind, Namespace: w.Namespace, Name: w.Name, UID: types.UID(w.UID),
		Record: record, Policies: change.Policies, Origins: change.Origins,
	}
}
