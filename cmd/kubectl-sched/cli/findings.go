package cli

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kubectl-sched/kubectl-sched/internal/lint"
	"github.com/kubectl-sched/kubectl-sched/internal/report"
)

// findingsFlagName is the flag of every verb that gives findings. Their -o is for
// what they were asked for; findings come besides.
const findingsFlagName = "findings"

// withoutFindings are the verbs that give none of their own.
var withoutFindings = map[string]bool{"init": true, "fn": true, "version": true, "completion": true, "help": true}

// addFindingsFlag adds the flag to a verb and to those below it.
func addFindingsFlag(a *app, cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		if withoutFindings[c.Name()] || c.Hidden {
			continue
		}
		if c.Runnable() {
			c.Flags().Var((*findingsFlag)(a), findingsFlagName, "Write all `FORMAT[=FILE]` of findings ("+strings.Join(findingFormats(), ", ")+"): to the file, or in place of the text on standard error; may be given several times")
			completeValues(c, findingsFlagName, findingFormats())
		}
		addFindingsFlag(a, c)
	}
}

// findingFormats are the names of the formats of findings.
func findingFormats() []string {
	formats := report.FindingFormats()
	names := make([]string, len(formats))
	for i, f := range formats {
		names[i] = string(f)
	}
	return names
}

// findingsSink is one more place for findings, written when the command ends.
type findingsSink struct {
	format report.Format
	// file is empty for standard error.
	file string
}

// findingsFlag is the flag's value: it adds sinks to the app.
type findingsFlag app

var _ pflag.Value = (*findingsFlag)(nil)

// Set implements pflag.Value.
func (f *findingsFlag) Set(value string) error {
	name, file, named := strings.Cut(value, "=")
	format, err := report.ParseFormat(name, report.FindingFormats()...)
	if err != nil {
		return err
	}
	if named && file == "" {
		return errors.New("there is no file after \"=\"")
	}
	f.sinks = append(f.sinks, findingsSink{format, file})
	return nil
}

// String implements pflag.Value.
func (f *findingsFlag) String() string { return "" }

// Type implements pflag.Value.
func (f *findingsFlag) Type() string { return "format" }

// deliver writes the findings to the sinks. It returns the exit code: the given one,
// unless that says success and a sink could not be written.
func (a *app) deliver(code int) int {
	for _, s := range a.sinks {
		if err := a.deliverTo(s); err != nil {
			a.complain("error: write the findings: %v", err)
			code = max(code, exitFailure)
		}
	}
	return code
}

func (a *app) deliverTo(s findingsSink) error {
	findings := a.findings.Sort()
	options := a.reportOptions(a.ErrOut)
	options.Ignored = a.ignored
	if s.file == "" {
		return report.Findings(a.ErrOut, s.format, findings, options)
	}
	var b bytes.Buffer
	options = a.reportOptions(&b)
	options.Ignored = a.ignored
	if err := report.Findings(&b, s.format, findings, options); err != nil {
		return err
	}
	// A device or a pipe is written to; a file is replaced.
	if info, err := os.Stat(s.file); err == nil && !info.Mode().IsRegular() {
		file, err := os.OpenFile(s.file, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = file.Write(b.Bytes())
		return errors.Join(err, file.Close())
	}
	return replaceFile(s.file, b.Bytes(), 0o644)
}

// rulesPage is the address of the page of docs/reference with all rules.
const rulesPage = "https://github.com/kubectl-sched/kubectl-sched/blob/main/docs/reference/findings.md"

// ruleDocs returns a function that returns what the table of lint says of a rule.
func ruleDocs() func(id string) report.RuleDoc {
	docs := sync.OnceValue(func() map[string]string {
		docs := map[string]string{}
		for _, r := range lint.Documented() {
			docs[r.ID] = r.Doc
		}
		return docs
	})
	return func(id string) report.RuleDoc {
		doc, ok := docs()[id]
		if !ok {
			return report.RuleDoc{}
		}
		return report.RuleDoc{Short: doc, HelpURI: rulesPage + "#" + strings.ReplaceAll(id, "/", "")}
	}
}
