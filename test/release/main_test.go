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
	// patience limits every wait: the machine may be busy with other tests.
	patience = 2 * time.Minute
)

var (
	host   = gobuild.Platform{OS: runtime.GOOS, Arch: runtime.GOARCH}
	at     = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	shared = sandboxtest.Shared{}
	// tagged is this source as a repository with one commit, which is tagged.
	tagged = &dist{make: tagSource}
	// made is a release of this source, for this machine alone.
	made = &dist{make: func(ctx context.Context, dir string) error {
		commit, err := tagged.commit(ctx)
		if err != nil {
			return err
		}
		return makeRelease(ctx, root, dir, commit)
	}}
)

func TestMain(m *testing.M) {
	code := shared.Run(m)
	for _, d := range []*dist{made, tagged, krewTools} {
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
	d.fill(t.Context())
	if d.err != nil {
		t.Fatal(d.err)
	}
	return d.dir
}

func (d *dist) fill(ctx context.Context) {
	d.once.Do(func() {
		if d.dir, d.err = os.MkdirTemp("", "release-test-"); d.err == nil {
			// Not the test's context: the release outlives the test that comes first.
			d.err = d.make(context.WithoutCancel(ctx), d.dir)
		}
	})
}

// commit returns the commit of a folder that is a repository.
func (d *dist) commit(ctx context.Context) (string, error) {
	if d.fill(ctx); d.err != nil {
		return "", d.err
	}
	head := exec.CommandContext(ctx, "git", "rev-parse", "HEAD")
	head.Dir = d.dir
	out, err := head.Output()
	return strings.TrimSpace(string(out)), err
}

// commit is that of which the release is made.
func commit(t *testing.T) string {
	t.Helper()
	c, err := tagged.commit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// tagSource makes a repository of this source, and tags its commit.
func tagSource(ctx context.Context, dir string) error {
	if err := copySource(ctx, dir); err != nil {
		return err
	}
	for _, arguments := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A", "-f"}, {"commit", "-q", "-m", version}, {"tag", version}} {
		git := exec.CommandContext(ctx, "git", arguments...)
		git.Dir, git.Env = dir, append(os.Environ(), gitEnvironment()...)
		if out, err := git.CombinedOutput(); err != nil {
			return fmt.Errorf("git %s: %w\n%s", arguments[0], err, out)
		}
	}
	return nil
}

// gitEnvironment is that of a user whose commits are of one time.
func gitEnvironment() []string {
	all := []string{"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull}
	for _, who := range []string{"GIT_AUTHOR_", "GIT_COMMITTER_"} {
		all = append(all, who+"NAME=you", who+"EMAIL=you@example.com", who+"DATE="+at.Format(time.RFC3339))
	}
	return all
}

func makeRelease(ctx context.Context, source, dir, commit string) error {
	o := release.Options{
		Root: source, Version: version, Commit: commit, At: at, Dist: dir,
		Platforms: []gobuild.Platform{host}, Say: func(string, ...any) {},
	}
	return errors.Join(release.Archives(ctx, o), release.Image(ctx, o))
}

// copySource copies what git would take of this source into another folder, which is
// no repository.
func copySource(ctx context.Context, to string) error {
	list := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		return err
	}
	for name := range strings.SplitSeq(strings.Trim(string(out), "\x00"), "\x00") {
		info, err := os.Stat(filepath.Join(root, name))
		if errors.Is(err, os.ErrNotExist) {
			continue // removed, and not committed yet
		}
		if err != nil {
			return err
		}
		data, err := os.ReadFile(filepath.Join(root, name))
		if err == nil {
			err = os.MkdirAll(filepath.Join(to, filepath.Dir(name)), 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(to, name), data, 0o644|info.Mode().Perm()&0o111)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
