package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// stopTimeout limits how long Remote.Stop waits for a supervisor to end by
// itself before it is killed.
const stopTimeout = 20 * time.Second

// Serve answers other processes of the same user, which find this sandbox
// through its folder (Find), until ctx is over or one of them asks for the end.
// It does not stop the sandbox: that is the caller's to do.
func (s *Sandbox) Serve(ctx context.Context) error {
	listener, err := s.folder.listen()
	if err != nil {
		return fmt.Errorf("serve control socket: %w", err)
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	server := &http.Server{Handler: s.control(end), ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve control socket: %w", err)
	case <-ctx.Done():
	}
	// Let the answer to a request for the end get out.
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := server.Shutdown(closing); err != nil {
		return server.Close()
	}
	return nil
}

// control returns the handler of the requests of Remote.
func (s *Sandbox) control(end func()) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /state", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		// The other side sees a short answer if this fails; there is nobody else to tell.
		_ = json.NewEncoder(w).Encode(s.State())
	})
	onPart := func(do func(context.Context, Part) error) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			part, err := ParsePart(r.PathValue("part"))
			if err == nil {
				err = do(r.Context(), part)
			}
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
			}
		}
	}
	mux.HandleFunc("POST /kill/{part}", onPart(func(_ context.Context, part Part) error { return s.Kill(part) }))
	mux.HandleFunc("POST /start/{part}", onPart(s.StartPart))
	mux.HandleFunc("POST /end", func(http.ResponseWriter, *http.Request) { end() })
	return mux
}

// Remote is a sandbox that another process started.
type Remote struct {
	folder folder
	client *http.Client
}

// Find returns the sandbox whose folder is dir. It need not run any more; there
// must have been one.
func Find(dir string) (*Remote, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	f := folder(dir)
	if !f.isSandbox() {
		return nil, fmt.Errorf("no sandbox in %s; start one with \"sched-sandbox up\"", f)
	}
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return f.dial(ctx) }}
	return &Remote{folder: f, client: &http.Client{Transport: transport}}, nil
}

// State returns the state of the sandbox. Of one whose supervisor is gone, it is
// the last known state with no part running.
func (r *Remote) State(ctx context.Context) (State, error) {
	running, err := r.Running()
	if err != nil {
		return State{}, err
	}
	if !running {
		state, err := r.folder.readState()
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return state, err
		}
		state.Supervised = false
		for i := range state.Parts {
			state.Parts[i].Running = false
		}
		return state, nil
	}
	body, err := r.call(ctx, http.MethodGet, "/state")
	if err != nil {
		return State{}, err
	}
	var state State
	if err := json.Unmarshal(body, &state); err != nil {
		return state, fmt.Errorf("read state of sandbox: %w", err)
	}
	return state, nil
}

// Running reports whether the supervisor lives.
func (r *Remote) Running() (bool, error) {
	if !r.folder.isSandbox() {
		return false, nil
	}
	lock, free, err := r.folder.lock()
	if err != nil || !free {
		return !free, err
	}
	return false, lock.Close()
}

// Kill ends part with SIGKILL.
func (r *Remote) Kill(ctx context.Context, part Part) error {
	_, err := r.call(ctx, http.MethodPost, "/kill/"+string(part))
	return err
}

// StartPart starts part again and returns when it is ready.
func (r *Remote) StartPart(ctx context.Context, part Part) error {
	_, err := r.call(ctx, http.MethodPost, "/start/"+string(part))
	return err
}

// Kubeconfig returns the path of the sandbox's kubeconfig.
func (r *Remote) Kubeconfig() string { return r.folder.kubeconfig() }

// Stop ends the sandbox, however it fares, and removes its folder unless keep is
// set. It returns when no process of it is left.
func (r *Remote) Stop(ctx context.Context, keep bool) error {
	state, err := r.folder.readState()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	running, err := r.Running()
	if err != nil {
		return err
	}
	if running {
		if err := r.endSupervisor(ctx, state); err != nil {
			return err
		}
	}
	if err := r.folder.killLeftovers(state); err != nil {
		return err
	}
	if keep {
		return nil
	}
	return r.folder.remove()
}

// endSupervisor asks the supervisor to end, and makes it if it does not.
func (r *Remote) endSupervisor(ctx context.Context, state State) error {
	gone := func(context.Context) error {
		if running, err := r.Running(); err != nil || running {
			return errors.Join(err, fmt.Errorf("process %d still runs", state.Supervisor))
		}
		return nil
	}
	asking, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	_, asked := r.call(asking, http.MethodPost, "/end")
	if asked == nil && waitFor(asking, "the end of the sandbox", gone) == nil {
		return nil
	}
	if state.Supervisor <= 1 || state.Supervisor == os.Getpid() {
		return fmt.Errorf("end the sandbox: it does not answer: %w", asked)
	}
	// The folder's lock is held, so the process that took it still has its number.
	supervisor, err := os.FindProcess(state.Supervisor)
	if err != nil {
		return err
	}
	if err := supervisor.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("end the sandbox: %w", err)
	}
	killing, cancelKilling := context.WithTimeout(ctx, stopTimeout)
	defer cancelKilling()
	return waitFor(killing, "the end of the sandbox", gone)
}

// call sends one request to the supervisor and returns the body of its answer.
func (r *Remote) call(ctx context.Context, method, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://sandbox"+path, nil)
	if err != nil {
		return nil, err
	}
	response, err := r.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("the sandbox in %s does not answer; it may have ended, or still be starting: %w", r.folder, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, errors.New(strings.TrimSpace(string(body)))
	}
	return body, nil
}
