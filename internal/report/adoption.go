package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/internal/adopt"
	"github.com/kubectl-sched/kubectl-sched/internal/report/excerpt"
)

// Adoption writes what policies are proposed for the placement that was found: what
// each says and for whom, what no intent says, and what is left alone.
func Adoption(w io.Writer, format Format, p *adopt.Proposal, o Options) error {
	if format != Text {
		return o.documents(w, format, "Import", map[string]any{
			"workloads": p.Workloads, "placed": p.Placed, "policies": p.Policies, "pools": p.Pools,
			"raw": o.relocateRemarks(p.Raw), "left": o.relocateRemarks(p.Left), "changes": o.relocateRemarks(p.Changes),
			"proof": p.Proof, "document": string(p.Document),
		})
	}
	var b strings.Builder
	say := func(format string, args ...any) { b.WriteString(o.Wrapped(fmt.Sprintf(format, args...)) + "\n") }
	say("%s", adoptionHead(p))
	if len(p.Policies) > 0 {
		b.WriteString("\n")
		t := o.table()
		t.add("POLICY", "WORKLOADS", "SAYS", "SELECTED")
		for _, policy := range p.Policies {
			t.add(policy.Name, fmt.Sprint(len(policy.Workloads)), strings.Join(policy.Says, "; "), policy.Selects)
		}
		b.WriteString(t.text(o.width()))
	}
	for _, pool := range p.Pools {
		say("\nPool %s: %s.", pool.Name, pool.Why)
	}
	o.remarks(&b, "\nSaid by raw, because no intent says it:", p.Raw)
	o.remarks(&b, "\nLeft alone:", p.Left)
	o.remarks(&b, "\nSaid in other words, as asked:", p.Changes)
	if proof := p.Proof; proof.Pieces > 0 {
		say("\n%s", adoptionProof(proof))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func adoptionHead(p *adopt.Proposal) string {
	text := fmt.Sprintf("%s, %d of them with placement", number(p.Workloads, "workload"), p.Placed)
	if p.Placed == 0 {
		return text + ": there is nothing to import."
	}
	policies := "1 policy"
	if n := len(p.Policies); n != 1 {
		policies = fmt.Sprintf("%d policies", n)
	}
	text += ": " + policies
	if n := len(p.Pools); n > 0 {
		text += " and " + number(n, "pool")
	}
	return text + "."
}

func adoptionProof(p adopt.Proof) string {
	text := fmt.Sprintf("Compiled: the policies change none of %s that they are for, and bring the placement back after it is taken out. Of %s, %d are said by intents and %d by raw",
		number(p.Unchanged, "pod template"), number(p.Pieces, "piece"), p.Intents, p.Raw)
	if p.Left > 0 {
		text += fmt.Sprintf("; %s left in the manifests, and in force", isOrAre(p.Left))
	}
	return text + "."
}

func isOrAre(n int) string {
	if n == 1 {
		return "1 is"
	}
	return fmt.Sprintf("%d are", n)
}

// mostRemarked is how many workloads a remark names.
const mostRemarked = 3

// remarks writes remarks under a heading, those with one reason together.
func (o Options) remarks(b *strings.Builder, heading string, all []adopt.Remark) {
	if len(all) == 0 {
		return
	}
	b.WriteString(heading + "\n")
	for i, r := range all {
		names := r.Workloads[:min(mostRemarked, len(r.Workloads))]
		text := r.Field
		if r.Value != "" {
			text += " " + r.Value
		}
		text += " of " + strings.Join(names, ", ")
		if more := len(r.Workloads) - len(names); more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		if at := r.At.Start; at.IsValid() {
			text += " (" + o.Place(at) + ")"
		}
		b.WriteString(o.Wrapped("  "+excerpt.Printable(text)) + "\n")
		if i == len(all)-1 || all[i+1].Why != r.Why || all[i+1].Field != r.Field {
			b.WriteString(o.Wrapped("    "+excerpt.Printable(r.Why)) + "\n")
		}
	}
}

// relocateRemarks names files as the reader sees them.
func (o Options) relocateRemarks(all []adopt.Remark) []adopt.Remark {
	out := make([]adopt.Remark, len(all))
	for i, r := range all {
		r.At = o.rng(r.At)
		out[i] = r
	}
	return out
}
