package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/internal/report/excerpt"
	"github.com/kubectl-sched/kubectl-sched/internal/review"
)

// ReviewMarker begins every comment, so that the next run finds it and changes it
// instead of writing another.
const ReviewMarker = "<!-- kubectl-sched review -->"

// What a comment may take: GitHub refuses more than 65,536 characters, and nobody
// reads more than a page that is not folded.
const (
	maxComment      = 60_000
	maxOpenLines    = 60
	maxOpenSections = 3
	maxOpenRows     = 5
)

// comment is a review as markdown. most is how many of each list it names.
type comment struct {
	o    Options
	most int
	b    strings.Builder
}

// reviewMarkdown writes the review as a comment: what matters at once, and the rest
// folded. Lists get shorter until it is small enough.
func reviewMarkdown(w io.Writer, r *review.Review, o Options) error {
	var text string
	for _, most := range []int{500, 100, 30, 10, 3, 1, 0} {
		c := &comment{o: o, most: most}
		c.review(r)
		if text = c.b.String(); len(text) <= maxComment {
			break
		}
	}
	if len(text) > maxComment { // hundreds of clusters, each another
		c := &comment{o: o}
		c.line(ReviewMarker)
		c.line("### Placement")
		c.line("")
		c.line("The review is too long for a comment; see the report of the job.")
		text = c.b.String()
	}
	_, err := io.WriteString(w, text)
	return err
}

func (c *comment) line(format string, args ...any) {
	fmt.Fprintf(&c.b, format+"\n", args...)
}

// code quotes what comes from the repository or the cluster, so that none of it is
// markdown, HTML, a mention or a link.
func (c *comment) code(text string) string {
	text = strings.TrimSpace(excerpt.Printable(c.o.named(text)))
	if text == "" {
		return "-"
	}
	return "`" + strings.ReplaceAll(text, "`", "'") + "`"
}

// cell is code within a table.
func (c *comment) cell(text string) string { return strings.ReplaceAll(c.code(text), "|", "\\|") }

// fold writes a part that is closed at first.
func (c *comment) fold(title string, inside func()) {
	c.line("\n<details><summary>%s</summary>\n", title)
	inside()
	c.line("\n</details>")
}

// each calls write for the first of n, and counts the rest.
func (c *comment) each(n int, write func(int)) {
	for i := range min(n, c.most) {
		write(i)
	}
	if n > c.most {
		c.line("- and %d more", n-c.most)
	}
}

func (c *comment) review(r *review.Review) {
	c.line(ReviewMarker)
	c.line("### Placement")
	c.line("")
	if r.Nothing() {
		c.line("0 pods move, 0 new findings: policies, compiled fields and pods are the same as with %s.", c.code(r.Base))
		return
	}
	for i, s := range r.Sections {
		if i == maxOpenSections {
			break
		}
		c.summary(s)
	}
	if n := len(r.Sections) - maxOpenSections; n > 0 {
		c.fold(amount(n, "more section", "more sections"), func() {
			c.each(n, func(i int) { c.summary(r.Sections[maxOpenSections+i]) })
		})
	}
	if r.Problem != "" {
		c.line("\n**%s**", r.Problem)
	}
	c.line("\n%s. Compared: %s with %s.", newFindings(r), c.code(r.Base), c.code(r.Head))
	c.findings(r)
	c.ignored(r)
	if len(r.Policies) > 0 {
		c.fold(amount(len(r.Policies), "policy or pool changes", "policies or pools change"), func() {
			c.each(len(r.Policies), func(i int) { c.declaration(r.Policies[i]) })
		})
	}
	if len(r.Sections) == 1 {
		c.details(r.Sections[0])
		return
	}
	c.fold("Details", func() {
		c.each(len(r.Sections), func(i int) {
			if !r.Sections[i].Nothing() {
				c.line("\n**%s** %s", words("Cluster", len(r.Sections[i].Clusters)), c.code(some(r.Sections[i].Clusters)))
				c.details(r.Sections[i])
			}
		})
	})
}

// summary is what is open of a section: at most eight lines.
func (c *comment) summary(s review.Section) {
	if len(s.Clusters) > 0 {
		c.line("**%s** %s\n", words("Cluster", len(s.Clusters)), c.code(some(s.Clusters)))
	}
	line := "restarts no workload"
	if n := len(s.Restarts.Workloads); n > 0 {
		line = fmt.Sprintf("restarts **%s (%s)**: %s", plural(n, "workload"), plural(s.Restarts.Pods, "pod"), c.code(some(s.Restarts.Workloads)))
		var budgets []string
		for _, d := range s.Restarts.Budgets {
			budgets = append(budgets, d.Namespace+"/"+d.Name)
		}
		if len(budgets) > 0 {
			line += "; PodDisruptionBudgets: " + c.code(some(budgets))
		} else {
			line += "; no PodDisruptionBudget covers them"
		}
	}
	c.line("- %s", line)
	c.line("- %s", placementLine(s))
	if s.Placement == nil {
		c.line("")
		return
	}
	for i, w := range s.Placement.Waiting {
		if i == maxOpenRows-2 {
			c.line("- and %d more that find no node", len(s.Placement.Waiting)-i)
			break
		}
		line := c.code(waitingLine(w, mostWaiting))
		if len(w.Causes) > 0 {
			line += " because " + c.code(causeLine(w.Causes[0]))
			if origins := c.o.originLines(w.Causes[0].Origins); len(origins) > 0 {
				line += ", " + c.code(origins[0])
			}
		}
		c.line("- %s", line)
	}
	c.line("")
}

func words(word string, n int) string {
	if n == 1 {
		return word
	}
	return word + "s"
}

func (c *comment) finding(r *review.Review, i int) {
	f := r.Findings[i]
	c.line("- %s %s %s %s", f.Severity, c.code(c.o.place(f.Range.Start)), c.code(sentence(f)), c.code(f.Rule))
}

// ignored lists the findings that the change itself says to ignore: open, since nobody
// but the reviewer can judge them.
func (c *comment) ignored(r *review.Review) {
	if len(r.Ignored) == 0 {
		return
	}
	line := func(i int) {
		f := r.Ignored[i]
		c.line("- %s %s %s %s", f.Finding.Severity, c.code(c.o.place(f.Finding.Range.Start)), c.code(sentence(f.Finding)), c.code(c.o.because(f)))
	}
	c.line("\nThe change says to ignore:\n")
	open := min(maxOpenRows, len(r.Ignored), c.most)
	for i := range open {
		line(i)
	}
	if n := len(r.Ignored) - open; n > 0 {
		c.fold(amount(n, "more ignored finding", "more ignored findings"), func() {
			c.each(n, func(i int) { line(open + i) })
		})
	}
}

func (c *comment) findings(r *review.Review) {
	if len(r.Findings) == 0 {
		return
	}
	c.line("")
	open := min(maxOpenRows, len(r.Findings), c.most)
	for i := range open {
		c.finding(r, i)
	}
	if n := len(r.Findings) - open; n > 0 {
		c.fold(amount(n, "more finding", "more findings"), func() {
			c.each(n, func(i int) { c.finding(r, open+i) })
		})
	}
}

func (c *comment) declaration(d review.Declaration) {
	c.line("- %s %s %s %s", d.Action, d.Sort, c.code(d.Name), c.code(c.o.pos(d.Range.Start).String()))
	for i, v := range d.Values {
		if i >= c.most {
			c.line("  - and %d more", len(d.Values)-i)
			break
		}
		c.line("  - %s", c.code(valueChange(v)))
	}
}

// details are the folded parts of a section.
func (c *comment) details(s review.Section) {
	if n := len(s.Fields) + len(s.Objects) + len(s.Workloads); n > 0 {
		c.fold("What is compiled: "+amount(n, "change", "changes"), func() { c.compiled(s) })
	}
	p := s.Placement
	if p == nil {
		return
	}
	if len(p.Moves) > 0 {
		c.fold(movesTitle(p)+": "+amount(len(p.Moves), "workload", "workloads"), func() { c.moves(p) })
	}
	if len(p.Waiting)+len(p.Stuck) > 0 {
		c.fold("Pods without a node", func() { c.waiting(p) })
	}
	c.fold("Nodes", func() { c.fill(p) })
}

func (c *comment) compiled(s review.Section) {
	c.each(len(s.Workloads), func(i int) { c.line("- %s %s", s.Workloads[i].Action, c.code(s.Workloads[i].Name)) })
	c.each(len(s.Fields), func(i int) {
		f := s.Fields[i]
		c.line("- %s: %s", c.code(gains(f)), c.code(some(f.Workloads)))
		for _, v := range f.Removed {
			c.line("  - − %s", c.code(v))
		}
		for _, v := range f.Added {
			c.line("  - \\+ %s", c.code(v))
		}
		for _, line := range c.o.originLines(f.Origins) {
			c.line("  - from %s", c.code(line))
		}
	})
	c.each(len(s.Objects), func(i int) { c.line("- %s %s", s.Objects[i].Action, c.code(s.Objects[i].Name)) })
}

func (c *comment) moves(p *review.Placement) {
	c.line("| workload | moved | by a tie | before | after |")
	c.line("|---|---|---|---|---|")
	for _, m := range p.Moves[:min(c.most, len(p.Moves))] {
		c.line("| %s | %d | %d | %s | %s |", c.cell(m.Workload), m.Moved, m.ByTie, c.cell(wheres(m.Before)), c.cell(wheres(m.After)))
	}
	c.line("")
	for _, m := range p.Moves[:min(c.most, len(p.Moves))] {
		if len(m.Pods) == 0 {
			continue
		}
		var parts []string
		for _, pod := range m.Pods[:min(c.most, mostMoves, len(m.Pods))] {
			text := c.code(fmt.Sprintf("%s: %s → %s", pod.Pod, pod.From, pod.To))
			if pod.Tie {
				text += " (tie)"
			}
			parts = append(parts, text)
		}
		if n := len(m.Pods) - len(parts); n > 0 {
			parts = append(parts, fmt.Sprintf("and %d more", n))
		}
		c.line("- %s: %s", c.code(m.Workload), strings.Join(parts, ", "))
	}
	c.each(len(p.Skews), func(i int) {
		s := p.Skews[i]
		c.line("- skew of %s over %s: %d → %d", c.code(s.Workload), c.code(s.Key), s.Before, s.After)
	})
}

func (c *comment) waiting(p *review.Placement) {
	c.each(len(p.Waiting), func(i int) {
		w := p.Waiting[i]
		c.line("- %s", c.code(waitingLine(w, mostWaiting)))
		for _, cause := range w.Causes {
			c.line("  - %s", c.code(causeLine(cause)))
			for _, line := range c.o.originLines(cause.Origins) {
				c.line("    - from %s", c.code(line))
			}
		}
	})
	c.each(len(p.Stuck), func(i int) { c.line("- %s", c.code(p.Stuck[i])) })
}

func (c *comment) fill(p *review.Placement) {
	c.line("| pool | zone | nodes | pods | CPU requested | memory |")
	c.line("|---|---|---|---|---|---|")
	for _, f := range p.Fill[:min(c.most, len(p.Fill))] {
		c.line("| %s | %s | %d | %s | %s | %s |", c.cell(f.Pool), c.cell(f.Zone), f.Nodes, change(f.Pods.Before, f.Pods.After),
			share(f.CPU.Before, f.CPU.After, f.CPU.Total), share(f.Memory.Before, f.Memory.After, f.Memory.Total))
	}
	c.line("")
	c.line("%s", c.code(simulatedOn(p)))
	for _, a := range p.Assumptions[:min(c.most, len(p.Assumptions))] {
		c.line("- assumes that %s", c.code(a))
	}
}
