package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubectl-sched/kubectl-sched/test/page"
)

const root = "../.."

// at is a page, and where it is from the root of the repository.
type at struct {
	*page.Page
	path string
}

// pages reads the README and all pages below docs and examples.
func pages(t *testing.T) []at {
	t.Helper()
	var paths []string
	for _, from := range []string{"README.md", "CHANGELOG.md", "docs", "examples", "catalog"} {
		err := filepath.WalkDir(filepath.Join(root, from), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if !d.IsDir() && strings.HasSuffix(path, ".md") {
				paths = append(paths, path)
			}
			return nil
		})
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	if len(paths) < 15 {
		t.Fatalf("there are %d pages only", len(paths))
	}
	var list []at
	for _, path := range paths {
		list = append(list, readPage(t, path))
	}
	return list
}

func readPage(t *testing.T, path string) at {
	t.Helper()
	p, err := page.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	rel, err := filepath.Rel(root, path)
	if err != nil {
		t.Fatal(err)
	}
	return at{p, filepath.ToSlash(rel)}
}
