package adopt

import (
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
)

// proposal gathers what came out.
func (w *work) proposal() (*Proposal, error) {
	out := &Proposal{Workloads: len(w.Workloads), Policies: []Policy{}, Placement: w.placement()}
	for i := range out.Placement.Policies {
		out.Placement.Policies[i].Positions = nil
	}
	placed := map[*workload.Workload]bool{}
	left, raw, changes := remarks{}, remarks{}, remarks{}
	for _, t := range w.templates {
		if t.placed() {
			placed[t.w] = true
		}
		if t.left != "" {
			if t.placed() {
				left.add(t, "everything", "", t.left, t.w.Source.At())
			}
			continue
		}
		for _, a := range t.aside {
			if a.why != silent {
				left.add(t, a.field, a.value, a.why, t.w.Source.At())
			}
		}
		if len(t.pieces) == 0 {
			continue
		}
		out.Proof.Unchanged++
		out.Proof.Returned++
		for _, p := range t.pieces {
			out.Proof.Pieces++
			switch ph := p.phrases[p.choice]; ph.rank {
			case byIntent:
				out.Proof.Intents++
			case byRaw:
				out.Proof.Raw++
				raw.add(t, p.field(), p.describe(), ph.why, p.at)
			case unsaid:
				out.Proof.Left++
				left.add(t, p.field(), p.describe(), ph.why, p.at)
				continue
			}
			if p.change != "" {
				changes.add(t, p.field(), p.describe(), p.change, p.at)
			}
		}
	}
	out.Placed = len(placed)
	out.Left, out.Raw, out.Changes = left.sorted(), raw.sorted(), changes.sorted()
	for _, d := range w.policies {
		p := Policy{Name: d.policy.Name, Workloads: refsOf(d.members), Selects: d.says, Why: d.why, Raw: d.raw()}
		for _, ph := range d.phrases {
			p.Says = append(p.Says, ph.says)
		}
		out.Policies = append(out.Policies, p)
	}
	out.Pools = w.reportedPools()
	var err error
	out.Document, err = w.document()
	return out, err
}
