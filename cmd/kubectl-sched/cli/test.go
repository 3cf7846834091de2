package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubectl-sched/kubectl-sched/internal/policytest"
	"github.com/kubectl-sched/kubectl-sched/internal/report"
	"github.com/kubectl-sched/kubectl-sched/policy"
)

type testFlags struct {
	policyFlags
	run      string
	output   string
	watch    bool
	coverage bool
	least    int
	verbose  bool
	timeout  time.Duration
}

func newTestCommand(a *app) *cobra.Command {
	f := &testFlags{}
	cmd := &cobra.Command{
		Use:     "test [-p POLICIES] [--run REGEXP]",
		Short:   "Run the unit tests that stand beside policies",
		GroupID: groupWrite,
		Long: "Run the tests in the section \"tests\" of the policies. A test describes a cluster and workloads\n" +
			"in a few lines, or names a snapshot and manifests, and says what must become of them: in which\n" +
			"zones the pods are, what is pending and why, what is compiled, what is found. The policies are\n" +
			"compiled and the pods placed by the real scheduler, in process. No cluster is asked.\n\n" +
			"An expectation that does not hold is shown at its line, with what happened instead and the lines\n" +
			"of the policies behind it. A test that checks nothing, or names what is not there, is an error.\n\n" +
			"The exit code is 0 if all tests pass, 1 if an expectation does not hold, and above 1 if a test\n" +
			"could not be judged, or there is none to run. With --min-coverage it is 1 as well if the tests\n" +
			"exercise fewer of the policies.",
		Example: "  # Run the tests of the policies in ./placement\n" +
			"  kubectl sched test\n\n" +
			"  # Those about the web tier, each with its name\n" +
			"  kubectl sched test --run '^web' -v\n\n" +
			"  # In CI, and which policies have no test\n" +
			"  kubectl sched test -p placement -o junit --coverage > results.xml",
		Args: cobra.NoArgs,
		RunE: runE(func([]string) (*testOptions, error) { return f.toOptions(a) }),
	}
	flags := cmd.Flags()
	f.policyFlags.addTo(flags)
	flags.StringVar(&f.run, "run", "", "Run the tests whose names this regular expression matches")
	flags.StringVarP(&f.output, "output", "o", "text", "Format: text, json or junit")
	flags.BoolVar(&f.watch, "watch", false, "Run the tests again whenever a file changes that they are made of")
	flags.BoolVar(&f.coverage, "coverage", false, "Say which policies no test exercises: those that select no workload of any test")
	flags.IntVar(&f.least, "min-coverage", 0, "How many percent of the policies the tests must exercise; implies --coverage")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "Name every test, and what its outcome rests on")
	flags.DurationVar(&f.timeout, "test-timeout", policytest.DefaultTimeout, "How long one test may take")
	completeValues(cmd, "output", []string{"text", "json", "junit"})
	return cmd
}

type testOptions struct {
	app      *app
	policies policyOptions
	run      *regexp.Regexp
	format   report.Format
	watch    bool
	coverage bool
	least    int
	verbose  bool
	timeout  time.Duration
}

func (f *testFlags) toOptions(a *app) (*testOptions, error) {
	policies, err := f.policyFlags.toOptions(a)
	if err != nil {
		return nil, err
	}
	format, err := report.ParseFormat(f.output, report.Text, report.JSON, report.JUnit)
	if err != nil {
		return nil, err
	}
	o := &testOptions{app: a, policies: policies, format: format, watch: f.watch, coverage: f.coverage || f.least > 0, least: f.least, verbose: f.verbose, timeout: f.timeout}
	if f.run != "" {
		if o.run, err = regexp.Compile(f.run); err != nil {
			return nil, fmt.Errorf("--run: %w", err)
		}
	}
	return o, nil
}

// Validate implements options.
func (o *testOptions) Validate() error {
	switch {
	case o.least < 0 || o.least > 100:
		return fmt.Errorf("--min-coverage must be between 0 and 100, not %d", o.least)
	case o.least > 0 && o.run != nil:
		return errors.New("--min-coverage is about all tests: leave out --run")
	case o.timeout <= 0:
		return fmt.Errorf("--test-timeout must be above 0, not %s", o.timeout)
	case o.watch && o.format != report.Text:
		return errors.New("--watch writes one report after the other, which only text can be: leave out -o")
	}
	return nil
}

// Run implements options.
func (o *testOptions) Run(ctx context.Context) error {
	makeRoomForCluster()
	if o.watch {
		return o.watching(ctx)
	}
	_, err := o.once(ctx)
	return err
}

// once loads the policies and runs their tests. It returns what was loaded, if
// anything could be.
func (o *testOptions) once(ctx context.Context) (*policy.Placement, error) {
	placement, findings := o.app.load(ctx, o.policies)
	if findings.HasErrors() {
		return placement, o.app.failOn(findings)
	}
	o.app.printFindings(findings)
	kinds, findings := kindTable(placement)
	if findings.HasErrors() {
		return placement, o.app.failOn(findings)
	}
	dir, err := o.app.getwd()
	if err != nil {
		return placement, err
	}
	results, err := policytest.Run(ctx, policytest.Options{
		Placement: placement, Kinds: kinds, Dir: dir, Run: o.run, Now: o.app.now(), Timeout: o.timeout,
	})
	if err != nil {
		return placement, err
	}
	if len(results.Results) == 0 {
		return placement, exitError{code: exitFailure, err: o.none(results)}
	}
	if err := o.app.write(ctx, func(w io.Writer) error {
		return report.Tests(w, o.format, results, report.TestOptions{
			Options: o.app.reportOptions(w), Verbose: o.verbose, Coverage: o.coverage,
		})
	}); err != nil {
		return placement, err
	}
	if err := testExit(results); err != nil {
		return placement, err
	}
	return placement, o.enough(results)
}

// none says why there is no test to run: a run that checks nothing must not look as
// if it had passed.
func (o *testOptions) none(r *policytest.Report) error {
	if r.Skipped > 0 {
		return fmt.Errorf("--run %q matches none of %s", o.run, count(r.Skipped, "test", "tests"))
	}
	return errors.New("there are no tests: write some in the section \"tests\" of the policies, such as in a file tests.cue beside them; docs/testing.md says how")
}

// enough returns an error if the tests exercise too few of the policies.
func (o *testOptions) enough(r *policytest.Report) error {
	if exercised := r.Policies - len(r.Untested); exercised*100 < o.least*r.Policies {
		return exitError{code: exitFindings, err: fmt.Errorf("the tests exercise %d of %s, less than --min-coverage %d%%", exercised, count(r.Policies, "policy", "policies"), o.least)}
	}
	return nil
}

// testExit is 2 if a test could not be judged, 1 if one failed.
func testExit(r *policytest.Report) error {
	switch {
	case slices.ContainsFunc(r.Results, func(t policytest.Result) bool { return len(t.Errors) > 0 }):
		return exitError{code: exitFailure}
	case slices.ContainsFunc(r.Results, func(t policytest.Result) bool { return !t.Passed() }):
		return exitError{code: exitFindings}
	}
	return nil
}
