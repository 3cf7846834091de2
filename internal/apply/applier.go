package apply

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/internal/cluster"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/internal/workload/ownership"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// Applier applies sets to one cluster. Its fields are set once, before use.
type Applier struct {
	Client *cluster.Client
	// Kinds is the table of kinds; nil for the built-in one.
	Kinds *workload.Kinds
	// Tool is our version, for the records.
	Tool string
	// Now is the clock; nil for time.Now.
	Now func() time.Time
	// Progress hears what happens, one call at a time; may be nil.
	Progress func(Event)
	// ForceConflicts takes fields over from those who own them.
	ForceConflicts bool
	// ChangeScope records the run's scope instead of the set's.
	ChangeScope bool
	// SkipOwned leaves objects alone that somebody else keeps, instead of
	// refusing the run.
	SkipOwned bool
	// ClientOnly leaves the API server's dry runs out of Prepare: the change set is
	// what we think would be written, and is not to be run.
	ClientOnly bool

	// Manager is the field manager of all writes; empty for FieldManager. It must
	// be the one that the set is kept under: see State.Manager.
	Manager string

	// patience stands for silence in tests.
	patience time.Duration
	// retries stand for betweenAttempts in tests; their steps for attempts.
	retries *wait.Backoff
	telling sync.Mutex
}

// Request is one run's input.
type Request struct {
	State *State
	Scope Scope
	Plan  *compiler.Plan
	// Workloads are all workloads that were read in the scope, also those that no
	// policy matches, read with State.Records.
	Workloads []*workload.Workload
	// Step is what the run leads to; the zero Step is that of SurfaceLive.
	Step Step
	// Everywhere says that the user has asked for all namespaces, if the scope
	// names none. Only for SurfaceAdmission does it matter that they have.
	Everywhere bool
	// Source is what the plan was compiled from, for Status; only for
	// SurfaceAdmission.
	Source Source
}

// EventKind is what an Event tells of.
type EventKind string

// The kinds of events.
const (
	// Checked: the dry run of Subject has been answered.
	Checked EventKind = "checked"
	// Wrote: Subject has been written as Action says.
	Wrote EventKind = "wrote"
	// Waiting: Subject's rollout is at Message.
	Waiting EventKind = "waiting"
	// Done: Subject's rollout is complete.
	Done EventKind = "done"
	// Outwaiting: the run waits to see whether another one goes on, as Message says.
	Outwaiting EventKind = "outwaiting"
)

// Event is a step of a run.
type Event struct {
	Kind    EventKind
	Subject string
	Action  Action
	// Message is more about it in words; may be empty.
	Message string
	// Origins are, while waiting for pods that fit nowhere, the policies' lines
	// that ask for what fails.
	Origins []compiler.Origin
	// Count of Total such steps are behind us, this one included.
	Count, Total int
}

// concurrency is how many requests of ours the API server has at once: enough
// to hide the way there and back, few enough to leave its queues to others.
const concurrency = 8

func (a *Applier) now() time.Time {
	if a.Now != nil {
		return a.Now()
	}
	return time.Now()
}

// manager is the field manager that we write under.
func (a *Applier) manager() string {
	if a.Manager != "" {
		return a.Manager
	}
	return FieldManager
}

func (a *Applier) store(set Set) *store {
	return &store{maps: a.Client.Kube.CoreV1().ConfigMaps(set.Namespace), set: set, tool: a.Tool, manager: a.manager()}
}

// intent is what a run wants, wherever that comes from: a plan, an earlier
// revision, or the wish that nothing be left.
type intent struct {
	state   *State
	scope   Scope
	step    Step
	source  Source
	cause   string
	prune   bool
	targets []*target
	objects []wantedObject
	nodes   []wantedMarks
	pools   []PoolItem
	// read are all workloads that were looked at, targets or not.
	read []*workload.Workload
	// undo and delete go by what is recorded; only apply looks at who else keeps
	// the objects that it only takes its own from.
	withdrawKept bool
}

// Prepare finds out what applying the plan would change, and asks the API server
// for a dry run of all of it; nothing is written. With an Error among the
// findings the change set must not be run. The error is for a cluster that
// cannot be asked.
func (a *Applier) Prepare(ctx context.Context, r Request) (*ChangeSet, diag.Findings, error) {
	prune, findings := true, diag.Findings(nil)
	switch {
	case !r.State.Exists():
	case r.Step.Admission():
		findings = r.Scope.fitStep(r.State, a.ChangeScope, r.Everywhere)
	default:
		prune, findings = r.Scope.fit(r.State.Set, r.State.Scope, a.ChangeScope)
	}
	if findings.HasErrors() {
		return nil, findings, nil
	}
	in := &intent{
		state: r.State, scope: r.Scope, step: r.Step, source: r.Source, cause: r.Step.cause(r.Scope),
		prune: prune, withdrawKept: true, read: r.Workloads,
	}
	if r.State.Exists() && !prune {
		in.scope = r.State.Scope
	}

	byWorkload := map[*workload.Workload][]compiler.Change{}
	for _, change := range r.Plan.Changes {
		// Under admission the API server places the pods, and workloads are only
		// read: a field that the set has in one goes back.
		if !r.Step.Admission() {
			byWorkload[change.Workload] = append(byWorkload[change.Workload], change)
		}
	}
	seen := map[types.UID]bool{}
	records := r.State.Records()
	for _, w := range r.Workloads {
		seen[types.UID(w.UID)] = true
		switch {
		case len(byWorkload[w]) > 0:
			in.targets = append(in.targets, planned(byWorkload[w]))
		case a.isOurs(r.State.Set, w, records) && w.Record != nil:
			// Policies stopped matching it. That is for this run to say wherever it
			// looks at all, whatever it may prune elsewhere.
			in.targets = append(in.targets, &target{w: w, derive: without})
		}
	}
	if prune {
		gone, fs, err := a.unread(ctx, r.State, seen)
		if err != nil {
			return nil, append(findings, fs...), err
		}
		findings = append(findings, fs...)
		in.targets = append(in.targets, gone...)
	}
	objects, err := objectsOf(r.Plan)
	if err != nil {
		return nil, findings, err
	}
	var fs diag.Findings
	if in.objects, fs, err = r.Step.objects(objects, in.scope); err != nil {
		return nil, findings, err
	}
	findings = append(findings, fs...)
	findings = append(findings, r.Step.nextWrites(in.scope, r.Plan.Changes)...)
	findings = append(findings, r.Step.outdated(r.State.Set, in.scope, contentOf(in.objects), r.Workloads)...)
	in.nodes, in.pools = marksOf(r.Plan)
	changes, fs, err := a.examine(ctx, in)
	return changes, append(findings, fs...), err
}

// isOurs reports whether the fields in the workload belong to the set.
func (a *Applier) isOurs(set Set, w *workload.Workload, records map[types.UID]*ownership.Record) bool {
	if label, ok := w.Labels[ownership.SetLabel]; ok {
		return label == set.Label()
	}
	_, ok := records[types.UID(w.UID)]
	return ok
}

// unread returns withdrawals for the workloads of the revisions in force that
// the run has not read: their namespaces are no longer in its scope.
func (a *Applier) unread(ctx context.Context, state *State, seen map[types.UID]bool) ([]*target, diag.Findings, error) {
	var targets []*target
	var findings diag.Findings
	for _, item := range state.items() {
		if seen[item.UID] {
			continue
		}
		w, fs, err := a.fetch(ctx, item, state.Records())
		findings = append(findings, fs...)
		if err != nil {
			return nil, findings, err
		}
		if w == nil || types.UID(w.UID) != item.UID || inCluster(w.Record) == nil && w.Labels[ownership.SetLabel] == "" {
			continue
		}
		if w.Record != nil {
			targets = append(targets, &target{w: w, derive: without})
		}
	}
	return targets, findings, nil
}
