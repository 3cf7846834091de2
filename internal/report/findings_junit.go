package report

import (
	"encoding/xml"
	"io"

	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

type junitSuites struct {
	XMLName  xml.Name   `xml:"testsuites"`
	Name     string     `xml:"name,attr"`
	Tests    int        `xml:"tests,attr"`
	Failures int        `xml:"failures,attr"`
	Errors   int        `xml:"errors,attr"`
	Suite    junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name      string        `xml:"name,attr"`
	ClassName string        `xml:"classname,attr"`
	File      string        `xml:"file,attr,omitempty"`
	Line      int           `xml:"line,attr,omitempty"`
	Failure   *junitFailure `xml:"failure"`
	Output    string        `xml:"system-out,omitempty"`
}

type junitFailure struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
	Text    string `xml:",chardata"`
}

// findingsJUnit writes each finding as a test case, which fails for errors and
// warnings. Without findings there is one that passes: an empty report looks like one
// that was not made.
func findingsJUnit(w io.Writer, findings diag.Findings, o Options) error {
	suite := junitSuite{Name: "findings"}
	for _, f := range findings {
		place := o.place(f.Range.Start)
		c := junitCase{Name: sentence(f), ClassName: f.Rule, Line: f.Range.Start.Line}
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
			c.Failure = &junitFailure{Message: sentence(f), Type: string(f.Severity), Text: junitText(f, o)}
		}
		suite.Cases = append(suite.Cases, c)
	}
	if len(findings) == 0 {
		suite.Cases = []junitCase{{Name: "no findings", ClassName: toolName}}
	}
	suite.Tests = len(suite.Cases)
	document, err := xml.MarshalIndent(junitSuites{
		Name: toolName, Tests: suite.Tests, Failures: suite.Failures, Suite: suite,
	}, "", "  ")
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, xml.Header+string(document)+"\n")
	return err
}

// junitText is all that is known of a finding.
func junitText(f diag.Finding, o Options) string {
	head := f.Rule + "\n"
	if place := o.place(f.Range.Start); place != "" {
		head = place + ": " + head
	}
	return head + o.details(f)
}
