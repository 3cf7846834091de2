package load_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/kubectl-sched/kubectl-sched/policy/load"
)

// A file from which CUE's formatter would lose a comma stays as it is, and is told why.
func TestFormatLosesNothing(t *testing.T) {
	t.Parallel()
	text := "package p\n\nimport (\n\t\"strings\"\n,\"list\"\n)\n\nx: strings.ToUpper(\"a\")\ny: list.Max([1])\n"
	const want = "a.cue: cannot be formatted, since the formatter would lose a part of it (expected ',', found 'STRING' \"list\"); write each comma behind what it follows, on the same line"
	if out, err := load.Format([]byte(text), "a.cue"); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s\n%s", err, want, out)
	}
	file := filepath.Join(t.TempDir(), "a.cue")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	files, findings := load.FormatAll(t.Context(), load.Options{Paths: []string{file}})
	if len(files) > 0 || len(findings) != 1 || findings[0].Rule != "input/format" {
		t.Errorf("got %v and %v", files, findings)
	}
}
