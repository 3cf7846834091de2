// Package golden runs tests whose input and outcome are in one txtar file. It
// must not know what is tested, and only tests import it.
package golden

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// Run runs do for each testdata/*.txtar, as a parallel subtest named after the
// file, and compares the files that it returns with those in the archive whose
// names begin with "want". do does not see those. UPDATE=1 writes them anew,
// behind the others.
func Run(t *testing.T, do func(t *testing.T, input *txtar.Archive) []txtar.File) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			input := &txtar.Archive{Comment: archive.Comment}
			want := map[string]string{}
			for _, f := range archive.Files {
				if strings.HasPrefix(f.Name, "want") {
					want[f.Name] = string(f.Data)
				} else {
					input.Files = append(input.Files, f)
				}
			}
			results := do(t, input)
			if os.Getenv("UPDATE") != "" {
				input.Files = append(input.Files, results...)
				if err := os.WriteFile(file, txtar.Format(input), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			got := map[string]string{}
			for _, f := range results {
				got[f.Name] = string(f.Data)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("outcome differs (-want +got), UPDATE=1 rewrites it:\n%s", diff)
			}
		})
	}
}

// File returns the data of the archive's file of that name; nil if it has none.
func File(a *txtar.Archive, name string) []byte {
	for _, f := range a.Files {
		if f.Name == name {
			return f.Data
		}
	}
	return nil
}

// Result returns a file to be compared; none for an empty text.
func Result(name, text string) []txtar.File {
	if text == "" {
		return nil
	}
	return []txtar.File{{Name: name, Data: []byte(text)}}
}
