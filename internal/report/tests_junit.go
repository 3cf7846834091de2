package report

import (
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/internal/policytest"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// testsJUnit writes a suite for each folder, and a case for each test. What fails and
// what could not be judged are told apart, as the format does.
func testsJUnit(w io.Writer, r *policytest.Report, o TestOptions) error {
	plain := o.Options
	plain.Color, plain.Width = false, 1<<16
	var suites []xmlSuite
	for i := range r.Results {
		t := &r.Results[i]
		at := o.pos(t.Range.Start)
		folder := path.Dir(at.File)
		n := len(suites)
		if n == 0 || suites[n-1].Name != folder {
			suites = append(suites, xmlSuite{Name: folder})
			n++
		}
		suite := &suites[n-1]
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
	if o.Coverage && len(suites) > 0 {
		var names []string
		for _, f := range r.Untested {
			names = append(names, f.Policy)
		}
		suites[0].Properties = &xmlProperties{[]xmlProperty{
			{"policies", strconv.Itoa(r.Policies)},
			{"policies.untested", strings.Join(names, " ")},
		}}
	}
	return writeJUnit(w, suites)
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
