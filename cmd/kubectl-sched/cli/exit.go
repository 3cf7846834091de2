package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubectl-sched/kubectl-sched/internal/apply"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// The exit codes. Everything above exitFindings means that the command could
// not do what it was asked.
const (
	exitOK          = 0
	exitFindings    = 1 // lint found something; diff found a difference
	exitFailure     = 2 // failures and usage errors
	exitInterrupted = 130
)

// exitError ends a command with an exit code. Without err everything that the
// user must know has been printed already.
type exitError struct {
	code int
	err  error
}

func (e exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e exitError) Unwrap() error { return e.err }

// usageError is a command line that makes no sense.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// exit prints err, unless that has been done, and returns the exit code for it.
func (a *app) exit(cmd *cobra.Command, err error) int {
	var (
		exit     exitError
		usage    usageError
		findings diag.Findings
	)
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &exit):
		if exit.err != nil {
			a.complain("error: %v", exit.err)
		}
		return exit.code
	case errors.As(err, &findings):
		a.printFindings(findings)
	case errors.As(err, &usage):
		a.complain("error: %v\nSee '%s --help' for usage.", usage.error, cmd.CommandPath())
	default:
		if f, ok := findingOf(err); ok && !errors.Is(err, context.Canceled) {
			a.printFindings(diag.Findings{f})
			break
		}
		a.complain("error: %v", err)
	}
	return exitFailure
}

// findingOf makes a finding of an error about a cluster or a file that nothing nearer
// to its cause has made one of, so that what a user must mend there is said in the
// same way; false for others.
func findingOf(err error) (diag.Finding, bool) {
	f := diag.Finding{Severity: diag.Error, Message: err.Error()}
	var (
		status  apierrors.APIStatus
		request *url.Error
		dial    *net.OpError
		file    *fs.PathError
		link    *os.LinkError
	)
	switch {
	case errors.As(err, &status), errors.As(err, &request), errors.As(err, &dial), clientcmd.IsConfigurationInvalid(err), clientcmd.IsContextNotFound(err), clientcmd.IsEmptyConfig(err):
		f.Rule = "input/cluster"
	case errors.As(err, &file), errors.As(err, &link):
		f.Rule = "output/file"
	default:
		return f, false
	}
	return f, true
}

// interrupted returns the error to print of a command that the user's own signal
// ended: one that says how to go on.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() == nil || !errors.Is(err, context.Canceled) {
		return err
	}
	var stopped *apply.StoppedError
	if errors.As(err, &stopped) {
		return exitError{code: exitInterrupted, err: stopped}
	}
	return exitError{code: exitInterrupted, err: errors.New("interrupted; run the command again to finish what it began")}
}

// failOn prints the findings on stderr and returns the error that ends the
// command if any of them is of severity Error; then nothing may be written.
func (a *app) failOn(findings diag.Findings) error {
	a.printFindings(findings)
	if findings.HasErrors() {
		return exitError{code: exitFailure}
	}
	return nil
}
