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
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/args"
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
	// AsConfigured has nodes sampled as the schedulers are configured to, and
	// CallExtenders their extenders asked.
	AsConfigured, CallExtenders bool
	// Hear is told how far the simulation is; nil for nobody.
	Hear func(simulate.Progress)
	// Explain keeps the reasons against other nodes for each pod that is placed.
	Explain bool
	// Ties keeps which nodes each choice was tied with.
	Ties bool
}

// Result is what would become of the cluster.
type Result struct {
	*simulate.Outcome
	Request Request
	// Unknown are the schedulers whose configuration is not known: they are taken to
	// be as kube-scheduler without any.
	Unknown []string
	// Extenders are those of the schedulers' configurations, by URL.
	Extenders []string
	// OneByOne are the profiles whose gangs the running scheduler places member by
	// member, by their scheduler names.
	OneByOne []string
}

// Run simulates the request. The result has what is known also where the error is
// that of ctx. Findings tell of fields that a workload cannot carry; with an error
// among them there is no result.
func Run(ctx context.Context, r Request) (*Result, diag.Findings, error) {
	world, known, err := newWorld(ctx, r, nil)
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
	steps = append(append(steps, r.Steps...), simulate.Pending{})
	all := len(steps)
	if len(r.Pools) > 0 {
		all++
	}
	world.Hear(all, r.Hear)
	if err = world.Take(ctx, steps...); err == nil {
		err = world.Grow(ctx, r.Pools)
	}
	return &Result{Outcome: world.Outcome(), Request: r, Unknown: known.unknown, Extenders: known.urls(), OneByOne: known.oneByOne()}, findings, err
}

// newWorld returns the snapshot's world with the profiles that its schedulers serve
// and those that the plan needs, which adjust may change; nil leaves them.
func newWorld(ctx context.Context, r Request, adjust func(engine.Profile) engine.Profile) (*simulate.World, *configurations, error) {
	known, err := configurationsOf(r.Snapshot, r.Plan)
	if err != nil {
		return nil, nil, err
	}
	profiles := known.profiles
	if adjust != nil {
		profiles = slices.Clone(profiles)
		for i := range profiles {
			profiles[i] = adjust(profiles[i])
		}
	}
	world, err := simulate.NewWorld(ctx, r.Snapshot, engine.Options{
		Profiles: profiles, Plugins: registry.Bundled(), Seed: r.Seed, Explain: r.Explain, Ties: r.Ties,
		AsConfigured: r.AsConfigured, Extenders: known.extenders, CallExtenders: r.CallExtenders,
	})
	return world, known, err
}

// configurations are what is known of the schedulers.
type configurations struct {
	profiles  []engine.Profile
	extenders []engine.Extender
	// unknown are the schedulers of which nothing is.
	unknown []string
}

// configurationsOf returns the configurations: the profiles of the plan stand over
// those that are served, as an apply would have it.
func configurationsOf(s *snapshot.Snapshot, plan *compiler.Plan) (*configurations, error) {
	known := &configurations{}
	if plan != nil && len(plan.Profiles) > 0 {
		var needed []profile.Profile
		for _, use := range plan.Profiles {
			needed = append(needed, use.Profile)
		}
		text, err := profile.Configuration(needed)
		if err != nil {
			return nil, err
		}
		if err := known.add(text, "the profiles of the plan"); err != nil {
			return nil, err
		}
	}
	for _, scheduler := range s.Schedulers {
		if scheduler.Configuration == "" {
			known.unknown = append(known.unknown, scheduler.Name)
			continue
		}
		if err := known.add([]byte(scheduler.Configuration), "the configuration of scheduler "+scheduler.Name); err != nil {
			return nil, err
		}
	}
	var err error
	known.profiles, err = engine.WithStock(known.profiles)
	return known, err
}

// add takes in a configuration.
func (k *configurations) add(text []byte, whose string) error {
	c, err := engine.Decode(text)
	if err != nil {
		return fmt.Errorf("%s: %w", whose, err)
	}
	var names []string
	for _, p := range c.Profiles {
		names = append(names, p.SchedulerName)
		if p.PercentageOfNodesToScore == nil {
			p.PercentageOfNodesToScore = c.PercentageOfNodesToScore
		}
		if !slices.ContainsFunc(k.profiles, func(q engine.Profile) bool { return q.SchedulerName == p.SchedulerName }) {
			k.profiles = append(k.profiles, p)
		}
	}
	for _, e := range c.Extenders {
		k.extenders = append(k.extenders, engine.Extender{Extender: e, Schedulers: names})
	}
	return nil
}

// urls are those of the extenders.
func (k *configurations) urls() []string {
	var urls []string
	for _, e := range k.extenders {
		urls = append(urls, e.URLPrefix)
	}
	return urls
}

// oneByOne are the profiles that place gangs member by member.
func (k *configurations) oneByOne() []string {
	var names []string
	for _, p := range k.profiles {
		if gang := gangArgs(p); gang != nil && gang.Mode == args.ModePermit {
			names = append(names, p.SchedulerName)
		}
	}
	return names
}
