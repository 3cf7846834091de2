package policytest

import (
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/internal/cluster/facts"
	"github.com/kubectl-sched/kubectl-sched/internal/lint"
	"github.com/kubectl-sched/kubectl-sched/internal/policytest/naming"
	"github.com/kubectl-sched/kubectl-sched/internal/preview"
	"github.com/kubectl-sched/kubectl-sched/internal/simulate"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// seed decides between nodes that are equal in everything. It is the one that
// simulate has if nothing else is said.
const seed = 1

// run runs the test: the cluster, the workloads, what the policies make of them, what
// the scheduler does, and what was expected of it.
func (r *run) run(ctx context.Context) {
	if r.pick(); r.broken() {
		return
	}
	set := r.given(ctx)
	if r.broken() {
		return
	}
	if r.build(set.Others); r.broken() {
		return
	}
	r.provision(set.Workloads)
	workloads := r.workloads(set)
	if r.broken() {
		return
	}
	c := r.compile(ctx, set, workloads)
	r.exercised(c.plan)
	j := &judge{run: r, compiled: c, names: r.names(workloads)}
	j.resolve()
	steps := r.steps(j.names)
	if r.broken() || ctx.Err() != nil {
		return
	}
	j.findings()
	if c.stopped {
		j.notSimulated()
		return
	}
	if len(r.test.Expect.Workloads) == 0 {
		return
	}
	outcome, findings, err := preview.Run(ctx, preview.Request{
		Snapshot: r.snapshot, Plan: c.plan, Workloads: workloads, Steps: steps, Pools: r.elastic(), Seed: seed,
	})
	for _, f := range findings {
		if f.Severity == diag.Error {
			r.result.Errors = append(r.result.Errors, r.placed(f))
		}
	}
	switch {
	case err != nil:
		r.bad(ruleError, []string{"after"}, "%v", err)
	case outcome != nil:
		r.result.Notes = outcome.Assumptions
		j.outcome, j.nodes = outcome, map[string]*corev1.Node{}
		for _, n := range outcome.Nodes {
			j.nodes[n.Name] = n
		}
		j.workloads()
	}
}

// workloads are those that the test gives and those of the snapshot, which those of
// the same name take the place of.
func (r *run) workloads(set *workload.Set) []*workload.Workload {
	live, findings := facts.Workloads(r.snapshot, r.Kinds)
	for _, f := range findings {
		if f.Severity == diag.Error {
			r.result.Errors = append(r.result.Errors, f)
		}
	}
	running := map[simulate.Ref]bool{}
	for _, refs := range r.running {
		for _, ref := range refs {
			running[ref] = true
		}
	}
	given := map[simulate.Ref]bool{}
	for _, w := range set.Workloads {
		given[refOf(w)] = true
	}
	workloads := slices.Clone(set.Workloads)
	for _, w := range live {
		if ref := refOf(w); !given[ref] && !running[ref] {
			workloads = append(workloads, w)
		}
	}
	return workloads
}

func refOf(w *workload.Workload) simulate.Ref {
	return simulate.Ref{Kind: w.Kind, Namespace: w.Namespace, Name: w.Name}
}

// compilation is what the policies made of the workloads.
type compilation struct {
	plan *compiler.Plan
	// findings are those of compiling and of lint.
	findings diag.Findings
	// errors are those that keep the plan from being applied; stopped says that there
	// are some.
	errors  diag.Findings
	stopped bool
}

// compile compiles the policies for the workloads, and lints them.
func (r *run) compile(ctx context.Context, set *workload.Set, workloads []*workload.Workload) compilation {
	now := r.Now
	if r.test.Now != "" {
		now, _ = time.Parse(time.DateOnly, r.test.Now) // load has checked it
	}
	surface := policy.SurfaceRender
	if r.cluster != nil {
		surface = r.cluster.Surface
	}
	request := compiler.Request{
		Placement: r.Placement, Workloads: workloads, Capabilities: facts.Capabilities(r.snapshot),
		Surface: surface, Installing: true, Now: now,
	}
	var c compilation
	c.plan, c.findings = compiler.CompileContext(ctx, request)
	for _, f := range c.findings {
		if f.Severity == diag.Error {
			c.errors = append(c.errors, f)
		}
	}
	c.stopped = len(c.errors) > 0
	if r.test.Expect.NoFindings || len(r.test.Expect.Findings) > 0 {
		c.findings = append(c.findings, lint.Check(lint.Input{Request: request, Plan: c.plan, Snapshot: r.snapshot, Others: set.Others})...)
	}
	c.findings = c.findings.Sort()
	return c
}

// exercised notes which policies were in force for a workload of the test.
func (r *run) exercised(plan *compiler.Plan) {
	names := map[string]bool{}
	for _, c := range plan.Changes {
		for _, name := range c.Policies {
			names[name] = true
		}
	}
	r.result.Exercised = slices.Sorted(maps.Keys(names))
}

// names are the workloads and the running pods of the test, by which expectations
// and steps call them.
func (r *run) names(workloads []*workload.Workload) names {
	n := names{running: r.running}
	for _, w := range workloads {
		n.workloads = append(n.workloads, refOf(w))
	}
	slices.SortFunc(n.workloads, simulate.Ref.Compare)
	return n
}

// names finds what a test speaks of.
type names struct {
	workloads []simulate.Ref
	running   map[string][]simulate.Ref
}

// workload returns the workloads that are called so.
func (n names) workload(said string) (found []simulate.Ref) {
	for _, ref := range n.workloads {
		if naming.Workload(ref).Is(said) {
			found = append(found, ref)
		}
	}
	return found
}

// known are the names by which the workloads can be told apart.
func (n names) known() []string {
	all := make([]naming.Workload, len(n.workloads))
	for i, ref := range n.workloads {
		all[i] = naming.Workload(ref)
	}
	return naming.Shortest(all)
}

// one returns the one workload of that name, or notes why there is none.
func (r *run) one(n names, path []string, said string) (simulate.Ref, bool) {
	found := n.workload(said)
	switch len(found) {
	case 1:
		return found[0], true
	case 0:
		r.bad(ruleUnknown, path, "there is no workload %q in the test%s", said, suggest(said, n.known()))
	default:
		r.bad(ruleUnknown, path, "%q may be %s or %s; write it as namespace/kind/name", said, found[0], found[1])
	}
	return simulate.Ref{}, false
}
