package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/internal/policytest"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// The elements of JUnit's XML, as far as CI systems agree on them. There are no times
// in it: the same results are the same bytes.
type (
	xmlSuites struct {
		XMLName  xml.Name   `xml:"testsuites"`
		Name     string     `xml:"name,attr"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Errors   int        `xml:"errors,attr"`
		Suites   []xmlSuite `xml:"testsuite"`
	}
	xmlSuite struct {
		Name       string         `xml:"name,attr"`
		Tests      int            `xml:"tests,attr"`
		Failures   int            `xml:"failures,attr"`
		Errors     int            `xml:"errors,attr"`
		Properties *xmlProperties `xml:"properties"`
		Cases      []xmlCase      `xml:"testcase"`
	}
	xmlProperties struct {
		Properties []xmlProperty `xml:"property"`
	}
	xmlProperty struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
	}
	xmlCase struct {
		Name      string      `xml:"name,attr"`
		ClassName string      `xml:"classname,attr"`
		File      string      `xml:"file,attr,omitempty"`
		Line      int         `xml:"line,attr,omitempty"`
		Error     *xmlProblem `xml:"error"`
		Failure   *xmlProblem `xml:"failure"`
		Output    string      `xml:"system-out,omitempty"`
	}
	xmlProblem struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		Text    string `xml:",chardata"`
	}
)

// testsJUnit writes a suite for each folder, and a case for each test. What fails and
// what could not be judged are told apart, as the format does.
func testsJUnit(w io.Writer, r *policytest.Report, o TestOptions) error {
	plain := o.Options
	plain.Color, plain.Width = false, 1<<16
	document := xmlSuites{Name: "kubectl-sched"}
	for i := range r.Results {
		t := &r.Results[i]
		at := o.pos(t.Range.Start)
		folder := path.Dir(at.File)
		n := len(document.Suites)
		if n == 0 || document.Suites[n-1].Name != folder {
			document.Suites = append(document.Suites, xmlSuite{Name: folder})
			n++
		}
		suite := &document.Suites[n-1]
		c := xmlCase{Name: t.Name, ClassName: folder, File: at.File, Line: at.Line}
		switch resultOf(t) {
		case testError:
			c.Error = problemOf(t.Errors, plain)
			suite.Errors++
		case testFailed:
			c.Failure = problemOf(t.Failures, plain)
			suite.Failures++
		}
		if o.Verbose {
			c.Output = strings.Join(t.Notes, "\n")
		}
		suite.Cases = append(suite.Cases, c)
		suite.Tests++
	}
	for _, s := range document.Suites {
		document.Tests, document.Failures, document.Errors = document.Tests+s.Tests, document.Failures+s.Failures, document.Errors+s.Errors
	}
	if o.Coverage && len(document.Suites) > 0 {
		var names []string
		for _, f := range r.Untested {
			names = append(names, f.Policy)
		}
		document.Suites[0].Properties = &xmlProperties{[]xmlProperty{
			{"policies", strconv.Itoa(r.Policies)},
			{"policies.untested", strings.Join(names, " ")},
		}}
	}
	text, err := xml.MarshalIndent(document, "", "  ")
	if err != nil {
		return fmt.Errorf("write the results as XML: %w", err)
	}
	_, err = io.WriteString(w, xml.Header+string(text)+"\n")
	return err
}

// problemOf says in one line what is wrong, and below it all that is known.
func problemOf(findings diag.Findings, o Options) *xmlProblem {
	var b strings.Builder
	t := newTextWriter(&b, o)
	for _, f := range findings {
		t.finding(f)
	}
	message := findings[0].Message
	if len(findings) > 1 {
		message += fmt.Sprintf(" (and %d more)", len(findings)-1)
	}
	return &xmlProblem{Message: message, Type: findings[0].Rule, Text: b.String()}
}
