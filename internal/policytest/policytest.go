// Package policytest runs the unit tests that stand beside policies: it makes a
// cluster and workloads of what a test says in a few lines, compiles the policies for
// them, has the simulator place the pods, and compares what came of it with what the
// test expects.
//
// It maps a Placement to Results. What must become of pods is decided elsewhere: by
// the compiler, by lint and by the scheduler in the simulator. The package must not
// know how results are shown.
package policytest

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// The rules of what a test finds.
const (
	// ruleFailed is an expectation that does not hold.
	ruleFailed = "test/failed"
	// ruleError is a test that cannot be run as it is written.
	ruleError = "test/error"
	// ruleUnknown is a name in a test that leads to nothing.
	ruleUnknown = "test/unknown-name"
	// ruleUntested is a policy that no test exercises.
	ruleUntested = "test/untested-policy"
)

// Options is what running depends on: equal options give equal results.
type Options struct {
	// Placement has the tests and the policies.
	Placement *policy.Placement
	// Kinds is the table of kinds, with those that the placement teaches.
	Kinds *workload.Kinds
	// Dir is the folder that the names of the placement's files are relative to.
	// Tests read no file outside of it, and those whose policies are outside none
	// outside of the policies' own folder.
	Dir string
	// Run picks tests by their names; nil for all.
	Run *regexp.Regexp
	// Now is when tests take place that do not say.
	Now time.Time
	// Timeout is how long one test may take; 0 for DefaultTimeout.
	Timeout time.Duration
	// Workers is how many tests run at once; 0 for one on each core.
	Workers int
}

// DefaultTimeout is how long a test may take if nothing else is said.
const DefaultTimeout = time.Minute

// Result is what came of one test.
type Result struct {
	Name string
	// Range is where the test is declared.
	Range diag.Range
	// Failures are the expectations that do not hold, each at its place.
	Failures diag.Findings
	// Errors are why the test could not be run, or judged, as it is written.
	Errors diag.Findings
	// Expectations counts what was judged.
	Expectations int
	// Notes are what the outcome rests on.
	Notes []string
	// Exercised are the policies that were in force for a workload of the test,
	// sorted.
	Exercised []string
}

// Passed reports whether the test ran and everything that it expects holds.
func (r *Result) Passed() bool { return len(r.Failures)+len(r.Errors) == 0 }

// Report is what came of all tests.
type Report struct {
	// Results are in the order of the files.
	Results []Result
	// Skipped is how many tests Run did not pick.
	Skipped int
	// Untested has a finding for each policy that no test exercised that was run.
	Untested diag.Findings
	// Policies is how many policies there are.
	Policies int
}

// Run runs the tests. The error is that of ctx.
func Run(ctx context.Context, o Options) (*Report, error) {
	var picked []*policy.Test
	report := &Report{Policies: len(o.Placement.Policies)}
	for i := range o.Placement.Tests {
		t := &o.Placement.Tests[i]
		if o.Run != nil && !o.Run.MatchString(t.Name) {
			report.Skipped++
			continue
		}
		picked = append(picked, t)
	}
	slices.SortStableFunc(picked, func(a, b *policy.Test) int {
		return cmp.Or(a.Positions.At().Start.Compare(b.Positions.At().Start), cmp.Compare(a.Name, b.Name))
	})
	report.Results = make([]Result, len(picked))
	slots := make(chan struct{}, cmp.Or(o.Workers, runtime.GOMAXPROCS(0)))
	var wg sync.WaitGroup
	for i, t := range picked {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			report.Results[i] = one(ctx, o, t)
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	report.Untested = untested(o.Placement, report.Results)
	return report, nil
}

// one runs one test.
func one(ctx context.Context, o Options, t *policy.Test) (result Result) {
	r := &run{Options: o, test: t, result: Result{Name: t.Name, Range: t.Positions.At()}}
	defer func() {
		// A test is a stranger's text, and much of what it reaches is others' code.
		if p := recover(); p != nil {
			r.bad(ruleError, nil, "the test ended in a panic (%v); please report it, with the test", p)
			result = r.result
		}
	}()
	limit := cmp.Or(o.Timeout, DefaultTimeout)
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	r.run(bounded)
	if bounded.Err() != nil && ctx.Err() == nil {
		r.result.Errors = nil
		r.bad(ruleError, nil, "the test took longer than %v; let it have fewer nodes or pods", limit)
	}
	return r.result
}

// run is one test while it runs.
type run struct {
	Options
	test   *policy.Test
	result Result
	setup
}

// subject is how findings name the test.
func (r *run) subject() string { return fmt.Sprintf("test %q", r.test.Name) }

func (r *run) finding(rule string, path []string, format string, args ...any) diag.Finding {
	return diag.Finding{
		Rule: rule, Severity: diag.Error, Subject: r.subject(),
		Range: r.test.Positions.At(path...), Message: fmt.Sprintf(format, args...),
	}
}

// bad notes an error of the test at the path.
func (r *run) bad(rule string, path []string, format string, args ...any) {
	r.result.Errors = append(r.result.Errors, r.finding(rule, path, format, args...))
}

// fail notes that the expectation at the path does not hold.
func (r *run) fail(path []string, related []diag.Related, format string, args ...any) {
	f := r.finding(ruleFailed, path, format, args...)
	f.Related = related
	r.result.Failures = append(r.result.Failures, f)
}

// failed reports whether the test cannot be judged any further.
func (r *run) broken() bool { return r.result.Errors.HasErrors() }

// untested returns a finding for each policy that no result exercised.
func untested(placement *policy.Placement, results []Result) diag.Findings {
	exercised := map[string]bool{}
	for _, r := range results {
		for _, name := range r.Exercised {
			exercised[name] = true
		}
	}
	var findings diag.Findings
	for _, p := range placement.Policies {
		if !exercised[p.Name] {
			findings = append(findings, diag.Finding{
				Rule: ruleUntested, Severity: diag.Warning, Policy: p.Name, Range: p.Positions.At(),
				Message: "no workload of any test that was run is selected by it",
			})
		}
	}
	return findings.Sort()
}
