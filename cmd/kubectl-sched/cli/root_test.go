package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

func TestExit(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		err    error
		code   int
		stderr string
	}{
		"success":           {nil, 0, ""},
		"said already":      {exitError{code: 1}, 1, ""},
		"with a message":    {exitError{code: 3, err: errors.New("no")}, 3, "error: no\n"},
		"usage":             {usageError{errors.New("give one")}, 2, "error: give one\nSee 'sched --help' for usage.\n"},
		"findings":          {fmt.Errorf("load: %w", diag.Findings{{Rule: "a/b", Severity: diag.Error, Message: "m"}}), 2, "error: m [a/b]\n\n1 error\n"},
		"any other":         {errors.New("disk full"), 2, "error: disk full\n"},
		"a wrapped verdict": {fmt.Errorf("x: %w", exitError{code: 1}), 1, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			streams, _, _, stderr := genericiooptions.NewTestIOStreams()
			code := newApp(streams).exit(&cobra.Command{Use: "sched"}, test.err)
			if code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			if diff := cmp.Diff(test.stderr, stderr.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestInterrupted holds that a command that a signal ended says so by its exit
// code, whatever it was doing.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	var stdout, stderr bytes.Buffer
	a := newApp(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &stdout, ErrOut: &stderr})
	a.load = func(ctx context.Context, _ policyOptions) (*policy.Placement, diag.Findings) {
		interrupt()
		return nil, diag.Findings{{Rule: "input/interrupted", Severity: diag.Error, Message: ctx.Err().Error()}}
	}
	if code := run(ctx, a, []string{"lint", "-p", "x"}); code != exitInterrupted {
		t.Errorf("exit code %d, want %d\n%s%s", code, exitInterrupted, &stdout, &stderr)
	}
}
