package report

import (
	"io"

	"github.com/kubectl-sched/kubectl-sched/internal/policytest"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// TestList is the document that results of policy tests are written as.
type TestList struct {
	APIVersion string `json:"apiVersion"`
	// Kind is "TestList".
	Kind string `json:"kind"`
	// Items are the tests that were run, in the order of the files; never null.
	Items   []TestItem  `json:"items"`
	Summary TestSummary `json:"summary"`
	// Coverage is there where it is asked for.
	Coverage *TestCoverage `json:"coverage,omitempty"`
}

// TestItem is what came of one test.
type TestItem struct {
	Name string `json:"name"`
	// Result is "passed", "failed" or "error".
	Result       string         `json:"result"`
	Range        diag.Range     `json:"range"`
	Expectations int            `json:"expectations"`
	Findings     []diag.Finding `json:"findings,omitempty"`
	Assumptions  []string       `json:"assumptions,omitempty"`
	// Policies are those that were in force for a workload of the test.
	Policies []string `json:"policies,omitempty"`
}

// TestCoverage says which policies the tests exercised.
type TestCoverage struct {
	Policies  int      `json:"policies"`
	Exercised int      `json:"exercised"`
	Untested  []string `json:"untested"`
}

// The results of a test, as documents name them.
const (
	testPassed = "passed"
	testFailed = "failed"
	testError  = "error"
)

func resultOf(r *policytest.Result) string {
	switch {
	case len(r.Errors) > 0:
		return testError
	case len(r.Failures) > 0:
		return testFailed
	}
	return testPassed
}

func testsJSON(w io.Writer, r *policytest.Report, o TestOptions) error {
	list := TestList{APIVersion: APIVersion, Kind: "TestList", Items: []TestItem{}, Summary: CountTests(r)}
	for i := range r.Results {
		t := &r.Results[i]
		item := TestItem{
			Name: t.Name, Result: resultOf(t), Range: o.rng(t.Range), Expectations: t.Expectations, Policies: t.Exercised,
		}
		if o.Verbose {
			item.Assumptions = t.Notes
		}
		for _, findings := range []diag.Findings{t.Errors, t.Failures} {
			for _, f := range findings {
				item.Findings = append(item.Findings, o.relocate(f))
			}
		}
		list.Items = append(list.Items, item)
	}
	if o.Coverage {
		c := &TestCoverage{Policies: r.Policies, Exercised: r.Policies - len(r.Untested), Untested: []string{}}
		for _, f := range r.Untested {
			c.Untested = append(c.Untested, f.Policy)
		}
		list.Coverage = c
	}
	return writeJSON(w, list)
}
