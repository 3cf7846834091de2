package revision

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Outward returns the symbolic links of the working tree that lead out of it, or to
// nothing, with why they are refused: who reads the tree where it is must not follow
// them. The keys are paths with slashes, as those of Tree.Refused. The error is that
// of a folder that cannot be read, or of more files than the limits allow.
func (r *Repository) Outward(limits Limits) (map[string]string, error) {
	root, err := os.OpenRoot(r.Root)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	refused, files := map[string]string{}, 0
	err = fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path == ".git":
			return fs.SkipDir
		case d.IsDir():
			return nil
		}
		if files++; files > limits.Files {
			return fmt.Errorf("the working tree has more than %d files; name a revision, whose files are read without it", limits.Files)
		}
		// What the root itself cannot open leads out of it.
		if d.Type()&fs.ModeSymlink != 0 {
			if _, err := root.Stat(filepath.FromSlash(path)); err != nil {
				refused[path] = "it is a symbolic link that leads to nothing in the repository"
			}
		}
		return nil
	})
	return refused, err
}
