package sandbox

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestClaimRefusesOthersFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mine := filepath.Join(dir, "thesis.txt")
	if err := os.WriteFile(mine, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := folder(dir).claim(); err == nil || !strings.Contains(err.Error(), `"thesis.txt"`) {
		t.Errorf("claim: %v", err)
	}
	if err := folder(dir).remove(); err == nil {
		t.Error("remove accepts a folder that is no sandbox's")
	}
	if _, err := Find(dir); err == nil {
		t.Error("Find accepts a folder that is no sandbox's")
	}
	if _, err := os.Stat(mine); err != nil {
		t.Error(err)
	}
}

func TestClaimOnce(t *testing.T) {
	t.Parallel()
	f := folder(filepath.Join(t.TempDir(), "new", "sandbox"))
	release, err := f.claim()
	if err != nil {
		t.Fatal(err)
	}
	if err := f.writeState(State{Supervisor: 4711}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.claim(); err == nil || !strings.Contains(err.Error(), "runs in") || !strings.Contains(err.Error(), "4711") {
		t.Errorf("second claim: %v", err)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	release, err = f.claim()
	if err != nil {
		t.Fatalf("claim after release: %v", err)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
}

// TestControlOfDeepFolder talks to a sandbox whose folder's path does not fit
// into the address of a socket.
func TestControlOfDeepFolder(t *testing.T) {
	t.Parallel()
	f := folder(filepath.Join(t.TempDir(), strings.Repeat("deep/", 30)))
	release, err := f.claim()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = release() }()
	s := &Sandbox{options: Options{Name: "deep"}, folder: f, ports: map[Part]*port{APIServer: {number: 1}}}
	if err := f.writeState(s.State()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx) }()
	remote, err := Find(string(f))
	if err != nil {
		t.Fatal(err)
	}
	var state State
	if err := waitFor(ctx, "an answer", func(ctx context.Context) (err error) {
		state, err = remote.State(ctx)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if state.Name != "deep" || !state.Supervised {
		t.Errorf("state: %+v", state)
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
