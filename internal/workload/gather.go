package workload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// gatherer collects the files that the user named.
type gatherer struct {
	in  Input
	max int64
	// open opens a file; nil for os.Open.
	open     func(name string) (fs.File, error)
	files    []*File
	findings diag.Findings
	stdin    bool
	// seen are the files that were read, without symbolic links.
	seen map[string]bool
	// repeated counts the files that were not read again.
	repeated int
}

func (g *gatherer) fail(file, rule, format string, args ...any) {
	g.findings = append(g.findings, diag.Finding{
		Rule: rule, Severity: diag.Error, Range: diag.At(diag.Pos{File: file}), Message: fmt.Sprintf(format, args...),
	})
}

func (g *gatherer) gather(ctx context.Context) {
	for _, name := range g.in.Files {
		if ctx.Err() != nil {
			return
		}
		switch {
		case name == "-":
			g.readStdin(ctx)
		case strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://"):
			g.fail(name, "input/remote", "manifests are not read from the network; download the file and name it")
		default:
			g.path(ctx, name)
		}
	}
	if g.in.Kustomize != "" && ctx.Err() == nil {
		g.kustomize(ctx, g.in.Kustomize)
	}
}

func (g *gatherer) readStdin(ctx context.Context) {
	if g.stdin {
		g.fail("-", "input/twice", "standard input can be read once only")
		return
	}
	g.stdin = true
	if g.in.Stdin == nil {
		g.fail("-", "input/unreadable", "there is no standard input")
		return
	}
	data, err := ReadAll(ctx, io.LimitReader(g.in.Stdin, g.max+1))
	switch {
	case ctx.Err() != nil: // Read says so
	case err != nil:
		g.fail("-", "input/unreadable", "standard input cannot be read: %v", err)
	case int64(len(data)) > g.max:
		g.tooLarge("-")
	default:
		g.files = append(g.files, &File{Name: "-", Data: data})
	}
}

func (g *gatherer) tooLarge(name string) {
	g.fail(name, "input/too-large", "the file has more than %s; split it, or allow more with --max-file-size", size(g.max))
}

// size writes a number of bytes for people.
func size(n int64) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}

// path reads a file or a folder that the user named.
func (g *gatherer) path(ctx context.Context, name string) {
	info, err := os.Stat(name)
	if err != nil {
		g.unreadable(name, err)
		return
	}
	if !info.IsDir() {
		g.file(ctx, name, false)
		return
	}
	root, err := filepath.EvalSymlinks(name)
	if err == nil {
		root, err = filepath.Abs(root)
	}
	if err != nil {
		g.unreadable(name, err)
		return
	}
	found := g.found()
	deeper := g.folder(ctx, name, root)
	if g.found() == found && ctx.Err() == nil {
		hint := ""
		if deeper {
			hint = "; use -R to look into the folders in it"
		}
		g.fail(name, "input/no-manifests", "the folder has no file that ends in .yaml, .yml or .json%s", hint)
	}
}

// found counts what came of the input so far, for whether anything did.
func (g *gatherer) found() int { return len(g.files) + len(g.findings) + g.repeated }

func (g *gatherer) unreadable(name string, err error) {
	reason := err.Error()
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		reason = pathError.Err.Error()
	}
	if errors.Is(err, fs.ErrNotExist) {
		g.fail(name, "input/not-found", "there is no such file or folder")
		return
	}
	g.fail(name, "input/unreadable", "it cannot be read: %s", reason)
}

// manifestExtensions are what kubectl reads of a folder.
var manifestExtensions = []string{".json", ".yaml", ".yml"}

// folder reads the manifests of a folder, and reports whether there are folders
// that it did not look into.
func (g *gatherer) folder(ctx context.Context, name, root string) (deeper bool) {
	entries, err := os.ReadDir(name)
	if err != nil {
		g.unreadable(name, err)
		return false
	}
	for _, e := range entries {
		if ctx.Err() != nil {
			return deeper
		}
		path := filepath.Join(name, e.Name())
		switch {
		case e.IsDir():
			if !g.in.Recursive {
				deeper = true
				continue
			}
			deeper = g.folder(ctx, path, root) || deeper
		case !slices.Contains(manifestExtensions, filepath.Ext(e.Name())):
		case e.Type()&fs.ModeSymlink != 0:
			g.link(ctx, path, root)
		default:
			g.file(ctx, path, true)
		}
	}
	return deeper
}

// link reads a symbolic link in a folder, if it stays within the folder.
func (g *gatherer) link(ctx context.Context, path, root string) {
	target, err := filepath.EvalSymlinks(path)
	if err == nil {
		target, err = filepath.Abs(target)
	}
	if err != nil {
		g.unreadable(path, err)
		return
	}
	if rel, err := filepath.Rel(root, target); err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		g.fail(path, "input/symlink", "the symbolic link leads out of the given folder, to %q; name that file itself if it is meant", target)
		return
	}
	if info, err := os.Stat(path); err != nil || info.IsDir() {
		return
	}
	g.file(ctx, path, true)
}

func (g *gatherer) file(ctx context.Context, name string, listed bool) {
	// Opening a pipe would wait for a writer, so look first.
	info, err := os.Stat(name)
	if err != nil {
		g.unreadable(name, err)
		return
	}
	if kind := irregular(info.Mode()); kind != "" && (listed || !isDescriptor(name)) {
		g.fail(name, "input/unreadable", "it is %s, not a file; write the manifests to a file, or give them on standard input (-f -)", kind)
		return
	}
	if info.Mode().IsRegular() {
		if info.Size() > g.max {
			g.tooLarge(name)
			return
		}
		if g.again(name) {
			g.repeated++
			return
		}
	}
	data, err := orEnded(ctx, func() ([]byte, error) {
		f, err := g.opened(name)
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }() // nothing was written
		return readAll(io.LimitReader(f, g.max+1), info.Size())
	})
	switch {
	case ctx.Err() != nil: // Read says so
	case err != nil:
		g.unreadable(name, err)
	case int64(len(data)) > g.max:
		g.tooLarge(name)
	default:
		g.files = append(g.files, &File{Name: name, Data: data, Mode: info.Mode().Perm(), listed: listed})
	}
}

// again reports whether the file was read before: named twice, or by a link, or
// named and in a folder.
func (g *gatherer) again(name string) bool {
	path, err := filepath.EvalSymlinks(name)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return false // reading it tells
	}
	if g.seen == nil {
		g.seen = map[string]bool{}
	}
	before := g.seen[path]
	g.seen[path] = true
	return before
}

func (g *gatherer) opened(name string) (fs.File, error) {
	if g.open != nil {
		return g.open(name)
	}
	return os.Open(name)
}

// irregular says what something that is neither a file nor a folder is; empty for
// those.
func irregular(mode fs.FileMode) string {
	switch {
	case mode.IsRegular() || mode.IsDir():
		return ""
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	}
	return "a special file"
}

// isDescriptor reports whether a name is that of an open file of this process:
// standard input, or what a shell puts in the place of <(command).
func isDescriptor(name string) bool {
	name = filepath.ToSlash(filepath.Clean(name))
	return name == "/dev/stdin" || strings.HasPrefix(name, "/dev/fd/") || strings.HasPrefix(name, "/proc/self/fd/")
}

// ReadAll is io.ReadAll that returns when ctx ends, too, with its error. A reader
// that waits (a terminal, a pipe) cannot be told to stop: it is left behind.
func ReadAll(ctx context.Context, r io.Reader) ([]byte, error) {
	return orEnded(ctx, func() ([]byte, error) { return io.ReadAll(r) })
}

// orEnded returns what read returns, or the error of ctx as soon as that ends.
func orEnded[T any](ctx context.Context, read func() (T, error)) (T, error) {
	type result struct {
		data T
		err  error
	}
	done := make(chan result, 1)
	go func() {
		data, err := read()
		done <- result{data, err}
	}()
	select {
	case r := <-done:
		return r.data, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// readAll is io.ReadAll without growing step by step where the size is known.
func readAll(r io.Reader, size int64) ([]byte, error) {
	data := make([]byte, 0, max(512, size+1))
	for {
		n, err := r.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if errors.Is(err, io.EOF) {
			return data, nil
		}
		if err != nil {
			return nil, err
		}
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
	}
}
