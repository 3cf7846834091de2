package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/internal/apply"
	"github.com/kubectl-sched/kubectl-sched/internal/report"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// maxExcerptSource is how large a file may be that an excerpt is read from: one
// that was refused for its size is not read after all to show where.
const maxExcerptSource = 16 << 20

// reportOptions returns how to write a report to w.
func (a *app) reportOptions(w io.Writer) report.Options {
	dir, err := a.getwd()
	if err != nil {
		dir = "" // then files are named as they are
	}
	return report.Options{Dir: dir, Repository: repositoryOf(dir), Rule: ruleDocs(), Version: buildVersion(), Color: report.Colored(w, a.getenv), Width: report.WidthOf(w), Now: a.now(), Source: a.texts.source()}
}

// say prints a message of ours in lines that fit the terminal.
func (a *app) say(w io.Writer, format string, args ...any) {
	fmt.Fprintln(w, report.Options{Width: report.WidthOf(w)}.Wrapped(fmt.Sprintf(format, args...)))
}

// complain prints an error. It is broken into lines on a terminal alone: in a log
// it is one that can be searched for.
func (a *app) complain(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if report.IsTerminal(a.ErrOut) {
		text = report.Options{Width: report.WidthOf(a.ErrOut)}.Wrapped(text)
	}
	fmt.Fprintln(a.ErrOut, text)
}

// sayChanges prints what a reader must know first of a change set.
func (a *app) sayChanges(changes *apply.ChangeSet) {
	if lines := report.ChangeSummary(changes); len(lines) > 0 {
		a.say(a.Out, "%s", strings.Join(lines, "\n"))
	}
}

// printFindings prints the findings that nobody ignores on stderr as text, unless the
// user has asked for another format there.
func (a *app) printFindings(findings diag.Findings) {
	findings = a.withoutIgnored(findings)
	a.findings = append(a.findings, findings...)
	if slices.ContainsFunc(a.sinks, func(s findingsSink) bool { return s.file == "" }) {
		return
	}
	if err := report.Findings(a.ErrOut, report.Text, findings, a.reportOptions(a.ErrOut)); err != nil {
		fmt.Fprintln(a.ErrOut, "error:", err)
	}
}

// texts are the texts that findings point into and that are in no file:
// standard input, and what a kustomization builds.
type texts map[string][]byte

func (t texts) add(set *workload.Set) {
	for _, f := range set.Files {
		if f.Mode == 0 {
			t[f.Name] = f.Data
		}
	}
}

// source returns a function that returns the text of a file, for excerpts. It
// reads each file once.
func (t texts) source() func(string) ([]byte, bool) {
	read := map[string][]byte{}
	return func(name string) ([]byte, bool) {
		if data, ok := t[name]; ok {
			return data, true
		}
		data, seen := read[name]
		if !seen {
			data = excerptSource(name)
			read[name] = data
		}
		return data, data != nil
	}
}

// write calls write with standard output; it ends when ctx does, even if nobody
// reads.
func (a *app) write(ctx context.Context, write func(io.Writer) error) error {
	done := make(chan error, 1)
	go func() { done <- write(a.Out) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// excerptSource reads a file, or returns nil: an excerpt is a help, and its
// absence no error.
func excerptSource(name string) []byte {
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxExcerptSource {
		return nil
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil
	}
	return data
}
