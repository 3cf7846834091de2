package preview

import (
	"context"
	"fmt"
	"slices"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/compiler/profile"
	"github.com/kubectl-sched/kubectl-sched/internal/cluster/snapshot"
	"github.com/kubectl-sched/kubectl-sched/internal/simulate"
	"github.com/kubectl-sched/kubectl-sched/internal/simulate/engine"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/registry"
)

// Request is everything that a preview depends on: equal requests give equal
// results.
type Request struct {
	Snapshot *snapshot.Snapshot
	// Plan is what reaches the cluster, compiled from Workloads; nil for nothing.
	Plan      *compiler.Plan
	Workloads []*workload.Workload
	// Steps happen after the plan.
	Steps []simulate.Step
	// Pools are where the cluster can get nodes for pods that fit on none.
	Pools []simulate.Pool
	// Seed decides between nodes that are equal in everything.
	Seed uint64
	// Explain keeps the reasons against other nodes for each pod that is placed.
	Explain bool
}

// Result is what would become of the cluster.
type Result struct {
	*simulate.Outcome
	Request Request
	// Unknown are the schedulers whose configuration is not known: they are taken to
	// be as kube-scheduler without any.
	Unknown []string
}

// Run simulates the request. The result has what is known also where the error is
// that of ctx. Findings tell of fields that a workload cannot carry; with an error
// among them there is no result.
func Run(ctx context.Context, r Request) (*Result, diag.Findings, error) {
	world, unknown, err := NewWorld(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	defer world.Close()
	var steps []simulate.Step
	var findings diag.Findings
	if r.Plan != nil {
		if steps, findings = Steps(ctx, r.Plan, r.Workloads); findings.HasErrors() {
			return nil, findings, nil
		}
	}
	steps = append(steps, r.Steps...)
	if err = world.Take(ctx, append(steps, simulate.Pending{})...); err == nil {
		err = world.Grow(ctx, r.Pools)
	}
	return &Result{Outcome: world.Outcome(), Request: r, Unknown: unknown}, findings, err
}

// NewWorld returns the snapshot's world with the profiles that its schedulers serve
// and those that the plan needs, and names the schedulers that are not known.
func NewWorld(ctx context.Context, r Request) (*simulate.World, []string, error) {
	return newWorld(ctx, r, nil)
}

// newWorld is NewWorld, with profiles that adjust has changed; nil leaves them.
func newWorld(ctx context.Context, r Request, adjust func(engine.Profile) engine.Profile) (*simulate.World, []string, error) {
	profiles, unknown, err := profilesOf(r.Snapshot, r.Plan)
	if err != nil {
		return nil, nil, err
	}
	if adjust != nil {
		for i := range profiles {
			profiles[i] = adjust(profiles[i])
		}
	}
	world, err := simulate.NewWorld(ctx, r.Snapshot, engine.Options{
		Profiles: profiles, Plugins: registry.Bundled(), Seed: r.Seed, Explain: r.Explain,
	})
	return world, unknown, err
}

// profilesOf returns the profiles: those of the plan stand over those that are
// served, as an apply would have it.
func profilesOf(s *snapshot.Snapshot, plan *compiler.Plan) (profiles []engine.Profile, unknown []string, err error) {
	add := func(text []byte, whose string) error {
		c, err := engine.Decode(text)
		if err != nil {
			return fmt.Errorf("%s: %w", whose, err)
		}
		for _, p := range c.Profiles {
			if !slices.ContainsFunc(profiles, func(q engine.Profile) bool { return q.SchedulerName == p.SchedulerName }) {
				profiles = append(profiles, p)
			}
		}
		return nil
	}
	if plan != nil && len(plan.Profiles) > 0 {
		var needed []profile.Profile
		for _, use := range plan.Profiles {
			needed = append(needed, use.Profile)
		}
		text, err := profile.Configuration(needed)
		if err != nil {
			return nil, nil, err
		}
		if err := add(text, "the profiles of the plan"); err != nil {
			return nil, nil, err
		}
	}
	for _, scheduler := range s.Schedulers {
		if scheduler.Configuration == "" {
			unknown = append(unknown, scheduler.Name)
			continue
		}
		if err := add([]byte(scheduler.Configuration), "the configuration of scheduler "+scheduler.Name); err != nil {
			return nil, nil, err
		}
	}
	profiles, err = engine.WithStock(profiles)
	return profiles, unknown, err
}
