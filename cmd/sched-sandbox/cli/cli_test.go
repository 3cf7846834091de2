package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kubectl-sched/kubectl-sched/internal/sandbox"
)

// program runs the built binary on a folder of its own.
type program struct {
	t    *testing.T
	path string
	home string
}

func newProgram(t *testing.T) *program {
	t.Helper()
	path, err := sandbox.Binary(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p := &program{t: t, path: path, home: t.TempDir()}
	// Whatever a test leaves undone, nothing of it may go on running.
	t.Cleanup(func() {
		for _, dir := range p.sandboxes() {
			remote, err := sandbox.Find(dir)
			if err == nil {
				err = remote.Stop(context.WithoutCancel(t.Context()), false)
			}
			if err != nil {
				t.Errorf("clean up: %v", err)
			}
		}
	})
	return p
}

func (p *program) sandboxes() []string {
	dirs, err := filepath.Glob(filepath.Join(p.home, "*"))
	if err != nil {
		p.t.Fatal(err)
	}
	return dirs
}

func (p *program) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(p.t.Context(), p.path, args...)
	cmd.Env = append(os.Environ(), "SCHED_SANDBOX_HOME="+p.home)
	return cmd
}

// run runs a command line and returns its exit code and outputs.
func (p *program) run(args ...string) (code int, out, errs string) {
	p.t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := p.command(args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		p.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()
}

// mustRun is run for command lines that must succeed; it returns the output.
func (p *program) mustRun(args ...string) string {
	p.t.Helper()
	code, out, errs := p.run(args...)
	if code != 0 {
		p.t.Fatalf("%v: exit code %d\n%s%s", args, code, out, errs)
	}
	return out
}

// state returns what status says.
func (p *program) state(name string) sandbox.State {
	p.t.Helper()
	var state sandbox.State
	if err := json.Unmarshal([]byte(p.mustRun("status", "-o", "json", "--name", name)), &state); err != nil {
		p.t.Fatal(err)
	}
	return state
}

// noneLeft fails the test if, after a moment, a process still works in home.
func (p *program) noneLeft() {
	p.t.Helper()
	var found string
	err := wait.PollUntilContextTimeout(p.t.Context(), 50*time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) {
		processes, err := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, path := range processes {
			if line, err := os.ReadFile(path); err == nil && bytes.Contains(line, []byte(p.home+"/")) {
				found = path + ": " + string(bytes.ReplaceAll(line, []byte{0}, []byte(" ")))
				return false, nil
			}
		}
		return true, err
	})
	if err != nil {
		p.t.Errorf("a process is left: %s", found)
	}
}

// TestTwoAtOnce runs two sandboxes in the background, each with nodes and a part
// that crashes, and ends one of them without touching the other.
func TestTwoAtOnce(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	file := filepath.Join(t.TempDir(), "pools.yaml")
	if err := os.WriteFile(file, []byte("pools:\n- {name: a, count: 3, zones: [x, y]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.mustRun("up", "--detach", "--name", "one", "--nodes", file)
	p.mustRun("up", "-d", "--name", "two")
	if one, two := p.state("one"), p.state("two"); one.Server == two.Server {
		t.Errorf("both serve at %s", one.Server)
	}
	if got := p.mustRun("nodes", "--name", "one"); !strings.Contains(got, "a      3       3       2") {
		t.Errorf("nodes of one:\n%s", got)
	}
	if got := p.mustRun("nodes", "--name", "two"); strings.Contains(got, "a ") {
		t.Errorf("nodes of two:\n%s", got)
	}
	kubeconfig := strings.TrimSpace(p.mustRun("kubeconfig", "--name", "two"))
	content, err := os.ReadFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if got := p.mustRun("kubeconfig", "--name", "two", "--print"); got != string(content) {
		t.Error("--print prints something else than the file")
	}
	if code, _, errs := p.run("up", "--name", "one"); code != 2 || !strings.Contains(errs, "runs in") {
		t.Errorf("up of one that is up: exit code %d, %s", code, errs)
	}

	p.mustRun("kill", "kube-scheduler", "--name", "two")
	for _, part := range p.state("two").Parts {
		if part.Running == (part.Part == sandbox.Scheduler) {
			t.Errorf("after kill: %+v", part)
		}
	}
	p.mustRun("start", "kube-scheduler", "--name", "two")
	p.mustRun("down", "--name", "one")
	for _, part := range p.state("two").Parts {
		if !part.Running {
			t.Errorf("after start, and down of the other: %+v", part)
		}
	}
	p.mustRun("down", "--name", "two")
	p.noneLeft()
	if left := p.sandboxes(); len(left) != 0 {
		t.Errorf("folders are left: %v", left)
	}
}

// TestSupervisorEnds ends the supervisor in each way there is, and each time
// looks for processes that are left.
func TestSupervisorEnds(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(signal.String(), func(t *testing.T) {
			p := newProgram(t)
			read, write, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer read.Close()
			cmd := p.command("up")
			cmd.Stderr = write
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			_ = write.Close()
			if err := untilRead(read, "runs until Ctrl-C"); err != nil {
				t.Fatal(err)
			}
			// A part that hangs must go too.
			state := p.state("sandbox")
			for _, part := range state.Parts {
				if part.Part == sandbox.ControllerManager {
					if err := syscall.Kill(part.PID, syscall.SIGSTOP); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			err = cmd.Wait()
			if signal != syscall.SIGKILL {
				if err != nil {
					t.Errorf("the supervisor ended with %v", err)
				}
				p.noneLeft()
			}
			if code, out, errs := p.run("status"); code != 0 || strings.Contains(out, "running") {
				t.Errorf("status: %d\n%s%s", code, out, errs)
			}
			p.mustRun("down")
			p.noneLeft()
		})
	}
}

// untilRead returns when text was read.
func untilRead(from *os.File, text string) error {
	var seen []byte
	buffer := make([]byte, 4<<10)
	for !bytes.Contains(seen, []byte(text)) {
		n, err := from.Read(buffer)
		if err != nil {
			return fmt.Errorf("%w after %s", err, seen)
		}
		seen = append(seen, buffer[:n]...)
	}
	return nil
}

// TestWrongUse holds the messages of mistakes, and that none leaves anything.
func TestWrongUse(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	occupied := t.TempDir()
	if err := os.WriteFile(filepath.Join(occupied, "thesis.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	pools := filepath.Join(t.TempDir(), "pools.yaml")
	if err := os.WriteFile(pools, []byte("pools:\n- name: a\n  cuont: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"frobnicate"}, `unknown command "frobnicate"`},
		{[]string{"up", "--frobnicate"}, "unknown flag"},
		{[]string{"up", "--nodes", pools}, `pools.yaml:3:3: a pool has no field "cuont"; did you mean "count"?`},
		{[]string{"up", "--detach", "--nodes", pools}, `did you mean "count"?`},
		{[]string{"up", "--data-dir", occupied}, `"thesis.txt"`},
		{[]string{"up", "--detach", "--data-dir", occupied}, `"thesis.txt"`},
		{[]string{"up", "--extra-arg", "kube-proxy=--v=1"}, `no part is called "kube-proxy"`},
		{[]string{"up", "--extra-arg", "kube-apiserver"}, "PART=ARGUMENT"},
		{[]string{"up", "--name", "Up/../Down"}, "--name"},
		{[]string{"up", "--scheduler-config", pools}, `"KubeSchedulerConfiguration"`},
		{[]string{"up", "--service-cluster-ip-range", "everything"}, "invalid CIDR"},
		{[]string{"down", "--data-dir", occupied}, "no sandbox in"},
		{[]string{"status", "--name", "absent"}, "no sandbox in"},
		{[]string{"kubeconfig", "--name", "absent"}, "no sandbox in"},
		{[]string{"nodes", "--name", "absent"}, "no sandbox in"},
		{[]string{"--name", "absent", "kubectl", "get", "nodes"}, "absent; start one"},
		{[]string{"--data-dir", occupied, "kubectl", "get", "nodes"}, "no sandbox in " + occupied},
		{[]string{"kill", "kubelet"}, "the parts are etcd,"},
		{[]string{"status", "-o", "xml"}, "json"},
	} {
		code, _, errs := p.run(test.args...)
		if code != 2 || !strings.Contains(errs, test.want) {
			t.Errorf("%v: exit code %d; it does not say %q:\n%s", test.args, code, test.want, errs)
		}
	}
	p.noneLeft()
}

// TestHelp holds that help shows no flag that a library of the control plane has
// brought with it.
func TestHelp(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	for _, args := range [][]string{{"--help"}, {"up", "--help"}} {
		code, out, errs := p.run(args...)
		if code != 0 || strings.Contains(out, "--version") || !strings.Contains(out, "--name") {
			t.Errorf("%v: exit code %d\n%s%s", args, code, out, errs)
		}
	}
}
