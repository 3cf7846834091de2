package report

import (
	"io"

	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// findingsJUnit writes each finding as a test case, which fails for errors and
// warnings. Without findings there is one that passes: an empty report looks like one
// that was not made.
func findingsJUnit(w io.Writer, findings diag.Findings, o Options) error {
	suite := xmlSuite{Name: "findings"}
	for _, f := range findings {
		place := o.place(f.Range.Start)
		c := xmlCase{Name: sentence(f), ClassName: f.Rule, Line: f.Range.Start.Line}
		if f.Range.Start.IsValid() {
			if f.Range.Start.File != stdin {
				c.File = o.Name(f.Range.Start.File)
			}
			c.Name = place + ": " + c.Name
		}
		if f.Severity == diag.Info {
			c.Output = junitText(f, o)
		} else {
			suite.Failures++
			c.Failure = &xmlProblem{Message: sentence(f), Type: string(f.Severity), Text: junitText(f, o)}
		}
		suite.Cases = append(suite.Cases, c)
	}
	if len(findings) == 0 {
		suite.Cases = []xmlCase{{Name: "no findings", ClassName: toolName}}
	}
	suite.Tests = len(suite.Cases)
	return writeJUnit(w, []xmlSuite{suite})
}

// junitText is all that is known of a finding.
func junitText(f diag.Finding, o Options) string {
	head := f.Rule + "\n"
	if place := o.place(f.Range.Start); place != "" {
		head = place + ": " + head
	}
	return head + o.details(f)
}
