package revision

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// Limits bound what a revision may have.
type Limits struct {
	// Files is how many files there may be.
	Files int
	// Bytes is how large all of them may be together, and File how large one.
	Bytes, File int64
}

// DefaultLimits are far above what a repository of policies and manifests has.
var DefaultLimits = Limits{Files: 200_000, Bytes: 1 << 30, File: 16 << 20}

// read are the endings of the files that policies and manifests are made of. One of
// them that is too large is an error; of other files it is left out.
var read = map[string]bool{".cue": true, ".yaml": true, ".yml": true, ".json": true}

// Tree is a folder with the files of a revision. End it with Close.
type Tree struct {
	// Commit is the hash of the commit.
	Commit string
	// Root is the folder, absolute and without symbolic links.
	Root string
	// Refused says of what is in the revision and not in the folder why: submodules,
	// links that lead out of it, large files that are neither CUE, YAML nor JSON. The
	// keys are paths with slashes.
	Refused map[string]string
}

// Close removes the folder.
func (t *Tree) Close() error { return os.RemoveAll(filepath.Dir(t.Root)) }

// entry is a file of a revision.
type entry struct {
	mode, hash string
	size       int64
	path       string
}

const (
	modeLink      = "120000"
	modeSubmodule = "160000"
)

// Files writes the files of the commit to a new temporary folder. After an error,
// that of ctx for one, nothing of it is left. An empty .git marks the root, for what
// looks for the root of a repository.
func (r *Repository) Files(ctx context.Context, commit string, limits Limits) (tree *Tree, err error) {
	entries, err := r.list(ctx, commit, limits)
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "kubectl-sched-revision-")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(folder))
		}
	}()
	if folder, err = filepath.EvalSymlinks(folder); err != nil {
		return nil, err
	}
	tree = &Tree{Commit: commit, Root: filepath.Join(folder, "repository"), Refused: map[string]string{}}
	if err := os.MkdirAll(filepath.Join(tree.Root, ".git"), 0o700); err != nil {
		return nil, err
	}
	// Whatever a path or a link says, nothing outside of the root can be opened by it.
	root, err := os.OpenRoot(tree.Root)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	w := &writer{root: root, tree: tree, links: map[string]string{}}
	if err := w.choose(entries, limits); err != nil {
		return nil, err
	}
	if err := r.contents(ctx, w); err != nil {
		return nil, fmt.Errorf("read revision %s: %w", commit, err)
	}
	return tree, w.link()
}

// list returns what is in the commit.
func (r *Repository) list(ctx context.Context, commit string, limits Limits) ([]entry, error) {
	cmd := r.command(ctx, "ls-tree", "-r", "-z", "-l", "--full-tree", commit)
	var problem bytes.Buffer
	cmd.Stderr = &problem
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	entries, err := parseList(out, limits)
	if err != nil {
		return nil, errors.Join(err, end(cmd.Process), ignore(cmd.Wait()))
	}
	if err := cmd.Wait(); err != nil {
		return nil, gitError(ctx, "ls-tree", err, problem.String())
	}
	return entries, nil
}

// end ends a process that is of no use any more.
func end(p *os.Process) error {
	if err := p.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// ignore drops the error of a process that was ended.
func ignore(error) error { return nil }

// maxPath is how long a path may be.
const maxPath = 4096

// parseList reads "MODE TYPE HASH SIZE\tPATH\0" again and again.
func parseList(out io.Reader, limits Limits) ([]entry, error) {
	in := bufio.NewScanner(out)
	in.Buffer(nil, maxPath+256)
	in.Split(func(data []byte, last bool) (int, []byte, error) {
		if i := bytes.IndexByte(data, 0); i >= 0 {
			return i + 1, data[:i], nil
		}
		if last && len(data) > 0 {
			return 0, nil, io.ErrUnexpectedEOF
		}
		return 0, nil, nil
	})
	var entries []entry
	var bytes int64
	for in.Scan() {
		head, name, ok := strings.Cut(in.Text(), "\t")
		words := strings.Fields(head)
		if !ok || len(words) != 4 {
			return nil, fmt.Errorf("git ls-tree: %q is not understood", in.Text())
		}
		e := entry{mode: words[0], hash: words[2], path: name}
		if words[3] != "-" {
			size, err := strconv.ParseInt(words[3], 10, 64)
			if err != nil {
				return nil, fmt.Errorf("git ls-tree: the size of %q: %w", name, err)
			}
			e.size = size
		}
		if err := checkPath(name); err != nil {
			return nil, err
		}
		if entries = append(entries, e); len(entries) > limits.Files {
			return nil, fmt.Errorf("the revision has more than %d files", limits.Files)
		}
		if e.size <= limits.File {
			bytes += e.size
		}
		if bytes > limits.Bytes {
			return nil, fmt.Errorf("the files of the revision have more than %d MiB", limits.Bytes>>20)
		}
	}
	if errors.Is(in.Err(), bufio.ErrTooLong) {
		return nil, fmt.Errorf("the revision has a path of more than %d bytes", maxPath)
	}
	return entries, in.Err()
}

// checkPath refuses a path that git itself would never write.
func checkPath(name string) error {
	if !filepath.IsLocal(filepath.FromSlash(name)) || path.Clean(name) != name {
		return fmt.Errorf("the revision has a file %q, which is no path inside of it", name)
	}
	for _, part := range strings.Split(name, "/") {
		if strings.EqualFold(part, ".git") {
			return fmt.Errorf("the revision has a file %q, which would be part of git's own", name)
		}
	}
	return nil
}
