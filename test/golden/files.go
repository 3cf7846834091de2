package golden

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Files returns the contents of the files below a folder, by their paths relative to it,
// with slashes: of those that end in one of the extensions, or of all where none is
// given. Links to files are followed.
func Files(t testing.TB, dir string, extensions ...string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || len(extensions) > 0 && !slices.Contains(extensions, filepath.Ext(path)) {
			return err
		}
		data, err := os.ReadFile(path)
		rel, relative := filepath.Rel(dir, path)
		out[filepath.ToSlash(rel)] = string(data)
		return errors.Join(err, relative)
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
