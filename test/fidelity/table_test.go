package fidelity_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-sched/kubectl-sched/internal/simulate/replay"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/args"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/recording"
)

// figures are what a run came to.
type figures struct {
	kinds map[string]*figure
	all   figure
	first []string // the first differences
	// invalid has the first cycle of each reason, and how many there are.
	invalid map[string]*reason
	// broken are pods for which there was an error after a node had been found, and not
	// because something was gone by then: the scheduler's own fault.
	broken []string
}

// reason is why cycles are invalid.
type reason struct {
	first string
	count int
}

// figure counts cases and cycles of a kind.
type figure struct {
	cases                    map[string]bool
	cycles, agreed, disagree int
	invalid                  int
}

// shown is how many differences are printed whole.
const shown = 40

func newFigures() *figures {
	return &figures{kinds: map[string]*figure{}, all: figure{cases: map[string]bool{}}, invalid: map[string]*reason{}}
}

// add counts a cycle.
func (f *figures) add(c recording.Cycle, r replay.Result) {
	for _, a := range c.Late {
		rejected := strings.HasPrefix(a.Message, "0/") // by Permit, or while it waited there
		if !rejected && !slices.ContainsFunc([]string{"not found", "being deleted", "preempted by"}, func(part string) bool { return strings.Contains(a.Message, part) }) {
			f.broken = append(f.broken, fmt.Sprintf("before cycle %d, %s/%s on %s: %s", c.Number, a.Namespace, a.Name, a.Node, a.Message))
		}
	}
	count := func(to *figure) {
		to.cases[c.Attempts[0].Namespace] = true
		to.cycles++
		switch {
		case r.Invalid != "":
			to.invalid++
		case len(r.Differences) > 0:
			to.disagree++
		default:
			to.agreed++
		}
	}
	count(&f.all)
	for _, kind := range kindsOf(c, r) {
		if f.kinds[kind] == nil {
			f.kinds[kind] = &figure{cases: map[string]bool{}}
		}
		count(f.kinds[kind])
	}
	if r.Invalid != "" {
		if f.invalid[r.Invalid] == nil {
			f.invalid[r.Invalid] = &reason{first: fmt.Sprintf("cycle %d, %s/%s", c.Number, c.Attempts[0].Namespace, c.Attempts[0].Name)}
		}
		f.invalid[r.Invalid].count++
		return
	}
	for _, d := range r.Differences {
		if len(f.first) < shown {
			f.first = append(f.first, fmt.Sprintf("cycle %d, %s, %s:\n  scheduler: %s\n  simulator: %s", c.Number, d.Pod, d.What, d.Recorded, d.Simulated))
		}
	}
}

// kindsOf says what a cycle is about.
func kindsOf(c recording.Cycle, r replay.Result) []string {
	kinds := map[string]bool{}
	if c.Group != "" {
		kinds["gang"] = true
	}
	if len(c.Victims) > 0 {
		kinds["preemption"] = true
	}
	if len(c.Nominated) > 0 {
		kinds["nominated pods"] = true
	}
	for _, a := range c.Attempts {
		if a.Message != "" {
			kinds["unschedulable"] = true
		}
	}
	for _, p := range r.Pods {
		for kind, is := range features(p) {
			if is {
				kinds[kind] = true
			}
		}
	}
	if len(kinds) == 0 {
		return []string{"plain"}
	}
	return slices.Sorted(maps.Keys(kinds))
}

// features says what a pod asks for.
func features(p *corev1.Pod) map[string]bool {
	if p == nil {
		return nil
	}
	found := map[string]bool{
		"node selector and affinity": len(p.Spec.NodeSelector) > 0,
		"priority":                   p.Spec.Priority != nil && *p.Spec.Priority != 0,
		"CacheLocality":              p.Spec.SchedulerName == cacheProfile && p.Labels["dataset"] != "",
		"GPUMemory":                  p.Annotations[args.PodGPUMemory] != "",
		"volumes":                    len(p.Spec.Volumes) > 1 || len(p.Spec.Volumes) == 1 && p.Spec.Volumes[0].PersistentVolumeClaim != nil,
	}
	for _, c := range p.Spec.TopologySpreadConstraints {
		found["spread, "+map[corev1.UnsatisfiableConstraintAction]string{corev1.DoNotSchedule: "hard", corev1.ScheduleAnyway: "soft"}[c.WhenUnsatisfiable]] = true
	}
	for _, t := range p.Spec.Tolerations {
		found["tolerations"] = found["tolerations"] || t.Key == taintKey
	}
	for _, c := range p.Spec.Containers {
		for _, port := range c.Ports {
			found["host ports"] = found["host ports"] || port.HostPort != 0
		}
	}
	if a := p.Spec.Affinity; a != nil {
		found["node selector and affinity"] = found["node selector and affinity"] || a.NodeAffinity != nil
		if a.PodAffinity != nil {
			found["pod affinity, hard"] = len(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0
			found["pod affinity, soft"] = len(a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution) > 0
		}
		if a.PodAntiAffinity != nil {
			found["pod anti-affinity, hard"] = len(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0
			found["pod anti-affinity, soft"] = len(a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution) > 0
		}
	}
	return found
}

// String is the table.
func (f *figures) String() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(name string, of *figure) {
		fmt.Fprintf(w, "%d\t%d\t%d\t%d\t%d\t  %s\n", len(of.cases), of.cycles, of.agreed, of.invalid, of.disagree, name)
	}
	fmt.Fprintln(w, "cases\tattempts\tagree\tinvalid\tdisagree\t")
	for _, kind := range slices.Sorted(maps.Keys(f.kinds)) {
		row(kind, f.kinds[kind])
	}
	row("all", &f.all)
	w.Flush()
	for _, why := range slices.Sorted(maps.Keys(f.invalid)) {
		fmt.Fprintf(&b, "%d invalid, first in %s: %s\n", f.invalid[why].count, f.invalid[why].first, why)
	}
	for _, d := range f.first {
		fmt.Fprintln(&b, d)
	}
	return b.String()
}
