package emit

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-sched/kubectl-sched/test/golden"
)

// tree makes a folder with the files.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func change(dir, name, before, after string) File {
	return File{Name: name, Path: filepath.Join(dir, name), Root: dir, Before: []byte(before), After: []byte(after)}
}

// failing is a file system on which one operation goes wrong.
type failing struct {
	OS
	writes  int // how many bytes fit on the disk
	renames int // how many renames succeed
	onRead  func(name string)
}

func (f *failing) ReadFile(name string) ([]byte, error) {
	if f.onRead != nil {
		f.onRead(name)
	}
	return f.OS.ReadFile(name)
}

func (f *failing) CreateTemp(folder, pattern string) (TempFile, error) {
	temp, err := f.OS.CreateTemp(folder, pattern)
	return &fullTemp{TempFile: temp, disk: f}, err
}

func (f *failing) Rename(oldName, newName string) error {
	if f.renames == 0 {
		return &os.LinkError{Op: "rename", Old: oldName, New: newName, Err: syscall.EIO}
	}
	f.renames--
	return f.OS.Rename(oldName, newName)
}

type fullTemp struct {
	TempFile
	disk *failing
}

func (t *fullTemp) Write(p []byte) (int, error) {
	n := min(len(p), t.disk.writes)
	t.disk.writes -= n
	if n < len(p) {
		_, _ = t.TempFile.Write(p[:n])
		return n, &fs.PathError{Op: "write", Path: t.Name(), Err: syscall.ENOSPC}
	}
	return t.TempFile.Write(p)
}

func TestReplaceWritesOnlyWhatChanges(t *testing.T) {
	t.Parallel()
	dir := tree(t, map[string]string{"a.yaml": "a", "sub/b.yaml": "b", "same.yaml": "same", "gone.yaml": "gone"})
	if err := os.Chmod(filepath.Join(dir, "a.yaml"), 0o640); err != nil {
		t.Fatal(err)
	}
	long := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	if err := os.Chtimes(filepath.Join(dir, "same.yaml"), long, long); err != nil {
		t.Fatal(err)
	}
	gone := change(dir, "gone.yaml", "gone", "")
	gone.After = nil
	created := change(dir, "new.yaml", "", "new")
	created.Before = nil
	files := []File{change(dir, "a.yaml", "a", "A"), change(dir, "sub/b.yaml", "b", "B"), change(dir, "same.yaml", "same", "same"), gone, created}
	if err := Replace(t.Context(), OS{}, files); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"a.yaml": "A", "sub/b.yaml": "B", "same.yaml": "same", "new.yaml": "new"}
	if d := cmp.Diff(want, golden.Files(t, dir)); d != "" {
		t.Errorf("files (-want +got):\n%s", d)
	}
	if info, err := os.Stat(filepath.Join(dir, "a.yaml")); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("a.yaml: mode %v, %v; want 0640 kept", info.Mode(), err)
	}
	if info, err := os.Stat(filepath.Join(dir, "same.yaml")); err != nil || !info.ModTime().Equal(long) {
		t.Errorf("same.yaml: modified %v, %v; want untouched", info.ModTime(), err)
	}
}

// Whatever goes wrong before the first file is replaced leaves everything as it
// was, without a temporary file.
func TestReplaceLeavesEverythingOnErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		disk    func(dir string) FileSystem
		prepare func(t *testing.T, dir string)
		files   func(dir string) []File
		want    string
	}{{
		name: "disk full at the second file",
		disk: func(string) FileSystem { return &failing{writes: 3, renames: 9} },
		want: "no space left on device (no file was changed)",
	}, {
		name: "changed since it was read",
		disk: func(string) FileSystem {
			return &failing{writes: 99, renames: 9, onRead: func(name string) {
				if filepath.Base(name) == "b.yaml" {
					_ = os.WriteFile(name, []byte("edited"), 0o644)
				}
			}}
		},
		want: "changed by someone else since it was read; run the command again (no file was changed)",
	}, {
		name: "new file appeared",
		files: func(dir string) []File {
			f := change(dir, "b.yaml", "", "B")
			f.Before = nil
			return []File{change(dir, "a.yaml", "a", "A"), f}
		},
		want: "changed by someone else",
	}, {
		name: "file is gone",
		files: func(dir string) []File {
			return []File{change(dir, "a.yaml", "a", "A"), change(dir, "c.yaml", "c", "C")}
		},
		want: "the file is gone",
	}, {
		name:    "read-only file",
		prepare: func(t *testing.T, dir string) { chmod(t, filepath.Join(dir, "b.yaml"), 0o444) },
		want:    "the file is read-only: permission denied (no file was changed)",
	}, {
		name: "link out of the folder",
		prepare: func(t *testing.T, dir string) {
			other := tree(t, map[string]string{"b.yaml": "b"})
			symlink(t, filepath.Join(other, "b.yaml"), filepath.Join(dir, "b.yaml"))
		},
		want: "the symbolic link leads out of",
	}, {
		name: "folder is a link out of the folder",
		prepare: func(t *testing.T, dir string) {
			symlink(t, tree(t, map[string]string{"x.yaml": "x"}), filepath.Join(dir, "sub"))
		},
		files: func(dir string) []File {
			return []File{change(dir, "a.yaml", "a", "A"), change(dir, "sub/x.yaml", "x", "X")}
		},
		want: "the symbolic link leads out of",
	}, {
		name: "link to nowhere",
		prepare: func(t *testing.T, dir string) {
			symlink(t, filepath.Join(dir, "nothing"), filepath.Join(dir, "b.yaml"))
		},
		want: "the symbolic link leads nowhere",
	}, {
		name: "one file by two names",
		prepare: func(t *testing.T, dir string) {
			symlink(t, "a.yaml", filepath.Join(dir, "b.yaml"))
		},
		files: func(dir string) []File {
			return []File{change(dir, "a.yaml", "a", "A"), change(dir, "b.yaml", "a", "B")}
		},
		want: "it is the same file as",
	}, {
		name: "no folder",
		files: func(dir string) []File {
			return []File{change(dir, "a.yaml", "a", "A"), change(dir, "none/b.yaml", "b", "B")}
		},
		want: "no such file or directory (no file was changed)",
	}}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir := tree(t, map[string]string{"a.yaml": "a", "b.yaml": "b"})
			if test.prepare != nil {
				test.prepare(t, dir)
			}
			var disk FileSystem = OS{}
			if test.disk != nil {
				disk = test.disk(dir)
			}
			files := []File{change(dir, "a.yaml", "a", "A1"), change(dir, "b.yaml", "b", "B1")}
			if test.files != nil {
				files = test.files(dir)
			}
			err := Replace(t.Context(), disk, files)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v; want %q in it", err, test.want)
			}
			if got, err := os.ReadFile(filepath.Join(dir, "a.yaml")); err != nil || string(got) != "a" {
				t.Errorf("a.yaml holds %q, %v; want it untouched", got, err)
			}
			temps, _ := filepath.Glob(filepath.Join(dir, ".*.tmp"))
			if len(temps) > 0 {
				t.Errorf("temporary files are left: %v", temps)
			}
		})
	}
}

// A rename that fails half-way says so, and each file is whole.
func TestReplaceSaysHowFarItGot(t *testing.T) {
	t.Parallel()
	dir := tree(t, map[string]string{"a.yaml": "a", "b.yaml": "b", "c.yaml": "c"})
	files := []File{change(dir, "a.yaml", "a", "A"), change(dir, "b.yaml", "b", "B"), change(dir, "c.yaml", "c", "C")}
	err := Replace(t.Context(), &failing{writes: 99, renames: 1}, files)
	if !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), "1 of 3 files were changed; run the command again to finish") {
		t.Errorf("error %v", err)
	}
	if d := cmp.Diff(map[string]string{"a.yaml": "A", "b.yaml": "b", "c.yaml": "c"}, golden.Files(t, dir)); d != "" {
		t.Errorf("files (-want +got):\n%s", d)
	}
}

func TestReplaceFollowsLinksInside(t *testing.T) {
	t.Parallel()
	dir := tree(t, map[string]string{"real/web.yaml": "old"})
	symlink(t, "real/web.yaml", filepath.Join(dir, "web.yaml"))
	if err := Replace(t.Context(), OS{}, []File{change(dir, "web.yaml", "old", "new")}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(filepath.Join(dir, "web.yaml")); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("web.yaml is no link any more: %v, %v", info, err)
	}
	if got := golden.Files(t, filepath.Join(dir, "real"))["web.yaml"]; got != "new" {
		t.Errorf("the target holds %q", got)
	}
}

func TestReplaceEndsWhenInterrupted(t *testing.T) {
	t.Parallel()
	dir := tree(t, map[string]string{"a.yaml": "a"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Replace(ctx, OS{}, []File{change(dir, "a.yaml", "a", "A")}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v; want canceled", err)
	}
	if d := cmp.Diff(map[string]string{"a.yaml": "a"}, golden.Files(t, dir)); d != "" {
		t.Errorf("files (-want +got):\n%s", d)
	}
}

func chmod(t *testing.T, path string, mode fs.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

// symlink puts a link in the place of whatever is at path.
func symlink(t *testing.T, target, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}
