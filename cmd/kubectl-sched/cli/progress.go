package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/internal/apply"
	"github.com/kubectl-sched/kubectl-sched/internal/report"
)

// progress says what a run does while it does it: each write as a line on
// standard output, and the rollouts on standard error. On a terminal the
// rollouts are lines that change in place; elsewhere, each new word is a line.
// It is called by one at a time.
type progress struct {
	app *app
	// writes says each write on standard output, which is the document's alone
	// where a document was asked for.
	writes bool
	// screen is nil where nothing can be written in place.
	screen *report.Screen
	// rollouts are those that are not complete, in the order in which they began;
	// total is how many there are in all, done are those that are complete.
	rollouts []rollout
	total    int
	done     map[string]bool
}

// rollout is the last word on one.
type rollout struct {
	subject, words string
}

func (a *app) newProgress(format report.Format) *progress {
	return &progress{app: a, writes: format == report.Text, screen: report.NewScreen(a.ErrOut, a.getenv), done: map[string]bool{}}
}

// hear takes an event of a run.
func (p *progress) hear(e apply.Event) {
	switch e.Kind {
	case apply.Wrote:
		if p.writes {
			p.print(func() { p.app.say(p.app.Out, "%s %s", e.Subject, cmp.Or(e.Message, past(e.Action))) })
		}
	case apply.Waiting:
		p.waiting(e)
	case apply.Done:
		if p.done[e.Subject] {
			// It has been waited for already, to keep within how many may restart at a
			// time.
			return
		}
		p.done[e.Subject] = true
		p.rollouts = slices.DeleteFunc(p.rollouts, func(r rollout) bool { return r.subject == e.Subject })
		p.print(func() { p.app.say(p.app.ErrOut, "%s has rolled out%s", e.Subject, p.counts()) })
		p.show()
	case apply.Outwaiting:
		p.print(func() { p.app.say(p.app.ErrOut, "%s: %s", e.Subject, e.Message) })
	case apply.Checked: // shown as the change set, once all is checked
	}
}

// waiting notes the last word on a rollout.
func (p *progress) waiting(e apply.Event) {
	words := e.Message + p.askedBy(e)
	i := slices.IndexFunc(p.rollouts, func(r rollout) bool { return r.subject == e.Subject })
	if i < 0 {
		i = len(p.rollouts)
		p.rollouts = append(p.rollouts, rollout{subject: e.Subject})
	}
	p.rollouts[i].words = words
	if p.screen == nil {
		p.app.say(p.app.ErrOut, "%s: %s", e.Subject, words)
		return
	}
	p.show()
}

// askedBy names the policies' lines behind what fails.
func (p *progress) askedBy(e apply.Event) string {
	var lines []string
	for _, o := range e.Origins {
		lines = append(lines, fmt.Sprintf("policy %q at %s", o.Policy, p.app.reportOptions(p.app.ErrOut).Place(o.Range.Start)))
	}
	if len(lines) == 0 {
		return ""
	}
	return " (" + strings.Join(lines, ", ") + ")"
}

// counts says how many of the rollouts are complete, where there are several.
func (p *progress) counts() string {
	if p.total < 2 || len(p.done) > p.total {
		return ""
	}
	return fmt.Sprintf(" (%d of %d)", len(p.done), p.total)
}

// print prints lines that stay.
func (p *progress) print(lines func()) {
	if p.screen == nil {
		lines()
		return
	}
	p.screen.Above(lines)
}

// show brings the lines that change in place up to date.
func (p *progress) show() {
	if p.screen == nil {
		return
	}
	var lines []string
	// In the last column a terminal may begin a new line by itself.
	options := report.Options{Width: report.WidthOf(p.app.ErrOut) - 1}
	for _, r := range p.rollouts {
		text := options.Wrapped(r.subject + ": " + r.words)
		lines = append(lines, strings.Split(text, "\n")...)
	}
	p.screen.Show(lines)
}

// end takes the lines that change in place off the terminal.
func (p *progress) end() {
	if p.screen != nil {
		p.screen.Show(nil)
	}
}
