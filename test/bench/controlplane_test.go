package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/kubectl-sched/kubectl-sched/internal/sandbox"
	"github.com/kubectl-sched/kubectl-sched/internal/sandbox/sandboxtest"
)

// role makes this program the benchmark itself when a test starts it, or one that runs the
// benchmark and tells it nothing, as "go run" does.
const role = "BENCH_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "bench":
		main()
	case "runner":
		bench := exec.Command(os.Args[0], os.Args[1:]...)
		bench.Env = append(os.Environ(), role+"=bench")
		if err := bench.Run(); err != nil {
			os.Exit(1)
		}
	default:
		m.Run()
	}
}

// TestInterrupted holds that a benchmark which is told to end takes its control plane and
// the scheduler with it, whether that is still starting or long there.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	binary, err := sandbox.Binary(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	scheduler, err := sandboxtest.SchedulerBinary()
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		role   string
		signal os.Signal
		when   string // there is this file
	}{
		"as it starts":   {"bench", os.Interrupt, "sandbox/sandbox.json"},
		"as it measures": {"bench", syscall.SIGTERM, "bench-1.log"},
		"who runs it":    {"runner", syscall.SIGTERM, "bench-1.log"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			bench := exec.Command(os.Args[0], gangsCompared)
			bench.Env = append(os.Environ(), role+"="+test.role, "TMPDIR="+dir, sandbox.BinaryEnv+"="+binary, "SCHED_SCHEDULER_BIN="+scheduler)
			if err := bench.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- bench.Wait() }()
			t.Cleanup(func() { _ = bench.Process.Kill() }) // it has ended, or the test has failed
			compared := filepath.Join(dir, "sched-bench*", "compared")
			eventually(t, test.when+" is there", func() bool {
				found, err := filepath.Glob(filepath.Join(compared, test.when))
				return err == nil && len(found) == 1
			})
			parts := partsOf(t, filepath.Join(compared, "sandbox", "sandbox.json"))
			if err := bench.Process.Signal(test.signal); err != nil {
				t.Fatal(err)
			}
			select {
			case err := <-ended:
				var exit *exec.ExitError
				if !errors.As(err, &exit) || test.role == "bench" && exit.ExitCode() != 1 {
					t.Errorf("it ends with %v", err)
				}
			case <-time.After(time.Minute):
				t.Fatal("it goes on")
			}
			if test.role == "runner" { // it has ended; the benchmark has yet to see that
				eventually(t, "the benchmark's folder is gone", func() bool {
					left, err := os.ReadDir(dir)
					return err == nil && len(left) == 0
				})
			}
			for part, pid := range parts {
				if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
					t.Errorf("%s, process %d, is still there: %v", part, pid, err)
				}
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("its folder has %v, %v", left, err)
			}
		})
	}
}

// partsOf returns the processes of the sandbox with that state.
func partsOf(t *testing.T, pattern string) map[sandbox.Part]int {
	t.Helper()
	parts := map[sandbox.Part]int{}
	eventually(t, "the state names a process", func() bool {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) != 1 {
			return false
		}
		data, err := os.ReadFile(files[0])
		var state sandbox.State
		if err != nil || json.Unmarshal(data, &state) != nil {
			return false // it is being written
		}
		for _, p := range state.Parts {
			if p.Running {
				parts[p.Part] = p.PID
			}
		}
		return len(parts) > 0
	})
	return parts
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.After(2 * time.Minute)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-deadline:
			t.Fatalf("not in time: %s", what)
		case <-tick.C:
		}
	}
}
