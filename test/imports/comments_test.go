package imports_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPackagesSayWhatTheyMustNotKnow holds that the comment of every package says,
// besides what the package is for, what it must not know: a wall that is written
// down nowhere does not stand for long.
func TestPackagesSayWhatTheyMustNotKnow(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	comments := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); path != root && (name == "testdata" || name == "node_modules" || strings.HasPrefix(name, ".") || name == "bin") {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		comments[filepath.Dir(path)] += " " + strings.Join(strings.Fields(file.Doc.Text()), " ")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(comments) < 40 {
		t.Fatalf("only %d packages were found", len(comments))
	}
	for dir, comment := range comments {
		switch {
		case strings.TrimSpace(comment) == "":
			t.Errorf("%s: the package has no comment", dir)
		case !strings.Contains(comment, "must not"):
			t.Errorf("%s: the package's comment does not say what the package must not know:%s", dir, comment)
		}
	}
}
