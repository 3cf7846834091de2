// Package cueregistry gives tests a registry of CUE modules on loopback.
//
// It must not know which modules there are, and nothing but tests may import it.
package cueregistry

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"cuelang.org/go/mod/modregistrytest"
)

// Serve serves the modules until the test ends, and returns the environment of who uses
// them: CUE_REGISTRY, and CUE_CACHE_DIR as Cache makes it.
func Serve(t *testing.T, modules fs.FS) map[string]string {
	t.Helper()
	r, err := modregistrytest.New(modules, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return map[string]string{"CUE_REGISTRY": r.Host() + "+insecure", "CUE_CACHE_DIR": Cache(t)}
}

// Cache returns a folder for CUE_CACHE_DIR. What is fetched is read-only, as are the
// folders that it is in: they are made writable again when the test ends, so that they can
// be removed.
func Cache(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Cleanup(func() {
		err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				err = os.Chmod(path, 0o700)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
	return dir
}
