package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"time"

	"k8s.io/utils/clock"

	"github.com/kubectl-sched/kubectl-sched/policy"
)

// watchInterval is how often files are looked at. A look costs as much as listing
// the folders.
const watchInterval = 500 * time.Millisecond

// watching runs the tests again whenever a file changes, until ctx ends. That is how
// it is meant to end, and no error.
func (o *testOptions) watching(ctx context.Context) error {
	w := &fileWatch{clock: clock.RealClock{}, roots: o.policies.paths}
	for {
		before := w.state()
		placement, err := o.once(ctx)
		if ctx.Err() == nil {
			o.sayError(err)
		}
		// What changed while the tests ran counts, as far as it was watched by then.
		w.roots = o.roots(placement)
		state := w.state()
		maps.Copy(state, before)
		before = state
		fmt.Fprintln(o.app.Out, "\nwaiting for changes; end with Ctrl-C")
		if !w.changed(ctx, before) {
			return nil
		}
		fmt.Fprintln(o.app.Out)
	}
}

// sayError prints what once did not.
func (o *testOptions) sayError(err error) {
	var exit exitError
	if errors.As(err, &exit) {
		err = exit.err
	}
	if err != nil {
		o.app.complain("error: %v", err)
	}
}

// roots are the files and folders that the tests are made of.
func (o *testOptions) roots(placement *policy.Placement) []string {
	roots := append([]string{}, o.policies.paths...)
	if placement == nil {
		return roots
	}
	roots = append(roots, placement.Folders...)
	for _, t := range placement.Tests {
		folder := filepath.Dir(filepath.FromSlash(t.Positions.At().Start.File))
		names := t.Manifests
		if t.Snapshot != "" {
			names = append([]string{t.Snapshot}, names...)
		}
		for _, name := range names {
			roots = append(roots, filepath.Join(folder, filepath.FromSlash(name)))
		}
	}
	return roots
}

// fileWatch tells when files change, by their sizes and times of modification: this
// works alike on all systems, in containers and on shared folders.
type fileWatch struct {
	clock clock.Clock
	roots []string
}

// fileState is what tells a file from what it was.
type fileState struct {
	size     int64
	modified time.Time
}

// state is how the files are now. What cannot be read is not there.
func (w *fileWatch) state() map[string]fileState {
	files := map[string]fileState{}
	for _, root := range w.roots {
		_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return nil //nolint:nilerr // it is not there, which is a state too
			}
			if d.IsDir() {
				return nil
			}
			if info, err := os.Stat(path); err == nil {
				files[path] = fileState{info.Size(), info.ModTime()}
			}
			return nil
		})
	}
	return files
}

// changed waits until the files are not as before; false if ctx ends first.
func (w *fileWatch) changed(ctx context.Context, before map[string]fileState) bool {
	for {
		if !maps.Equal(before, w.state()) {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-w.clock.After(watchInterval):
		}
	}
}
