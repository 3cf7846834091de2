package load

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// Limits says what an evaluation may use before it is ended. A zero field means
// its default.
type Limits struct {
	// Timeout is in wall time. Flag: --load-timeout.
	Timeout time.Duration `json:"timeout,omitempty"`
	// Memory is in bytes. Flag: --load-memory.
	Memory uint64 `json:"memory,omitempty"`
}

// The limits of Isolated, where none are given. The largest fleets take a few
// seconds and a few hundred MiB.
const (
	DefaultTimeout = 30 * time.Second
	DefaultMemory  = 1 << 30
)

func (l Limits) withDefaults() Limits {
	return Limits{Timeout: cmp.Or(l.Timeout, DefaultTimeout), Memory: cmp.Or(l.Memory, DefaultMemory)}
}

// request is what the parent writes to the child's standard input, as JSON.
type request struct {
	Options Options `json:"options"`
	Limits  Limits  `json:"limits"`
}

// message is one line of what the child writes to its standard output. The last
// one has a Result or an Exceeded.
type message struct {
	Begin    string   `json:"begin,omitempty"` // a folder's evaluation begins
	End      string   `json:"end,omitempty"`   // and ends
	Exceeded string   `json:"exceeded,omitempty"`
	Result   *outcome `json:"result,omitempty"`
}

// What a child may exceed.
const (
	exceededTime   = "time"
	exceededMemory = "memory"
)

// outcome is what an evaluation came to.
type outcome struct {
	Placement *wirePlacement `json:"placement,omitempty"`
	Findings  diag.Findings  `json:"findings,omitempty"`
}

// killGrace is how much longer than its limit a child is waited for: it ends
// itself, with a better message, unless it is too busy to.
const killGrace = 2 * time.Second

// Isolated is Evaluate in a child process, which command starts and which must
// call Serve. The child is killed when it exceeds a limit or ctx is cancelled;
// a limit is a finding of rule "input/limit". Unless the registry is allowed,
// the child sees no environment. An empty command is an error finding.
func Isolated(ctx context.Context, o Options, limits Limits, command []string) (*policy.Placement, diag.Findings) {
	limits = limits.withDefaults()
	if len(command) == 0 {
		return nil, diag.Findings{inputError("input/isolation", "", "there is no command to evaluate policies with")}
	}
	if o.Dir == "" {
		dir, err := os.Getwd()
		if err != nil {
			return nil, diag.Findings{inputError("input/path", "", "the working directory cannot be told: %v", err)}
		}
		o.Dir = dir
	}
	input, err := json.Marshal(request{o, limits})
	if err != nil {
		return nil, diag.Findings{inputError("input/isolation", "", "%v", err)}
	}
	bounded, cancel := context.WithTimeout(ctx, limits.Timeout+killGrace)
	defer cancel()
	cmd := exec.CommandContext(bounded, command[0], command[1:]...)
	cmd.Stdin = bytes.NewReader(input)
	cmd.Env = childEnvironment(o)
	cmd.WaitDelay = time.Second
	var stderr head
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, diag.Findings{inputError("input/isolation", "", "start the evaluation: %v", err)}
	}
	if err := cmd.Start(); err != nil {
		return nil, diag.Findings{inputError("input/isolation", "", "start the evaluation: %v", err)}
	}
	last, running, readErr := follow(stdout)
	waitErr := cmd.Wait()
	if last.Result != nil {
		return last.Result.Placement.placement(), last.Result.Findings
	}
	if err := ctx.Err(); err != nil {
		return nil, diag.Findings{inputError("input/interrupted", "", "loading the policies was interrupted: %v", err)}
	}
	exceeded := last.Exceeded
	if exceeded == "" && bounded.Err() != nil {
		exceeded = exceededTime
	}
	return nil, diag.Findings{limitFinding(o, limits, exceeded, running, stderr.String(), errors.Join(waitErr, readErr))}
}

// follow reads a child's messages. It returns the last one, and the folders
// whose evaluation had begun and not ended.
func follow(r io.Reader) (last message, running []string, err error) {
	d := json.NewDecoder(r)
	for {
		var m message
		if err := d.Decode(&m); err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return last, running, err
		}
		last = m
		if m.Begin != "" {
			running = append(running, m.Begin)
		}
		if i := slices.Index(running, m.End); i >= 0 {
			running = slices.Delete(running, i, i+1)
		}
	}
}

// limitFinding says why a child ended without a result.
func limitFinding(o Options, limits Limits, exceeded string, running []string, stderr string, err error) diag.Finding {
	slices.Sort(running)
	where := ""
	if len(running) > 0 {
		where = running[0]
	} else if len(o.Paths) > 0 {
		where = o.Paths[0]
	}
	f := inputError("input/limit", where, "")
	of := "the policies"
	if len(running) > 1 {
		of = "one of the folders " + strings.Join(running, ", ")
	}
	switch {
	case exceeded == exceededTime:
		f.Message = fmt.Sprintf("evaluating %s took longer than %v; look for a comprehension or reference that grows without end, or raise the limit with --load-timeout", of, limits.Timeout)
	case exceeded == exceededMemory:
		f.Message = fmt.Sprintf("evaluating %s took more than %d MiB of memory; look for a comprehension or reference that grows without end, or raise the limit with --load-memory", of, limits.Memory>>20)
	case strings.Contains(stderr, "stack overflow"), strings.Contains(stderr, "stack exceeds"):
		f.Message = fmt.Sprintf("evaluating %s went too deep for %d MiB of memory; look for fields nested without end, or raise the limit with --load-memory", of, limits.Memory>>20)
	case strings.Contains(stderr, "out of memory"):
		f.Message = fmt.Sprintf("evaluating %s took more memory than this machine gives; lower the limit with --load-memory to find out sooner, or simplify the policies", of)
	default:
		f.Rule = "input/isolation"
		f.Message = fmt.Sprintf("evaluating %s ended without a result: %v", of, cmp.Or(err, errors.New("the child process said nothing")))
		if line := firstLine(stderr); line != "" {
			f.Message += ": " + line
		}
	}
	return f
}

// firstLine returns the first line of what a child complained about.
func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

// childEnvironment returns the environment of the child. Only a registry needs
// any: its address, credentials and proxies.
func childEnvironment(o Options) []string {
	if o.AllowRegistry {
		return os.Environ()
	}
	env := []string{"GOTRACEBACK=none"}
	for _, name := range []string{"GOMAXPROCS", "GOCOVERDIR"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	if runtime.GOOS == "windows" {
		env = append(env, "SYSTEMROOT="+os.Getenv("SYSTEMROOT"))
	}
	return env
}

// head keeps the beginning of what is written to it: a crash says first what
// happened, and then much about where.
type head struct{ bytes.Buffer }

// maxHead is how many bytes a head keeps.
const maxHead = 16 << 10

// Write keeps what there is room for, and accepts all.
func (h *head) Write(p []byte) (int, error) {
	if room := maxHead - h.Len(); room > 0 {
		h.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
