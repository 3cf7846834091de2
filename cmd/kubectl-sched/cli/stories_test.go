package cli_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/kubectl-sched/kubectl-sched/internal/lint"
)

// TestStories plays the situations that people have reported elsewhere, each a script
// with the mistake, what finds it, and its correct neighbour, in which nothing is found.
func TestStories(t *testing.T) {
	t.Parallel()
	testscript.Run(t, scripts("situation"))
}

// situations is the page with the table of all of them.
const situations = "../../../docs/situations.md"

var (
	situationRow = regexp.MustCompile(`(?m)^\| (\d+) \| .+ \| (.+) \| (.+) \|$`)
	ruleInRow    = regexp.MustCompile("`([a-z]+/[a-z-]+)`")
	testInRow    = regexp.MustCompile("`(Test\\w+)(?:/([\\w-]+))?` in `([\\w/-]+)`")
)

// TestTableOfStories holds that the table has a row for each situation, that each row's
// tests are there, and that the rules of a row are found in its script.
func TestTableOfStories(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(situations)
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("testdata/situation/*.txtar")
	if err != nil || len(files) < 20 {
		t.Fatal(files, err)
	}
	played := map[string]bool{}
	rows := situationRow.FindAllStringSubmatch(string(page), -1)
	if len(rows) != 22 {
		t.Errorf("the table has %d rows", len(rows))
	}
	known := map[string]bool{}
	for _, r := range lint.Documented() {
		known[r.ID] = true
	}
	for i, row := range rows {
		if row[1] != strconv.Itoa(i+1) {
			t.Errorf("row %d has number %s", i+1, row[1])
		}
		tests := testInRow.FindAllStringSubmatch(row[3], -1)
		if len(tests) == 0 {
			t.Errorf("row %s names no test", row[1])
		}
		text := ""
		for _, test := range tests {
			function, script, folder := test[1], test[2], test[3]
			if !declares(t, filepath.Join("../../..", folder), function) {
				t.Errorf("row %s: there is no %s in %s", row[1], function, folder)
			}
			if function == "TestStories" {
				file := filepath.Join("testdata", "situation", script+".txtar")
				archive, err := txtar.ParseFile(file)
				if err != nil {
					t.Errorf("row %s: %v", row[1], err)
					continue
				}
				played[file], text = true, text+string(txtar.Format(archive))
			}
		}
		for _, rule := range ruleInRow.FindAllStringSubmatch(row[2], -1) {
			if !known[rule[1]] {
				t.Errorf("row %s: there is no rule %s", row[1], rule[1])
			}
			if !strings.Contains(text, rule[1]) {
				t.Errorf("row %s: no script of it shows %s", row[1], rule[1])
			}
		}
	}
	for _, file := range files {
		if !played[file] {
			t.Errorf("no row names %s", file)
		}
	}
}

// declares reports whether a test file of the folder declares the function.
func declares(t *testing.T, folder, function string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "\nfunc "+function+"(t *testing.T)") {
			return true
		}
	}
	return false
}
