package emit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// FileSystem is what replacing files needs of a file system. OS is the real
// one; tests put one in its place whose disk is full.
type FileSystem interface {
	// ReadFile returns the content, or an error that wraps fs.ErrNotExist.
	ReadFile(name string) ([]byte, error)
	// CreateTemp makes a new file in the folder, as os.CreateTemp does.
	CreateTemp(folder, pattern string) (TempFile, error)
	// Rename replaces the file newName by oldName in one step.
	Rename(oldName, newName string) error
	// Remove deletes the file.
	Remove(name string) error
}

// TempFile is a file that is being written.
type TempFile interface {
	io.WriteCloser
	// Name is the file's path.
	Name() string
	// Chmod sets the permissions.
	Chmod(mode fs.FileMode) error
	// Sync returns when the content is on the disk.
	Sync() error
}

// OS is the machine's own file system.
type OS struct{}

var _ FileSystem = OS{}

// ReadFile implements FileSystem.
func (OS) ReadFile(name string) ([]byte, error) {
	// Opening a pipe would wait for a writer, so look first.
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return nil, fmt.Errorf("%s is not a file", name)
	}
	return os.ReadFile(name)
}

// CreateTemp implements FileSystem.
func (OS) CreateTemp(folder, pattern string) (TempFile, error) {
	return os.CreateTemp(folder, pattern)
}

// Rename implements FileSystem.
func (OS) Rename(oldName, newName string) error { return os.Rename(oldName, newName) }

// Remove implements FileSystem.
func (OS) Remove(name string) error { return os.Remove(name) }

// ErrChangedMeanwhile is the cause when a file is no longer what was read.
var ErrChangedMeanwhile = errors.New("the file was changed by someone else since it was read; run the command again")

// Replace brings the files at their Path from Before to After. Files that are
// the same are not touched. New content is first written beside each file and
// synced, all of it, and only then does the first file get replaced, each in
// one step: an error before that point (a full disk, a folder without
// permission, a file that somebody changed since it was read) leaves every
// file as it was. Where replacing itself fails half-way the error says how many
// files are done; each is whole, and running again does the rest.
//
// A symbolic link is resolved and its target replaced, provided that the target
// is inside the file's Root; permissions are kept.
func Replace(ctx context.Context, disk FileSystem, files []File) (err error) {
	var steps []step
	targets := map[string]File{}
	defer func() {
		for _, s := range steps {
			if s.temp != "" {
				err = errors.Join(err, ignoreNotExist(disk.Remove(s.temp)))
			}
		}
	}()
	for _, f := range files {
		if !f.Changed() {
			continue
		}
		s, err := prepare(ctx, disk, f)
		if err == nil {
			if same, ok := targets[s.target]; ok && !bytes.Equal(same.After, f.After) {
				err = fmt.Errorf("it is the same file as %s, which is to get another content", same.Path)
			} else if !ok {
				targets[s.target] = f
			}
		}
		steps = append(steps, s)
		if err != nil {
			return fmt.Errorf("write %s: %w (no file was changed)", f.Path, err)
		}
	}
	for _, s := range steps {
		if err := s.unchanged(disk); err != nil {
			return fmt.Errorf("write %s: %w (no file was changed)", s.file.Path, err)
		}
	}
	for i := range steps {
		if err := steps[i].commit(disk); err != nil {
			return fmt.Errorf("write %s: %w (%d of %d files were changed; run the command again to finish)", steps[i].file.Path, err, i, len(steps))
		}
	}
	return nil
}

// step is a file on its way to being replaced.
type step struct {
	file   File
	target string // file.Path without symbolic links
	temp   string // the new content beside target; empty once it is in place
}

// prepare writes the new content beside the file. Where it fails, the returned
// step still names the temporary file that must go.
func prepare(ctx context.Context, disk FileSystem, f File) (s step, err error) {
	s.file = f
	if err := ctx.Err(); err != nil {
		return s, err
	}
	if s.target, err = resolve(f.Path, f.Root); err != nil {
		return s, err
	}
	mode, err := writable(s.target)
	if err != nil {
		return s, err
	}
	if f.After == nil {
		return s, nil
	}
	folder := filepath.Dir(s.target)
	temp, err := disk.CreateTemp(folder, "."+filepath.Base(s.target)+".*.tmp")
	if err != nil {
		return s, err
	}
	s.temp = temp.Name()
	if _, err := temp.Write(f.After); err != nil {
		return s, errors.Join(err, temp.Close())
	}
	if err := errors.Join(temp.Chmod(mode), temp.Sync()); err != nil {
		return s, errors.Join(err, temp.Close())
	}
	return s, temp.Close()
}

// unchanged makes sure that the file still is what was read.
func (s step) unchanged(disk FileSystem) error {
	now, err := disk.ReadFile(s.target)
	switch {
	case errors.Is(err, fs.ErrNotExist) && s.file.Before == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("the file is gone: %w", ErrChangedMeanwhile)
	case err != nil:
		return err
	case s.file.Before == nil || !bytes.Equal(now, s.file.Before):
		return ErrChangedMeanwhile
	}
	return nil
}

// commit puts the new content in place.
func (s *step) commit(disk FileSystem) error {
	if s.file.After == nil {
		return disk.Remove(s.target)
	}
	if err := disk.Rename(s.temp, s.target); err != nil {
		return err
	}
	s.temp = ""
	return nil
}

// resolve returns the path without symbolic links, which must not lead out of
// root. The file itself need not exist.
func resolve(path, root string) (string, error) {
	target, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, lerr := os.Lstat(path); lerr == nil {
			return "", fmt.Errorf("the symbolic link leads nowhere: %w", err)
		}
		folder, ferr := filepath.EvalSymlinks(filepath.Dir(path))
		if ferr != nil {
			return "", ferr
		}
		target, err = filepath.Join(folder, filepath.Base(path)), nil
	}
	if err != nil {
		return "", err
	}
	if inside, err := within(target, root); err != nil {
		return "", err
	} else if !inside {
		return "", fmt.Errorf("the symbolic link leads out of %q to %q; name that file itself if it is meant", root, target)
	}
	return target, nil
}

// within reports whether the resolved path is below the folder root.
func within(target, root string) (bool, error) {
	if root == "" {
		root = "."
	}
	root, err := filepath.EvalSymlinks(root)
	if err != nil {
		return false, err
	}
	if root, err = filepath.Abs(root); err != nil {
		return false, err
	}
	if target, err = filepath.Abs(target); err != nil {
		return false, err
	}
	rel, err := filepath.Rel(root, target)
	if err != nil {
		return false, err
	}
	return rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator)), nil
}

// writable returns the permissions that the file has or a new one gets. A file
// that may not be written is not replaced either, though its folder would let
// us.
func writable(path string) (fs.FileMode, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0o644, nil
	}
	if err != nil {
		return 0, err
	}
	if !info.Mode().IsRegular() {
		return 0, fmt.Errorf("%s is not a regular file", path)
	}
	if info.Mode().Perm()&0o222 == 0 {
		return 0, fmt.Errorf("the file is read-only: %w", fs.ErrPermission)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return 0, err
	}
	return info.Mode().Perm(), f.Close()
}

func ignoreNotExist(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
