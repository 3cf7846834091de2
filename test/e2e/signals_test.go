package e2e

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// stuckPolicy asks for nodes that there are none of.
const stuckPolicy = `package placement

policies: stuck: {
	workloads: {namespaces: ["NAMESPACE"], names: ["a"]}
	nodes: require: labels: "no-such-label": "anywhere"
}
`

// TestTwoSignalsAtOnce interrupts a wait by SIGINT and SIGTERM together, as a
// terminal and whoever runs the command send them. The command ends in good
// order: it has said what it waits for, and says how to go on.
func TestTwoSignalsAtOnce(t *testing.T) {
	t.Parallel()
	j := newJob(t, theWorld(t), "signals")
	if err := os.WriteFile(j.path("placement/p.cue"), []byte(strings.ReplaceAll(stuckPolicy, "NAMESPACE", j.set)), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := j.command(ctx, "direct", "apply", "--set", j.set, "--wait")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	sent := false
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		said.WriteString(lines.Text() + "\n")
		if !sent && strings.Contains(strings.Join(strings.Fields(said.String()), " "), "the scheduler says: 0/") {
			sent = true
			for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
				if err := cmd.Process.Signal(s); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 130 {
		t.Errorf("it ended with %v", err)
	}
	want := "error: interrupted: the wait for rollouts has stopped, and they go on by themselves; run the command again to wait for them\n"
	if !strings.HasSuffix(said.String(), want) || !strings.Contains(strings.Join(strings.Fields(said.String()), " "), `(policy "stuck" at placement/p.cue:5:`) {
		t.Errorf("it said:\n%s", said.String())
	}
}
