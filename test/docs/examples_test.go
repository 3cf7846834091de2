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

// Every block of code of the pages is held by a test, or says why not. What the page
// does not show is in comments right above the block:
//
//	<!-- example: not run: REASON -->           it cannot be run here
//	<!-- example: run by TEST in FOLDER -->     another test runs it
//	<!-- example: run by CI -->                 CI gives the same command, or runs the target or test
//	<!-- example: file NAME -->                 it is a file of that name
//	<!-- example: part of VERSION KIND -->      it is a part of such an object
//	<!-- example: cluster -->                   commands of the page reach a cluster
//	<!-- example: exits CODE COMMAND -->        a command that begins so ends so
//	<!-- example: before: COMMANDS -->          what is run before it
//
// Without one it is what its language says.

// remark is a word of a comment with what stands behind it.
type remark struct{ word, rest string }

var remarkWords = []string{"not run:", "run by", "file", "part of", "cluster", "exits", "before:"}

// said returns the remarks of a block.
func said(b page.Block) (all []remark, err error) {
	for _, text := range b.Remarks {
		at := slices.IndexFunc(remarkWords, func(word string) bool {
			return text == word || strings.HasPrefix(text, word+" ") || strings.HasPrefix(text, word+"\n")
		})
		if at < 0 {
			return nil, fmt.Errorf("%q is no remark that a test knows", text)
		}
		rest := strings.TrimSpace(strings.TrimPrefix(text, remarkWords[at]))
		if rest == "" && remarkWords[at] != "cluster" {
			return nil, fmt.Errorf("%q says no more", text)
		}
		all = append(all, remark{remarkWords[at], rest})
	}
	return all, nil
}

// get returns what stands behind a word.
func get(remarks []remark, word string) (string, bool) {
	for _, r := range remarks {
		if r.word == word {
			return r.rest, true
		}
	}
	return "", false
}

// programs begin a line of a shell.
var programs = []string{"kubectl", "kubectl-sched", "make", "go", "git", "gh", "cd", "curl", "helm", "sha256sum", "tar", "install", "cosign", "exec", "#!/bin/sh"}

// isShell reports whether the block is for a shell.
func isShell(b page.Block) bool {
	switch b.Language {
	case "console", "sh", "bash", "shell":
		return true
	case "":
		first := strings.Fields(b.Text)
		return len(first) > 0 && slices.Contains(programs, first[0])
	}
	return false
}

// isCUE reports whether TestPolicies holds the block.
func isCUE(b page.Block) bool {
	return b.Title == "" && (b.Language == "cue" || b.Language == "" && startsSection.MatchString(b.Text))
}

// elsewhere are pages that a test of their own runs from the first block to the last.
var elsewhere = map[string]string{
	"docs/tutorial.md":   "TestTutorial in test/docs",
	"docs/adoption.md":   "TestAdoption in test/e2e",
	"docs/quickstart.md": "TestQuickstart in test/release",
	"docs/install.md":    "TestInstall in test/release",
}

// generated is how a page begins that is written from the code, what commands print in
// it included. Examples of commands are what somebody wrote all the same.
const generated = "<!-- Written by `make generate` from the code. -->"

// A block that no test holds is an error, and so is a remark that says what is not so.
func TestEveryBlockIsHeld(t *testing.T) {
	t.Parallel()
	reasons, inCI := 0, readCI(t)
	for _, p := range pages(t) {
		if test, ok := elsewhere[p.path]; ok {
			if err := isTest(test); err != nil {
				t.Errorf("%s: %v", p.path, err)
			}
			continue
		}
		for _, b := range p.Blocks {
			where := fmt.Sprintf("%s:%d", p.path, b.Line)
			remarks, err := said(b)
			if err != nil {
				t.Errorf("%s: %v", where, err)
			}
			if _, ok := get(remarks, "not run:"); ok {
				reasons++
				continue
			}
			if test, ok := get(remarks, "run by"); ok {
				err := isTest(test)
				if by, _, _ := strings.Cut(test, ","); by == "CI" {
					err = inCI.runs(b)
				}
				if err != nil {
					t.Errorf("%s: %v", where, err)
				}
				continue
			}
			if !isShell(b) && !isCUE(b) && b.Language != "yaml" && !strings.HasPrefix(string(p.Source), generated) {
				t.Errorf("%s: no test holds this block; give it a language (console, cue, yaml), or a remark that says why not:\n%s", where, b.Text)
			}
		}
	}
	t.Logf("%d blocks are not run", reasons)
}

var testName = regexp.MustCompile(`^(Test\w+) in (\S+)$`)

// isTest reports whether there is a test, said as "TestX in folder".
func isTest(name string) error {
	m := testName.FindStringSubmatch(name)
	if m == nil {
		return fmt.Errorf("%q is no test; write TestX in FOLDER", name)
	}
	files, err := filepath.Glob(filepath.Join(root, m[2], "*_test.go"))
	if err != nil {
		return err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if strings.Contains(string(text), "\nfunc "+m[1]+"(") {
			return nil
		}
	}
	return fmt.Errorf("there is no %s in %s", m[1], m[2])
}
