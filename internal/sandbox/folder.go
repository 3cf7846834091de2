package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// folder is the data folder of a sandbox. It is a value with a method a path;
// nothing else joins names to it.
type folder string

func (f folder) file(name string) string { return filepath.Join(string(f), name) }

func (f folder) certificates() pki          { return pki(f.file("pki")) }
func (f folder) kubeconfig() string         { return f.file("kubeconfig") }
func (f folder) userConfig(u string) string { return f.file(u + ".kubeconfig") }
func (f folder) etcdConfig() string         { return f.file("etcd.json") }
func (f folder) etcdData() string           { return f.file("etcd") }
func (f folder) schedulerConfig() string    { return f.file("scheduler.yaml") }
func (f folder) stages() string             { return f.file("kwok.yaml") }
func (f folder) state() string              { return f.file("sandbox.json") }
func (f folder) lockFile() string           { return f.file("lock") }
func (f folder) socket() string             { return f.file("control.sock") }
func (f folder) logs() string               { return f.file("logs") }
func (f folder) log(p Part) string          { return filepath.Join(f.logs(), string(p)+".log") }
func (f folder) scratch() string            { return f.file("run") }

// State is what a sandbox writes into its folder about itself, so that other
// processes find it.
type State struct {
	Name       string      `json:"name"`
	Supervisor int         `json:"supervisor"` // process ID
	Supervised bool        `json:"supervised"` // the supervisor lives
	Server     string      `json:"server"`     // the API server's URL
	Kubeconfig string      `json:"kubeconfig"` // path
	Parts      []PartState `json:"parts"`
}

// PartState is the state of one part.
type PartState struct {
	Part    Part   `json:"part"`
	PID     int    `json:"pid,omitempty"`
	Address string `json:"address,omitempty"` // what it listens on, or empty
	Running bool   `json:"running"`
	// Killed tells a part that was ended on purpose from one that failed.
	Killed bool   `json:"killed,omitempty"`
	Log    string `json:"log"` // path
}

// claim takes the folder for this process and returns a function that gives it
// back. A folder with things in it that are not a sandbox's is refused, and so
// is one whose sandbox runs.
func (f folder) claim() (release func() error, err error) {
	entries, err := os.ReadDir(string(f))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	if len(entries) > 0 && !f.isSandbox() {
		return nil, fmt.Errorf("data folder %s holds files that are not a sandbox's (such as %q); choose another folder, or empty it", f, entries[0].Name())
	}
	if err := os.MkdirAll(string(f), 0o700); err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	lock, held, err := f.lock() // the lock file marks the folder as ours: it comes first
	if err != nil {
		return nil, err
	}
	if !held {
		by := ""
		if state, err := f.readState(); err == nil {
			by = fmt.Sprintf(" (process %d)", state.Supervisor)
		}
		return nil, fmt.Errorf("a sandbox runs in %s already%s; end it with \"sched-sandbox down\", or choose another name or folder", f, by)
	}
	if err := os.MkdirAll(f.logs(), 0o700); err != nil {
		return nil, errors.Join(fmt.Errorf("data folder: %w", err), lock.Close())
	}
	return lock.Close, nil
}

// lock tries to take the folder's lock, which a supervisor holds for as long as
// it lives. It returns false when somebody else has it.
func (f folder) lock() (lock *os.File, held bool, err error) {
	file, err := os.OpenFile(f.lockFile(), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, false, fmt.Errorf("lock data folder: %w", err)
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return file, true, nil
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, false, file.Close()
	}
	return nil, false, fmt.Errorf("lock data folder: %w", errors.Join(err, file.Close()))
}

// isSandbox reports whether the folder is one that claim made.
func (f folder) isSandbox() bool {
	_, err := os.Stat(f.lockFile())
	return err == nil
}

// remove deletes the folder, which must be a sandbox's.
func (f folder) remove() error {
	if !f.isSandbox() {
		return fmt.Errorf("%s is not the folder of a sandbox", f)
	}
	return os.RemoveAll(string(f))
}

func (f folder) readState() (State, error) {
	var state State
	data, err := os.ReadFile(f.state())
	if err != nil {
		return state, err
	}
	if err := json.Unmarshal(data, &state); err != nil {
		return state, fmt.Errorf("read %s: %w", f.state(), err)
	}
	return state, nil
}

// writeState replaces the state file in one step.
func (f folder) writeState(state State) error {
	data, err := json.MarshalIndent(state, "", "  ")
	if err != nil {
		return err
	}
	next := f.state() + ".next"
	if err := os.WriteFile(next, append(data, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(next, f.state())
}

// killLeftovers ends parts that outlived their supervisor, such as one that was
// stopped (SIGSTOP) when the supervisor was killed. A process counts only if its
// command line names this folder: numbers are given to other processes in time.
func (f folder) killLeftovers(state State) error {
	var failed []error
	for _, part := range state.Parts {
		if part.PID == 0 {
			continue
		}
		commandLine, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", part.PID))
		if err != nil || !strings.Contains(string(commandLine), string(f)+string(filepath.Separator)) {
			continue
		}
		if err := syscall.Kill(part.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			failed = append(failed, fmt.Errorf("kill %s (process %d): %w", part.Part, part.PID, err))
		}
	}
	return errors.Join(failed...)
}
