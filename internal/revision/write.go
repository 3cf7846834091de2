package revision

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// writer writes the files of a revision.
type writer struct {
	root *os.Root
	tree *Tree
	// files are those to write, in the order in which git is asked.
	files []entry
	links map[string]string
}

// maxLink is how long the target of a link may be.
const maxLink = 4096

// choose says what to write, and refuses the rest.
func (w *writer) choose(entries []entry, limits Limits) error {
	for _, e := range entries {
		switch {
		case e.mode == modeSubmodule:
			w.tree.Refused[e.path] = "it is a submodule, and nothing is fetched"
		case e.mode == modeLink && e.size > maxLink:
			w.tree.Refused[e.path] = "it is a symbolic link without a sensible target"
		case e.mode != modeLink && e.size > limits.File && read[path.Ext(e.path)]:
			return fmt.Errorf("%q has more than %d MiB", e.path, limits.File>>20)
		case e.mode != modeLink && e.size > limits.File:
			w.tree.Refused[e.path] = fmt.Sprintf("it has more than %d MiB", limits.File>>20)
		default:
			w.files = append(w.files, e)
		}
	}
	return nil
}

// contents has git print the files, and writes them.
func (r *Repository) contents(ctx context.Context, w *writer) error {
	cmd := r.command(ctx, "cat-file", "--batch")
	var problem bytes.Buffer
	var ask strings.Builder
	for _, e := range w.files {
		ask.WriteString(e.hash + "\n")
	}
	cmd.Stderr, cmd.Stdin = &problem, strings.NewReader(ask.String())
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	in := bufio.NewReaderSize(out, 256<<10)
	for _, e := range w.files {
		if err := w.one(in, e); err != nil {
			return errors.Join(ctx.Err(), err, end(cmd.Process), ignore(cmd.Wait()))
		}
	}
	if err := cmd.Wait(); err != nil {
		return gitError(ctx, "cat-file", err, problem.String())
	}
	return nil
}

// one reads "HASH blob SIZE\n", the file and a newline, and writes the file.
func (w *writer) one(in *bufio.Reader, e entry) error {
	line, err := in.ReadString('\n')
	if err != nil {
		return fmt.Errorf("git cat-file: %w", err)
	}
	words := strings.Fields(line)
	if len(words) != 3 || words[1] != "blob" || words[2] != strconv.FormatInt(e.size, 10) {
		return fmt.Errorf("the content of %q is not there: %s", e.path, strings.TrimSpace(line))
	}
	content := io.LimitReader(in, e.size)
	if e.mode == modeLink {
		target, err := io.ReadAll(content)
		if err != nil {
			return err
		}
		w.links[e.path] = string(target)
	} else if err := w.file(e.path, content); err != nil {
		return err
	}
	_, err = in.Discard(1)
	return err
}

func (w *writer) file(name string, content io.Reader) error {
	local := filepath.FromSlash(name)
	if err := w.root.MkdirAll(filepath.Dir(local), 0o700); err != nil {
		return err
	}
	f, err := w.root.OpenFile(local, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	return errors.Join(err, f.Close())
}

// link makes the links that lead to something in the folder. They come last, so that
// no file is written through one.
func (w *writer) link() error {
	for _, name := range slices.Sorted(maps.Keys(w.links)) {
		target := w.links[name]
		if path.IsAbs(target) || !filepath.IsLocal(path.Join(path.Dir(name), target)) {
			w.tree.Refused[name] = "it is a symbolic link that leads out of the repository"
			continue
		}
		local := filepath.FromSlash(name)
		if err := w.root.MkdirAll(filepath.Dir(local), 0o700); err != nil {
			return err
		}
		if err := w.root.Symlink(target, local); err != nil {
			return err
		}
	}
	// A link through another link can lead further than its text says. What cannot be
	// followed from the root is no good either, so each that fails goes, until all lead
	// somewhere.
	for again := true; again; {
		again = false
		for _, name := range slices.Sorted(maps.Keys(w.links)) {
			if w.tree.Refused[name] != "" {
				continue
			}
			local := filepath.FromSlash(name)
			if _, err := w.root.Stat(local); err == nil {
				continue
			}
			w.tree.Refused[name] = "it is a symbolic link that leads to nothing in the repository"
			if err := w.root.Remove(local); err != nil {
				return err
			}
			again = true
		}
	}
	return nil
}
