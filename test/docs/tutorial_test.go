package docs

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-sched/kubectl-sched/test/page"
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
	for _, b := range p.Blocks {
		where := fmt.Sprintf("%s:%d", p.path, b.Line)
		got := b.Text
		switch {
		case b.Language == page.Console:
			got = r.console(where, b)
		case b.Title != "":
			if err := b.Put(r.dir); err != nil {
				t.Fatalf("%s: %v", where, err)
			}
		default:
			t.Errorf("%s: a block of the tutorial must be a file, a change, or a console", where)
		}
		updated = append(append(updated, p.Source[last:b.Start]...), got...)
		last = b.Stop
	}
	if r.commands < 10 {
		t.Errorf("%d commands only", r.commands)
	}
	updated = append(updated, p.Source[last:]...)
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

// console runs the commands, and returns the block with what they say.
func (r *runner) console(where string, b page.Block) string {
	var out strings.Builder
	for _, c := range b.Commands() {
		if c.Text == "" {
			r.t.Fatalf("%s: the block does not begin with a command", where)
		}
		r.commands++
		got := r.run(c.Text)
		if diff := cmp.Diff(masked(c.Says), masked(got)); diff != "" && os.Getenv("UPDATE") != "1" {
			r.t.Errorf("%s: %s\nsays something else (-page +command):\n%s", where, c.Text, diff)
		}
		if masked(c.Says) == masked(got) {
			got = c.Says
		}
		out.WriteString("$ " + c.Text + got)
	}
	return out.String()
}

// run runs one command as in a terminal of 80 columns, and returns what it says.
func (r *runner) run(command string) string {
	said, _ := shell(r.t, r.dir, noCluster, command)
	return said
}

var commit = regexp.MustCompile(`\b[0-9a-f]{12}\b`)

// masked is the text without what differs from run to run.
func masked(text string) string { return commit.ReplaceAllString(text, "COMMIT") }
