// Package release_test makes a release and holds what is promised of it: that the
// same source gives the same bytes, that krew takes the manifest and installs the
// plugin, that kubectl then runs and completes it, and that the scheduler runs out of
// its image with nothing beside it.
package release_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kubectl-sched/kubectl-sched/internal/release"
	"github.com/kubectl-sched/kubectl-sched/internal/release/gobuild"
	"github.com/kubectl-sched/kubectl-sched/internal/sandbox/sandboxtest"
)

const (
	root    = "../.."
	version = "v1.2.3"
	commit  = "0123456789abcdef0123456789abcdef01234567"
	// patience limits every wait: the machine may be busy with other tests.
	patience = 2 * time.Minute
)

var (
	host   = gobuild.Platform{OS: runtime.GOOS, Arch: runtime.GOARCH}
	at     = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	shared = sandboxtest.Shared{}
	// made is a release of this source, for this machine alone.
	made = &dist{make: func(ctx context.Context, dir string) error { return makeRelease(ctx, root, dir) }}
)

func TestMain(m *testing.M) {
	code := shared.Run(m)
	for _, d := range []*dist{made, krewTools} {
		if err := os.RemoveAll(d.dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	os.Exit(code)
}

// dist is a folder that is filled when a test asks for it first.
type dist struct {
	make func(ctx context.Context, dir string) error
	once sync.Once
	dir  string
	err  error
}

func (d *dist) get(t *testing.T) string {
	t.Helper()
	// Not the test's context: the release outlives the test that comes first.
	d.once.Do(func() { d.fill(context.WithoutCancel(t.Context())) })
	if d.err != nil {
		t.Fatal(d.err)
	}
	return d.dir
}

func (d *dist) fill(ctx context.Context) {
	if d.dir, d.err = os.MkdirTemp("", "release-test-"); d.err == nil {
		d.err = d.make(ctx, d.dir)
	}
}

func makeRelease(ctx context.Context, source, dir string) error {
	o := release.Options{
		Root: source, Version: version, Commit: commit, At: at, Dist: dir,
		Platforms: []gobuild.Platform{host}, Say: func(string, ...any) {},
	}
	return errors.Join(release.Archives(ctx, o), release.Image(ctx, o))
}

// copySource copies what git would take of this source into another folder, which is
// no repository.
func copySource(t *testing.T, to string) {
	t.Helper()
	list := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.SplitSeq(strings.Trim(string(out), "\x00"), "\x00") {
		data, err := os.ReadFile(filepath.Join(root, name))
		if errors.Is(err, os.ErrNotExist) {
			continue // removed, and not committed yet
		}
		if err == nil {
			err = os.MkdirAll(filepath.Join(to, filepath.Dir(name)), 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(to, name), data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
