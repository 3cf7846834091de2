//go:build unix

package cli_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// endsWithin is how long the plugin may take to end after a first signal. The
// promise is two seconds on a machine of its own.
const endsWithin = 15 * time.Second

const signalManifest = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web-%d, namespace: shop}
spec:
  replicas: 3
  selector: {matchLabels: {app: web-%[1]d}}
  template:
    metadata: {labels: {app: web-%[1]d, tier: web}}
    spec:
      containers: [{name: main, image: "example.com/web:1"}]
---
`

const signalPolicy = `package placement

policies: web: {
	workloads: namespaces: ["shop"]
	nodes: require: labels: "example.com/class": "web"
	spread: node: {maxSkew: 1, strength: "prefer"}
}
`

// TestFirstSignalEndsReading interrupts verbs while they read a standard input
// that never ends.
func TestFirstSignalEndsReading(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"dash":      {"compile", "-f", "-"},
		"dev-stdin": {"compile", "-f", "/dev/stdin"},
		"lint":      {"lint", "-f", "-"},
		"fmt":       {"fmt", "-"},
		"fn":        {"fn"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// More than a pipe holds, so that it was read from when the write is done.
			interruptAfter(t, args, strings.Repeat("# more\n", 50_000), false, 0)
		})
	}
}

// TestFirstSignalEndsCompiling interrupts the work on ten thousand manifests at
// several moments.
func TestFirstSignalEndsCompiling(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&text, signalManifest, i)
	}
	for _, after := range []time.Duration{0, 300 * time.Millisecond, time.Second} {
		t.Run(after.String(), func(t *testing.T) {
			t.Parallel()
			interruptAfter(t, []string{"compile", "-f", "-"}, text.String(), true, after)
		})
	}
}

// TestFirstSignalEndsWriting interrupts a write that nobody reads.
func TestFirstSignalEndsWriting(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for i := range 500 {
		fmt.Fprintf(&text, signalManifest, i)
	}
	interruptAfter(t, []string{"compile", "-f", "-"}, text.String(), true, 2*time.Second)
}

// interruptAfter runs the plugin, gives it the text, and some time later sends it
// one SIGTERM.
func interruptAfter(t *testing.T, args []string, text string, end bool, after time.Duration) {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "placement"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "placement", "p.cue"), []byte(signalPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "kubectl-sched", args...)
	cmd.Dir = dir
	var said strings.Builder
	cmd.Stderr = &said
	// The output goes into a pipe that nobody reads, so that it cannot end before.
	out, outWriter, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd.Stdout = outWriter
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = outWriter.Close()
	if _, err := io.WriteString(in, text); err != nil {
		t.Fatal(err)
	}
	if end {
		_ = in.Close()
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	<-time.After(after)
	start := time.Now()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 130 {
			t.Errorf("it ended with %v:\n%s", err, said.String())
		}
		t.Logf("ended after %s", time.Since(start).Round(time.Millisecond))
	case <-time.After(endsWithin):
		_ = cmd.Process.Kill()
		t.Fatalf("it was still at work %s after the signal", endsWithin)
	}
}
