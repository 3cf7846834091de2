package compiler

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"

	"github.com/kubectl-sched/kubectl-sched/compiler/admission"
	"github.com/kubectl-sched/kubectl-sched/compiler/cel"
	"github.com/kubectl-sched/kubectl-sched/compiler/profile"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
)

// maxNeedy is the most policies that ask something of the profile for one pod:
// every combination of them takes a profile of its own.
const maxNeedy = 5

// needs gathers the schedulerName for every combination of policies that may
// select one pod and ask something of its profile. The wishes are in the order in
// which the admission policy takes the first that holds: larger combinations
// before their parts.
func (g *gathering) needs() {
	var needy []*rule
	for _, r := range g.c.rules {
		if len(r.needs) > 0 {
			needy = append(needy, r)
		}
	}
	for _, group := range groupsThatMeet(needy) {
		g.needsOf(group)
	}
}

func (g *gathering) needsOf(needy []*rule) {
	if len(needy) > maxNeedy {
		o := needy[maxNeedy].needs[0].Origin
		g.c.report(finding{
			rule: "compile/inexpressible", policy: o.Policy, at: o.Range,
			message: fmt.Sprintf("%d policies that may select one pod ask something of its profile, and an admission policy would need a profile for every combination of them; select by different namespaces, or join them to at most %d", len(needy), maxNeedy),
		})
		return
	}
	sets := make([]uint, 0, 1<<len(needy))
	for set := uint(1); set < 1<<len(needy); set++ {
		sets = append(sets, set)
	}
	slices.SortStableFunc(sets, func(a, b uint) int { return cmp.Compare(bits.OnesCount(b), bits.OnesCount(a)) })
	for _, set := range sets {
		var chosen []*rule
		for i, r := range needy {
			if set&(1<<i) != 0 {
				chosen = append(chosen, r)
			}
		}
		if allMeet(chosen) {
			g.combination(chosen)
		}
	}
}

// combination adds the schedulerName of pods that all of the policies select.
func (g *gathering) combination(chosen []*rule) {
	when := admission.InForce(chosen[0].Name)
	for _, r := range chosen[1:] {
		when = when.And(cel.Quote(r.Name) + " in variables.policies")
	}
	var all, lasting []profile.Wish
	for _, r := range chosen {
		for _, w := range r.needs {
			all = append(all, w)
			if !w.Ranks {
				lasting = append(lasting, w)
			}
		}
	}
	if len(all) == len(lasting) {
		g.scheduler(when, profile.NewNeed(all...))
		return
	}
	g.scheduler(when.And("!"+admission.DaemonSet), profile.NewNeed(all...))
	if len(lasting) > 0 {
		g.scheduler(when.And(admission.DaemonSet), profile.NewNeed(lasting...))
	}
}

func (g *gathering) scheduler(when admission.Case, need profile.Need) {
	if clashes := need.Conflicts(); len(clashes) > 0 {
		f := needClash(clashes[0])
		f.severity = warning
		f.message += "; pods that both policies select get the profile of the first"
		g.c.reportOnce(f.message+f.at.Start.String(), f)
		return
	}
	p := profile.Of(need)
	if g.c.served(p) {
		g.scalar(when, workload.SchedulerName, p.Name)
		g.c.use(p, 0)
	}
}

// groupsThatMeet parts the rules into groups such that no pod is selected by two
// rules of different groups.
func groupsThatMeet(rules []*rule) [][]*rule {
	var groups [][]*rule
	for _, r := range rules {
		joined := []*rule{r}
		groups = slices.DeleteFunc(groups, func(group []*rule) bool {
			if !slices.ContainsFunc(group, r.meets) {
				return false
			}
			joined = append(joined, group...)
			return true
		})
		slices.SortFunc(joined, func(a, b *rule) int { return cmp.Compare(a.Name, b.Name) })
		groups = append(groups, joined)
	}
	return groups
}

func allMeet(rules []*rule) bool {
	for i, r := range rules {
		if !slices.ContainsFunc(rules[:i], func(o *rule) bool { return !r.meets(o) }) {
			continue
		}
		return false
	}
	return true
}

// meets reports whether some pod may be selected by both rules, as far as their
// namespaces and overrides tell.
func (r *rule) meets(o *rule) bool {
	if slices.Contains(r.replaces, o) || slices.Contains(o.replaces, r) {
		return false
	}
	a, b := r.Workloads.Namespaces, o.Workloads.Namespaces
	if len(a) == 0 || len(b) == 0 || slices.ContainsFunc(a, isGlob) || slices.ContainsFunc(b, isGlob) {
		return true
	}
	return slices.ContainsFunc(a, func(name string) bool { return slices.Contains(b, name) })
}
