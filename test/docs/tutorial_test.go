package docs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tutorial is the page that is run.
const tutorial = root + "/docs/tutorial.md"

// The tutorial is run in an empty folder, block after block: one with a title is a
// file, or a change of one; in a console block every line after "$ " is a command, and
// what follows must be what it says. UPDATE=1 writes what the commands say.
func TestTutorial(t *testing.T) {
	t.Parallel()
	p := readPage(t, tutorial)
	r := &runner{t: t, dir: t.TempDir()}
	updated, last := []byte{}, 0
	for _, b := range p.blocks {
		where := fmt.Sprintf("%s:%d", p.path, b.line)
		got := b.text
		switch {
		case b.language == "console":
			got = r.console(where, b.text)
		case b.language == "diff":
			r.change(where, b.title, b.text)
		case b.title != "":
			r.file(b.title, b.text)
		default:
			t.Errorf("%s: a block of the tutorial must be a file, a change, or a console", where)
		}
		updated = append(append(updated, p.source[last:b.start]...), got...)
		last = b.stop
	}
	if r.commands < 10 {
		t.Errorf("%d commands only", r.commands)
	}
	updated = append(updated, p.source[last:]...)
	if os.Getenv("UPDATE") == "1" {
		if err := os.WriteFile(tutorial, updated, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

type runner struct {
	t        *testing.T
	dir      string
	commands int
}

func (r *runner) file(name, text string) {
	path := filepath.Join(r.dir, filepath.FromSlash(name))
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o750), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		r.t.Fatal(err)
	}
}

// change puts the lines with + in the place of those with -, which must be there once.
func (r *runner) change(where, name, text string) {
	data, err := os.ReadFile(filepath.Join(r.dir, filepath.FromSlash(name)))
	if err != nil {
		r.t.Fatalf("%s: %v", where, err)
	}
	var before, after strings.Builder
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, "-"):
			before.WriteString(line[1:])
		case strings.HasPrefix(line, "+"):
			after.WriteString(line[1:])
		default:
			before.WriteString(line[1:])
			after.WriteString(line[1:])
		}
	}
	if strings.Count(string(data), before.String()) != 1 {
		r.t.Fatalf("%s: %s does not have these lines once:\n%s\nbut is\n%s", where, name, before.String(), data)
	}
	r.file(name, strings.Replace(string(data), before.String(), after.String(), 1))
}

// console runs the commands, and returns the block with what they say.
func (r *runner) console(where, text string) string {
	var out strings.Builder
	var command, want strings.Builder
	run := func() {
		if command.Len() == 0 {
			return
		}
		r.commands++
		got := r.run(command.String())
		if diff := cmp.Diff(masked(want.String()), masked(got)); diff != "" && os.Getenv("UPDATE") != "1" {
			r.t.Errorf("%s: %s\nsays something else (-page +command):\n%s", where, command.String(), diff)
		}
		if masked(want.String()) == masked(got) {
			got = want.String()
		}
		out.WriteString(got)
		command.Reset()
		want.Reset()
	}
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, "$ "):
			run()
			command.WriteString(line[2:])
			out.WriteString(line)
		case want.Len() == 0 && strings.HasSuffix(command.String(), "\\\n"):
			command.WriteString(line)
			out.WriteString(line)
		default:
			want.WriteString(line)
		}
	}
	run()
	return out.String()
}

// run runs one command as in a terminal of 80 columns, and returns what it says.
func (r *runner) run(command string) string {
	said, _ := shell(r.t, r.dir, "/dev/null", command)
	return said
}

var commit = regexp.MustCompile(`\b[0-9a-f]{12}\b`)

// masked is the text without what differs from run to run.
func masked(text string) string { return commit.ReplaceAllString(text, "COMMIT") }
