package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// tailLines is how much of a part's log an error shows.
const tailLines = 12

// process is a part that was started. It is over when done is closed.
type process struct {
	part  Part
	log   string // path of the log file
	start int64  // where this process's lines begin in it
	cmd   *exec.Cmd
	done  chan struct{}
	err   error // how it ended; read it after done
}

// startProcess runs command with the given environment added, its output
// appended to the file log, and lifeline as its file descriptor 3. It is a
// process group of its own, so that Ctrl-C reaches the supervisor alone, which
// then ends the parts in order.
func startProcess(part Part, command []string, env []string, log string, lifeline *os.File) (*process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	offset, err := out.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.ExtraFiles = []*os.File{lifeline}
	cmd.Env = append(append(os.Environ(), env...), lifelineEnv+"=3")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", part, err)
	}
	p := &process{part: part, log: log, start: offset, cmd: cmd, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// running reports whether the process has not ended yet.
func (p *process) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// kill ends the process with SIGKILL and returns when it is gone.
func (p *process) kill() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill %s: %w", p.part, err)
	}
	<-p.done
	return nil
}

// failure returns what is known of a part that failed for the given reason: the
// last lines that it wrote and where the rest is.
func (p *process) failure(reason error) error {
	message := fmt.Sprintf("%s: %v", p.part, reason)
	if lines := p.tail(); lines != "" {
		message += "; the last lines of its log:\n" + lines
	}
	return fmt.Errorf("%s\nthe whole log is %s", message, p.log)
}

// exitReason says how a process ended that should not have.
func (p *process) exitReason() error {
	if p.err == nil {
		return errors.New("ended by itself")
	}
	return fmt.Errorf("ended: %w", p.err)
}

// tail returns the last lines that this process wrote, indented.
func (p *process) tail() string {
	file, err := os.Open(p.log)
	if err != nil {
		return ""
	}
	defer file.Close()
	const window = 64 << 10 // bytes: lines of Kubernetes are long
	from := p.start
	if info, err := file.Stat(); err == nil && info.Size()-window > from {
		from = info.Size() - window
	}
	data, err := io.ReadAll(io.NewSectionReader(file, from, window))
	if err != nil {
		return ""
	}
	lines := strings.Split(string(bytes.TrimSpace(data)), "\n")
	lines = lines[max(0, len(lines)-tailLines):]
	for i, line := range lines {
		lines[i] = "  " + line
	}
	return strings.TrimRight(strings.Join(lines, "\n"), " ")
}
