package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

type lintFlags struct {
	pipelineFlags
	output string
}

func newLintCommand(a *app) *cobra.Command {
	f := &lintFlags{pipelineFlags: newPipelineFlags(a)}
	cmd := &cobra.Command{
		Use:     "lint [-p POLICIES] [-f MANIFESTS]",
		Short:   "Check policies, and what they come to for manifests",
		GroupID: groupWrite,
		Args:    cobra.NoArgs,
		RunE:    runE(func([]string) (*lintOptions, error) { return f.toOptions(a) }),
	}
	f.addTo(cmd.Flags())
	cmd.Flags().StringVarP(&f.output, "output", "o", "text", "Format: text or json")
	return cmd
}

type lintOptions struct {
	app      *app
	pipeline *pipeline
	output   string
}

func (f *lintFlags) toOptions(a *app) (*lintOptions, error) {
	p, err := f.pipelineFlags.toOptions(a)
	if err != nil {
		return nil, err
	}
	return &lintOptions{app: a, pipeline: p, output: f.output}, nil
}

// Validate implements options.
func (o *lintOptions) Validate() error { return nil }

// Run implements options.
func (o *lintOptions) Run(ctx context.Context) error {
	_, findings, err := o.pipeline.compilePlans(ctx)
	if err != nil {
		return err
	}
	o.app.printFindings(findings)
	return lintExit(findings)
}

// lintExit is 2 if anything could not be read, 1 for errors and warnings.
func lintExit(findings diag.Findings) error {
	code := exitOK
	for _, f := range findings {
		switch {
		case f.Severity == diag.Error && strings.HasPrefix(f.Rule, "input/"):
			return exitError{code: exitFailure}
		case f.Severity != diag.Info:
			code = exitFindings
		}
	}
	if code == exitOK {
		return nil
	}
	return exitError{code: code}
}

// printFindings prints the findings on stderr as text.
func (a *app) printFindings(findings diag.Findings) {
	for _, f := range findings {
		fmt.Fprintf(a.ErrOut, "%s: %s\n", f.Severity, f)
	}
}
