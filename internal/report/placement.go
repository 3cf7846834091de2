package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/internal/preview"
	"github.com/kubectl-sched/kubectl-sched/internal/simulate"
)

// Placement writes what would become of a cluster: where pods would be, which
// would wait and why, and what that rests on.
// The summary is that of the result, by the same pools.
func Placement(w io.Writer, format Format, r *preview.Result, s *preview.Summary, pools preview.Pools, o Options) error {
	if format != Text {
		return o.documents(w, format, "Placement", placementDocument(r, s, pools, o))
	}
	p := placement{result: r, summary: s, pools: pools, options: o}
	p.headline()
	p.fill()
	p.moves()
	p.waiting()
	p.stuck()
	p.evicted()
	p.assumptions()
	_, err := io.WriteString(w, p.b.String())
	return err
}

// placement is one report as text.
type placement struct {
	result  *preview.Result
	summary *preview.Summary
	pools   preview.Pools
	options Options
	b       strings.Builder
}

func (p *placement) say(format string, args ...any) {
	fmt.Fprintln(&p.b, p.options.Wrapped(fmt.Sprintf(format, args...)))
}

// section begins a part with a heading.
func (p *placement) section(title string) {
	fmt.Fprintf(&p.b, "\n%s\n", style{p.options.Color}.paint(bold, title))
}

// headline says in a line what comes of it, and then of what cluster that is.
func (p *placement) headline() {
	n := p.summary.Pods()
	var parts []string
	part := func(n int, one, many string) {
		if n > 0 {
			parts = append(parts, amount(n, one, many))
		}
	}
	part(n.Restarted, "pod restarts", "pods restart")
	part(n.Moved, "pod moves", "pods move")
	part(n.Added, "pod is added", "pods are added")
	part(n.Removed, "pod goes", "pods go")
	untried := 0
	for _, w := range p.summary.Workloads {
		for _, pod := range w.Waiting {
			if pod.Verdict == simulate.Untried {
				untried++
			}
		}
	}
	part(untried, "pod is not tried", "pods are not tried")
	part(n.Waiting-untried, "pod stays Pending", "pods stay Pending")
	part(n.NeedsNodes, "pod needs new nodes", "pods need new nodes")
	part(len(p.result.Evicted), "pod is evicted for others", "pods are evicted for others")
	part(len(p.result.Stuck), "rollout or drain comes to a halt", "rollouts or drains come to a halt")
	if len(parts) == 0 {
		parts = []string{"no pod moves"}
	}
	if p.result.Cut {
		p.say("%s", style{p.options.Color}.paint(bold, "Cut off before the end: what follows is what was known by then."))
	}
	p.say("%s.", strings.Join(parts, ", "))
	if n.ByTie > 0 {
		p.say("Of the moves %s decided by nothing but the seed: other nodes are as good.", amount(n.ByTie, "is", "are"))
	}
	p.say("%s", style{p.options.Color}.paint(faint, p.about()))
}

// about says which cluster, when, and by which seed.
func (p *placement) about() string {
	s := p.result.Request.Snapshot
	text := "Simulated on " + amount(len(s.Nodes), "node", "nodes") + " and " + amount(len(s.Pods), "pod", "pods")
	if s.Cluster != "" {
		text += " of cluster " + s.Cluster
	}
	if !s.Taken.IsZero() {
		text += ", as of " + age(s.Taken, p.options.Now) + " ago"
	}
	return text + fmt.Sprintf(", with seed %d.", p.result.Request.Seed)
}

func amount(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// fill draws how full the groups of nodes are.
func (p *placement) fill() {
	if len(p.summary.Fill) == 0 {
		return
	}
	p.section("Nodes")
	t := p.options.table()
	t.add("POOL", "ZONE", "NODES", "PODS", "CPU REQUESTED", "MEMORY")
	for _, f := range p.summary.Fill {
		t.add(orNone(f.Pool), orNone(f.Zone), change(f.Nodes, f.NodesAfter), change(f.Pods, f.PodsAfter),
			share(f.CPU, f.CPUAfter, f.CPUTotal)+" "+bar(f.CPUAfter, f.CPUTotal), share(f.Memory, f.MemoryAfter, f.MemoryTotal))
	}
	p.b.WriteString(t.text(p.options.width()))
}

// change says a number, and what it becomes if it does not stay.
func change(before, after int) string {
	if before == after {
		return fmt.Sprint(before)
	}
	return fmt.Sprintf("%d → %d", before, after)
}

// share says how much of a total is taken, in per cent.
func share(before, after, total int64) string {
	if total == 0 {
		return "-"
	}
	b, a := before*100/total, after*100/total
	if b == a {
		return fmt.Sprintf("%d%%", a)
	}
	return fmt.Sprintf("%d%% → %d%%", b, a)
}

// bars is how many characters a bar has.
const bars = 10

// bar draws how much of a total is taken.
func bar(part, total int64) string {
	if total == 0 {
		return ""
	}
	full := min(int(part*bars/total), bars)
	return strings.Repeat("█", full) + strings.Repeat("░", bars-full)
}

// moves lists the workloads whose placement changes.
func (p *placement) moves() {
	t := p.options.table()
	t.add("WORKLOAD", "MOVED", "BEFORE", "AFTER")
	rows := 0
	for _, w := range p.summary.Workloads {
		if w.Moved == 0 && w.Restarted == 0 && w.Added == 0 {
			continue
		}
		rows++
		moved := fmt.Sprint(w.Moved)
		if w.ByTie > 0 {
			moved += fmt.Sprintf(" (%d by seed)", w.ByTie)
		}
		t.add(w.Ref.String(), moved, places(w.Before), places(w.After))
	}
	if rows > 0 {
		p.section("Workloads that change")
		p.b.WriteString(t.text(p.options.width()))
	}
}

// places says how many pods are in which group of nodes.
func places(count map[preview.Place]int) string {
	if len(count) == 0 {
		return "-"
	}
	names := map[string]int{}
	for place, n := range count {
		name := place.Zone
		if place.Pool != "" {
			name = strings.TrimSuffix(place.Pool+"/"+place.Zone, "/")
		}
		if name == "" {
			name = "nodes"
		}
		names[name] += n
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, names[name]))
	}
	return strings.Join(parts, ", ")
}

// mostWaiting is how many pods of a workload are named that wait for the same.
const mostWaiting = 3

// waiting says of each workload which pods wait, and why.
func (p *placement) waiting() {
	heading := false
	for _, w := range p.summary.Workloads {
		for pool, n := range w.NeedsNodes {
			p.sectionOnce(&heading, "Pods without a node")
			p.say("%s: %s fit on new nodes of pool %s, of which %d would do for all.", w.Ref, amount(n, "pod would", "pods would"), pool, p.growth(pool))
		}
		for _, group := range alike(w.Waiting) {
			if group[0].Verdict == simulate.Untried {
				continue // said once, for all
			}
			p.sectionOnce(&heading, "Pods without a node")
			var names []string
			for _, pod := range group[:min(len(group), mostWaiting)] {
				names = append(names, pod.Pod.Name)
			}
			if len(group) > mostWaiting {
				names = append(names, fmt.Sprintf("and %d more", len(group)-mostWaiting))
			}
			p.say("%s: %s", w.Ref, strings.Join(names, ", "))
			for _, line := range p.why(group[0]) {
				p.say("  %s", line)
			}
		}
	}
}

func (p *placement) sectionOnce(done *bool, title string) {
	if !*done {
		p.section(title)
		*done = true
	}
}

// why says why the pod waits.
func (p *placement) why(pod simulate.Pod) []string {
	switch pod.Verdict {
	case simulate.Unserved:
		return []string{fmt.Sprintf("no scheduler that is known to run serves the name %q", pod.Pod.Spec.SchedulerName)}
	case simulate.Gated:
		var names []string
		for _, g := range pod.Pod.Spec.SchedulingGates {
			names = append(names, g.Name)
		}
		if len(names) == 0 {
			return []string{"held back before scheduling: its group is not complete, or not known"}
		}
		return []string{"held by the gates " + strings.Join(names, ", ")}
	case simulate.Waiting, simulate.Placed, simulate.NeedsNodes, simulate.Untried, simulate.Gone:
	}
	lines := causes(p.result.Causes(pod, p.pools), p.options)
	if len(lines) == 0 && pod.Attempt != nil {
		lines = append(lines, pod.Attempt.Message)
	}
	return lines
}

// causes says why nodes do not take a pod, a line for each cause and one for the
// policies behind it.
func causes(list []preview.Cause, o Options) []string {
	var lines []string
	for _, c := range list {
		lines = append(lines, fmt.Sprintf("%s: %s (%s)", amount(c.Count(), "node", "nodes")+inPools(c.Nodes), c.Reason, c.Plugin))
		if len(c.Origins) > 0 {
			lines = append(lines, "  "+originText(c.Origins, o))
		}
	}
	return lines
}

// inPools says in which pools the nodes are.
func inPools(nodes map[string]int) string {
	var parts []string
	for _, pool := range slices.Sorted(maps.Keys(nodes)) {
		if pool != "" {
			parts = append(parts, fmt.Sprintf("%d of pool %s", nodes[pool], pool))
		}
	}
	switch {
	case len(parts) == 0:
		return ""
	case len(nodes) == 1:
		return " of pool " + slices.Collect(maps.Keys(nodes))[0]
	}
	return ", " + strings.Join(parts, ", ")
}

func (p *placement) growth(pool string) int {
	for _, g := range p.result.Growth {
		if g.Pool == pool {
			return g.Nodes
		}
	}
	return 0
}

// alike groups the pods by verdict and message.
func alike(pods []simulate.Pod) [][]simulate.Pod {
	var groups [][]simulate.Pod
	index := map[string]int{}
	for _, pod := range pods {
		key := string(pod.Verdict)
		if pod.Attempt != nil {
			key += pod.Attempt.Message
		}
		i, ok := index[key]
		if !ok {
			i = len(groups)
			index[key] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], pod)
	}
	return groups
}

// stuck says which rollouts and drains come to a halt.
func (p *placement) stuck() {
	if len(p.result.Stuck) == 0 {
		return
	}
	p.section("What comes to a halt")
	for _, s := range p.result.Stuck {
		switch {
		case s.Budget != "":
			p.say("%s: PodDisruptionBudget %s never lets pod %s leave node %s.", s.Workload, s.Budget, s.At, s.Node)
		case s.At != "":
			p.say("%s: all wait for pod %s, which finds no node: %d of %d pods are placed.", s.Workload, s.At, s.Placed, s.Wanted)
		default:
			p.say("%s: the rollout stops with %d of %d new pods placed and %d old ones left (maxSurge %d, maxUnavailable %d).", s.Workload, s.Placed, s.Wanted, s.Old, s.MaxSurge, s.MaxUnavailable)
			if s.MaxUnavailable == 0 {
				p.say("  No old pod may go before a new one is placed. With maxSurge 0 and maxUnavailable 1 one makes room for the next.")
			}
		}
	}
}

func (p *placement) evicted() {
	if len(p.result.Evicted) == 0 {
		return
	}
	p.section("Evicted for pods of higher priority")
	for _, e := range p.result.Evicted {
		p.say("%s/%s, which was on node %s", e.Victim.Namespace, e.Victim.Name, e.Victim.Spec.NodeName)
	}
}

func (p *placement) assumptions() {
	lines := p.result.AllAssumptions()
	if len(lines) == 0 {
		return
	}
	p.section("This assumes that")
	for _, line := range lines {
		p.say("- %s", line)
	}
}

// originText names the policies' lines.
func originText(origins []compiler.Origin, o Options) string {
	var parts []string
	for _, origin := range origins {
		text := o.Place(origin.Range.Start)
		if origin.Policy != "" {
			text = "policy " + origin.Policy + ", " + text
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}
