package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/internal/policytest"
	"github.com/kubectl-sched/kubectl-sched/internal/report/excerpt"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// TestOptions says what of a run of policy tests is written.
type TestOptions struct {
	Options
	// Verbose names also the tests that passed, and what outcomes rest on.
	Verbose bool
	// Coverage says which policies no test exercised.
	Coverage bool
}

// TestSummary counts tests.
type TestSummary struct {
	Tests        int `json:"tests"`
	Passed       int `json:"passed"`
	Failed       int `json:"failed"`
	Errors       int `json:"errors"`
	Expectations int `json:"expectations"`
	// NotRun is how many tests were not picked.
	NotRun int `json:"notRun"`
}

// CountTests counts what came of the tests. One that could not be judged is an error,
// whatever else is wrong with it.
func CountTests(r *policytest.Report) TestSummary {
	s := TestSummary{Tests: len(r.Results), NotRun: r.Skipped}
	for i := range r.Results {
		t := &r.Results[i]
		s.Expectations += t.Expectations
		switch {
		case len(t.Errors) > 0:
			s.Errors++
		case len(t.Failures) > 0:
			s.Failed++
		default:
			s.Passed++
		}
	}
	return s
}

// String says the counts: "3 tests with 7 expectations: 2 passed, 1 failed".
func (s TestSummary) String() string {
	text := fmt.Sprintf("%s with %s: %d passed", number(s.Tests, "test"), number(s.Expectations, "expectation"), s.Passed)
	if s.Failed > 0 {
		text += fmt.Sprintf(", %d failed", s.Failed)
	}
	if s.Errors > 0 {
		text += fmt.Sprintf(", %d with errors", s.Errors)
	}
	if s.NotRun > 0 {
		text += fmt.Sprintf(" (%d not run)", s.NotRun)
	}
	return text
}

func number(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// coverage says how many policies were exercised.
func coverage(r *policytest.Report) string {
	of := number(r.Policies, "policy")
	if r.Policies != 1 {
		of = fmt.Sprintf("%d policies", r.Policies)
	}
	text := fmt.Sprintf("coverage: tests exercise %d of %s", r.Policies-len(r.Untested), of)
	if r.Skipped > 0 {
		text += "; tests that were not run do not count"
	}
	return text
}

// Tests writes the results in the format: Text, JSON or JUnit.
func Tests(w io.Writer, format Format, r *policytest.Report, o TestOptions) error {
	for _, f := range []struct {
		format Format
		write  func(io.Writer, *policytest.Report, TestOptions) error
	}{{Text, testsText}, {JSON, testsJSON}, {JUnit, testsJUnit}} {
		if f.format == format {
			return f.write(w, r, o)
		}
	}
	_, err := ParseFormat(string(format), Text, JSON, JUnit)
	return err
}

// testsText writes the failures as findings are written, and a line that counts.
func testsText(w io.Writer, r *policytest.Report, o TestOptions) error {
	var b strings.Builder
	t := newTextWriter(&b, o.Options)
	separate := func() {
		if b.Len() > 0 && !strings.HasSuffix(b.String(), "\n\n") {
			b.WriteByte('\n')
		}
	}
	for i := range r.Results {
		result := &r.Results[i]
		if o.Verbose {
			t.verdict(result)
		}
		for _, findings := range []diag.Findings{result.Errors, result.Failures} {
			for _, f := range findings {
				separate()
				t.finding(f)
			}
		}
		if o.Verbose && !result.Passed() {
			b.WriteByte('\n')
		}
	}
	if o.Coverage {
		for _, f := range r.Untested {
			separate()
			t.finding(f)
		}
		separate()
		b.WriteString(coverage(r) + "\n")
	} else {
		separate()
	}
	b.WriteString(CountTests(r).String() + "\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// verdict writes one line about a test, and those that its outcome rests on.
func (t textWriter) verdict(r *policytest.Result) {
	word, c := "ok", green
	switch {
	case len(r.Errors) > 0:
		word, c = "error", red
	case len(r.Failures) > 0:
		word, c = "failed", red
	}
	// Padded before it is coloured, so that the columns stand.
	word = strings.Replace(fmt.Sprintf("%-6s", word), word, t.style.paint(c, word), 1)
	fmt.Fprintf(t.b, "%s %s (%s)\n", word, excerpt.Printable(r.Name), number(r.Expectations, "expectation"))
	for _, note := range r.Notes {
		t.b.WriteString(wrap("       assumed: "+excerpt.Printable(note), t.o.width(), "         ") + "\n")
	}
}
