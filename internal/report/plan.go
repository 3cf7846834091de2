package report

import (
	"io"
	"slices"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/compiler/emit"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// Plan is a plan with the clusters that it is for.
type Plan struct {
	// Clusters are their names, sorted; nil if the policies name no clusters.
	Clusters []string
	Plan     *compiler.Plan
	// Overridden are the policies that another one replaced; text alone.
	Overridden []Overridden
}

// Overridden is a policy that another one replaced for a workload.
type Overridden struct {
	Policy, By string
	// Workload is the workload's Ref.
	Workload string
	// Reason is the one that By gives.
	Reason string
	// Range is where By says so.
	Range diag.Range
}

// planWriters has one writer for each format of plans.
var planWriters = []struct {
	format Format
	write  func(io.Writer, []Plan, Options) error
}{
	{Text, plansText},
	{JSON, plansEncoded(emit.JSON)},
	{YAML, plansEncoded(emit.YAML)},
}

// Plans writes the plans in the format: text for people, or the document of
// compiler/emit. Errors are those of w and of encoding, and an unknown format,
// which names the known ones.
func Plans(w io.Writer, format Format, plans []Plan, o Options) error {
	known := make([]Format, len(planWriters))
	for i, p := range planWriters {
		if p.format == format {
			return p.write(w, plans, o)
		}
		known[i] = p.format
	}
	_, err := ParseFormat(string(format), known...)
	return err
}

// plansEncoded returns the writer of the plans' document.
func plansEncoded(as emit.Encoding) func(io.Writer, []Plan, Options) error {
	return func(w io.Writer, plans []Plan, o Options) error {
		documents := make([]emit.PlanDocument, 0, len(plans))
		for _, p := range plans {
			d, err := emit.Document(o.relocatePlan(p.Plan), p.Clusters)
			if err != nil {
				return err
			}
			documents = append(documents, d)
		}
		data, err := emit.Encode(as, documents)
		if err != nil {
			return err
		}
		_, err = w.Write(data)
		return err
	}
}

// relocatePlan returns a copy of the plan whose origins name files as the
// options say.
func (o Options) relocatePlan(plan *compiler.Plan) *compiler.Plan {
	if o.Dir == "" {
		return plan
	}
	p := *plan
	p.Changes = slices.Clone(plan.Changes)
	for i := range p.Changes {
		effects := slices.Clone(p.Changes[i].Effects)
		for j := range effects {
			effects[j].Origins = o.origins(effects[j].Origins)
		}
		p.Changes[i].Effects = effects
	}
	p.Objects = slices.Clone(plan.Objects)
	for i := range p.Objects {
		p.Objects[i].Origins = o.origins(p.Objects[i].Origins)
	}
	p.Nodes = slices.Clone(plan.Nodes)
	for i := range p.Nodes {
		p.Nodes[i].Origins = o.origins(p.Nodes[i].Origins)
	}
	p.Profiles = slices.Clone(plan.Profiles)
	for i := range p.Profiles {
		p.Profiles[i].Need = p.Profiles[i].Need.Relocated(o.rng)
	}
	p.Exceptions = slices.Clone(plan.Exceptions)
	for i := range p.Exceptions {
		p.Exceptions[i].Range = o.rng(p.Exceptions[i].Range)
	}
	return &p
}

func (o Options) origins(from []compiler.Origin) []compiler.Origin {
	origins := slices.Clone(from)
	for i := range origins {
		origins[i].Range = o.rng(origins[i].Range)
	}
	return origins
}
