package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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

// TestSimulationCutOff holds that a simulation that a signal ended says what it has,
// marked as such, and exits as an interrupted command.
func TestSimulationCutOff(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "cluster.yaml")
	text := "apiVersion: v1\nkind: Node\nmetadata: {name: node-1}\nstatus: {allocatable: {cpu: 4, memory: 4Gi, pods: 9}}\n---\n" +
		"apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: shop}\nspec: {containers: [{name: c, image: i}]}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	streams, _, stdout, stderr := genericiooptions.NewTestIOStreams()
	if code := run(ctx, newApp(streams), []string{"simulate", "--snapshot", file}); code != exitInterrupted {
		t.Errorf("exit code %d, want %d", code, exitInterrupted)
	}
	if want := "Cut off before the end: what follows is what was known by then.\n1 pod is not tried.\n"; !strings.HasPrefix(stdout.String(), want) {
		t.Errorf("it says %q, want it to begin with %q", stdout.String(), want)
	}
	if want := "error: the simulation was cut off; what it says is what was known by then\n"; stderr.String() != want {
		t.Errorf("standard error is %q, want %q", stderr.String(), want)
	}
}
