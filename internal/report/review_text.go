package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/internal/report/excerpt"
	"github.com/kubectl-sched/kubectl-sched/internal/review"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// reviewed is a review as text.
type reviewed struct {
	o Options
	b strings.Builder
}

func (t *reviewed) say(format string, args ...any) {
	fmt.Fprintln(&t.b, t.o.Wrapped(lines(fmt.Sprintf(format, args...))))
}

// lines is printable for a text whose line ends are meant.
func lines(text string) string {
	parts := strings.Split(text, "\n")
	for i := range parts {
		parts[i] = excerpt.Printable(parts[i])
	}
	return strings.Join(parts, "\n")
}

func (t *reviewed) section(title string) {
	fmt.Fprintf(&t.b, "\n%s\n", style{t.o.Color}.paint(bold, excerpt.Printable(t.o.named(title))))
}

// reviewText writes the review for a terminal.
func reviewText(w io.Writer, r *review.Review, o Options) error {
	t := &reviewed{o: o}
	if r.Nothing() {
		t.say("%s", nothingChanges(r))
		_, err := io.WriteString(w, t.b.String())
		return err
	}
	for i, s := range r.Sections {
		if i > 0 {
			t.b.WriteByte('\n')
		}
		if name := clustersOf(s); name != "" {
			t.say("%s", name)
		}
		t.say("%s", restartSentence(s))
		t.say("%s", placementLine(s))
	}
	if r.Problem != "" {
		t.say("%s", r.Problem)
	}
	t.say("%s. Compared: %s with %s.", newFindings(r), r.Base, r.Head)
	t.policies(r.Policies)
	for _, s := range r.Sections {
		if name := clustersOf(s); name != "" && len(r.Sections) > 1 && !s.Nothing() {
			t.section("== " + name)
		}
		t.fields(s)
		t.placement(s.Placement)
	}
	t.ignored(r.Ignored)
	if _, err := io.WriteString(w, t.b.String()); err != nil || len(r.Findings) == 0 {
		return err
	}
	t.b.Reset()
	t.section("New findings")
	if _, err := io.WriteString(w, t.b.String()); err != nil {
		return err
	}
	return findingsText(w, r.Findings, o)
}

// ignored lists the findings that the change itself says to ignore.
func (t *reviewed) ignored(list []diag.Ignored) {
	if len(list) == 0 {
		return
	}
	t.section("Findings that the change says to ignore")
	for _, i := range list {
		t.say("%s: %s: %s", t.o.place(i.Finding.Range.Start), i.Finding.Severity, sentence(i.Finding))
		t.say("  %s", t.o.because(i))
	}
}

func (t *reviewed) policies(list []review.Declaration) {
	if len(list) == 0 {
		return
	}
	t.section("Policies")
	for _, d := range list {
		t.say("%s %s %q  %s", d.Action, d.Sort, d.Name, t.o.pos(d.Range.Start))
		for _, v := range d.Values {
			t.say("  %s", valueChange(v))
		}
	}
}

func (t *reviewed) fields(s review.Section) {
	if len(s.Fields)+len(s.Objects)+len(s.Workloads) > 0 {
		t.section("What is compiled")
	}
	for _, w := range s.Workloads {
		t.say("%s %s  %s", w.Action, w.Name, t.o.pos(w.Range.Start))
	}
	for _, f := range s.Fields {
		t.say("%s", gains(f))
		for _, v := range f.Removed {
			t.say("  - %s", v)
		}
		for _, v := range f.Added {
			t.say("  + %s", v)
		}
		t.say("  in %s", some(f.Workloads))
		for _, line := range t.o.originLines(f.Origins) {
			t.say("  from %s", line)
		}
	}
	for _, object := range s.Objects {
		t.say("%s %s", object.Action, object.Name)
		for _, line := range t.o.originLines(object.Origins) {
			t.say("  from %s", line)
		}
	}
}

// mostMoves is how many pods of a workload are named that move.
const mostMoves = 20

func (t *reviewed) placement(p *review.Placement) {
	if p == nil {
		return
	}
	t.moves(p)
	if len(p.Waiting) > 0 {
		t.section("Pods without a node")
	}
	for _, w := range p.Waiting {
		t.say("%s", waitingLine(w, mostWaiting))
		for _, c := range w.Causes {
			t.say("  %s", causeLine(c))
			for _, line := range t.o.originLines(c.Origins) {
				t.say("    from %s", line)
			}
		}
		if len(w.Causes) == 0 && w.Message != "" {
			t.say("  %s", w.Message)
		}
	}
	if len(p.Stuck) > 0 {
		t.section("What comes to a halt")
		for _, line := range p.Stuck {
			t.say("%s", line)
		}
	}
	t.fill(p)
	if len(p.Assumptions) > 0 {
		t.section("This assumes that")
		for _, line := range p.Assumptions {
			t.say("- %s", line)
		}
	}
	t.b.WriteByte('\n')
	t.say("%s", simulatedOn(p))
}

func (t *reviewed) moves(p *review.Placement) {
	if len(p.Moves) > 0 {
		t.section(movesTitle(p))
	}
	skews := map[string][]review.Skew{}
	for _, s := range p.Skews {
		skews[s.Workload] = append(skews[s.Workload], s)
	}
	for _, m := range p.Moves {
		t.say("%s: %s → %s", m.Workload, wheres(m.Before), wheres(m.After))
		for _, s := range skews[m.Workload] {
			t.say("  skew over %s: %d → %d", s.Key, s.Before, s.After)
		}
		for _, pod := range m.Pods[:min(mostMoves, len(m.Pods))] {
			by := ""
			if pod.Tie {
				by = " (by a tie: " + pod.From + " is as good)"
			}
			t.say("  %s: %s → %s%s", pod.Pod, pod.From, pod.To, by)
		}
		if len(m.Pods) > mostMoves {
			t.say("  and %d more", len(m.Pods)-mostMoves)
		}
	}
}

func (t *reviewed) fill(p *review.Placement) {
	if len(p.Fill) == 0 {
		return
	}
	t.section("Nodes")
	table := t.o.table()
	table.add("POOL", "ZONE", "NODES", "PODS", "CPU REQUESTED", "MEMORY")
	for _, f := range p.Fill {
		table.add(orNone(f.Pool), orNone(f.Zone), fmt.Sprint(f.Nodes), change(f.Pods.Before, f.Pods.After),
			share(f.CPU.Before, f.CPU.After, f.CPU.Total), share(f.Memory.Before, f.Memory.After, f.Memory.Total))
	}
	t.b.WriteString(table.text(t.o.width()))
}
