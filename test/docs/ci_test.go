package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kubectl-sched/kubectl-sched/test/page"
)

// ci is what decides what is run before a commit lands.
type ci struct {
	// first is the script that lands commits, tests the one that "make test" runs.
	first, tests, makefile string
}

func readCI(t *testing.T) (c ci) {
	t.Helper()
	for path, into := range map[string]*string{".ci/run": &c.first, "test/run.sh": &c.tests, "Makefile": &c.makefile} {
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		*into = string(text)
	}
	return c
}

// runs reports what is not run there of a block: a command is one that CI gives, a target
// whose recipe it runs, or a test, all of which it runs.
func (c ci) runs(b page.Block) error {
	for _, command := range commands(b) {
		command, _, _ = strings.Cut(command, "#")
		if err := c.runsCommand(strings.Fields(command)); err != nil {
			return fmt.Errorf("%s: %w", command, err)
		}
	}
	return nil
}

func (c ci) runsCommand(words []string) error {
	command := strings.Join(words, " ")
	switch {
	case hasLine(c.first, command) || hasLine(c.tests, command):
		return nil
	case len(words) > 1 && words[0] == "make":
		recipe := c.recipe(words[1])
		if len(recipe) == 0 {
			return fmt.Errorf("the Makefile has no recipe for %q", words[1])
		}
		for _, line := range recipe {
			if err := c.runsCommand(strings.Fields(line)); err != nil {
				return fmt.Errorf("%s: %w", line, err)
			}
		}
		return nil
	case len(words) > 2 && words[0] == "go" && words[1] == "test":
		return c.runsTest(words[2:])
	}
	return fmt.Errorf("CI does not run it")
}

// recipe returns the commands of a target.
func (c ci) recipe(target string) (lines []string) {
	_, rest, _ := strings.Cut(c.makefile, "\n"+target+":")
	_, rest, _ = strings.Cut(rest, "\n")
	for line := range strings.Lines(rest) {
		command, ok := strings.CutPrefix(line, "\t")
		if !ok {
			break
		}
		lines = append(lines, strings.TrimPrefix(strings.TrimSpace(command), "@"))
	}
	return lines
}

// runsTest reports whether there is the test that arguments of "go test" name, in a
// package of which CI runs all tests.
func (c ci) runsTest(arguments []string) error {
	at := slices.Index(arguments, "-run")
	folder, ok := strings.CutPrefix(arguments[0], "./")
	if at < 0 || at+1 == len(arguments) || !ok {
		return fmt.Errorf("it does not say of which folder it runs which test")
	}
	if !strings.Contains(c.tests, "<(go list ./... | sort)") || !hasLine(c.tests, "go test -timeout 15m $light") || !hasLine(c.tests, "go test -p 1 -timeout 25m $real") {
		return fmt.Errorf("CI does not run the tests of all packages")
	}
	for in := folder; in != "."; in = filepath.Dir(in) {
		if _, err := os.Stat(filepath.Join(root, in, "go.mod")); err == nil {
			return fmt.Errorf("%s is of a module of its own", folder)
		}
	}
	name, part, parts := strings.Cut(arguments[at+1], "/")
	if err := isTest(name + " in " + folder); err != nil {
		return err
	}
	if files, err := filepath.Glob(filepath.Join(root, folder, "testdata", "*", part+".*")); err != nil || parts && len(files) == 0 {
		return fmt.Errorf("%s has no part %q (%w)", name, part, err)
	}
	return nil
}

// hasLine reports whether a script has a line that is the command.
func hasLine(script, command string) bool {
	return regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(command) + `$`).MatchString(script)
}

// TestCIIsJudged holds that a command which CI does not run is noticed.
func TestCIIsJudged(t *testing.T) {
	t.Parallel()
	c := readCI(t)
	for _, command := range []string{
		"make", "make no-such-target", "make screenshots", "make bench", "true", "go test ./...", "go test ./test/docs", "go test ./test/docs -run TestNone",
		"go test ./test/browser -run TestReviewPage", "go test ./cmd/kubectl-sched/cli -run TestStories/99-none", "make test\nmake screenshots",
	} {
		if err := c.runs(page.Block{Text: command + "\n"}); err == nil {
			t.Errorf("%q is taken for what CI runs", command)
		}
	}
}
