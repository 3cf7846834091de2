package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/internal/report/excerpt"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// findingsText writes each finding as
//
//	file:line:column: error: policy "name": what is wrong
//	   12 | the line
//	      |     ^^^^
//	  other.yaml:3:1: the other place
//	  fix: what to do
//
// and at the end a line that counts them. Without findings it writes nothing.
func findingsText(w io.Writer, findings diag.Findings, o Options) error {
	var b strings.Builder
	t := newTextWriter(&b, o)
	for i, f := range findings {
		// A finding that takes several lines stands apart from its neighbours.
		if i > 0 {
			b.WriteByte('\n')
		}
		t.finding(f)
	}
	if len(findings) > 0 {
		fmt.Fprintf(&b, "\n%s\n", Count(findings))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// String says the counts that are not zero: "2 errors, 1 warning".
func (s Summary) String() string {
	var parts []string
	add := func(n int, word string) {
		switch {
		case n == 1:
			parts = append(parts, "1 "+word)
		case n > 1:
			parts = append(parts, fmt.Sprintf("%d %ss", n, word))
		}
	}
	add(s.Errors, "error")
	add(s.Warnings, "warning")
	add(s.Infos, "note")
	if len(parts) == 0 {
		return "no findings"
	}
	return strings.Join(parts, ", ")
}

type textWriter struct {
	b     *strings.Builder
	o     Options
	style style
	texts func(string) *diag.Text
}

func newTextWriter(b *strings.Builder, o Options) textWriter {
	return textWriter{b: b, o: o, style: style{o.Color}, texts: o.texts()}
}

func (t textWriter) finding(f diag.Finding) {
	head := ""
	if f.Range.Start.IsValid() {
		head = t.o.pos(f.Range.Start).String() + ": "
	}
	label, color := "error:", red
	switch f.Severity {
	case diag.Error:
	case diag.Warning:
		label, color = "warning:", yellow
	case diag.Info:
		label, color = "note:", blue
	}
	body := label + " "
	if f.Policy != "" {
		body += fmt.Sprintf("policy %q: ", f.Policy)
	}
	if f.Subject != "" {
		body += f.Subject + ": "
	}
	text := wrap(excerpt.Printable(head+body+f.Message+" ["+f.Rule+"]"), t.o.width(), "    ")
	// Colour is added after wrapping, so that it takes no columns.
	text = strings.Replace(text, label, t.style.paint(color, label), 1)
	if at := strings.LastIndex(text, "["+f.Rule+"]"); at >= 0 {
		text = text[:at] + t.style.paint(faint, text[at:])
	}
	t.b.WriteString(text + "\n")
	t.excerpt(f.Range, color)
	for _, r := range f.Related {
		where := ""
		if r.Range.Start.IsValid() {
			where = t.o.pos(r.Range.Start).String() + ": "
		}
		t.b.WriteString(wrap("  "+excerpt.Printable(where+r.Message), t.o.width(), "    ") + "\n")
		t.excerpt(r.Range, blue)
	}
	if f.Fix != nil {
		fix := wrap("  fix: "+excerpt.Printable(f.Fix.Message), t.o.width(), "    ")
		t.b.WriteString(strings.Replace(fix, "fix:", t.style.paint(green, "fix:"), 1) + "\n")
	}
}

func (t textWriter) excerpt(r diag.Range, c color) {
	if r.Start.Line == 0 {
		return
	}
	text := t.texts(r.Start.File)
	if text == nil {
		return
	}
	line, marks, ok := excerpt.Of(text, r, t.o.width()-gutter)
	if !ok {
		return
	}
	fmt.Fprintf(t.b, "%s %s\n", t.style.paint(faint, fmt.Sprintf("%5d |", r.Start.Line)), line)
	fmt.Fprintf(t.b, "%s %s%s\n", t.style.paint(faint, "      |"), marks[:len(marks)-len(strings.TrimLeft(marks, " "))], t.style.paint(c, strings.TrimLeft(marks, " ")))
}

// gutter is how many columns stand before the text of an excerpt.
const gutter = len("12345 | ")
