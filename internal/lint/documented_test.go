package lint_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/kubectl-sched/kubectl-sched/internal/lint"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

var ruleID = regexp.MustCompile(`^[a-z]+/[a-z]+(-[a-z]+)*$`)

// TestEachRuleIsDocumented holds that every rule says all there is to say, once.
func TestEachRuleIsDocumented(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, r := range lint.Documented() {
		if seen[r.ID] {
			t.Errorf("%s is there twice", r.ID)
		}
		seen[r.ID] = true
		if !ruleID.MatchString(r.ID) {
			t.Errorf("%q is no name of a rule", r.ID)
		}
		if !slices.Contains([]diag.Severity{diag.Error, diag.Warning, diag.Info}, r.Severity) {
			t.Errorf("%s: severity %q", r.ID, r.Severity)
		}
		for what, text := range map[string]string{"doc": r.Doc, "fix": r.Fix} {
			if !strings.HasSuffix(text, ".") || strings.ToUpper(text[:1]) != text[:1] {
				t.Errorf("%s: its %s is no sentence: %q", r.ID, what, text)
			}
		}
	}
	for _, r := range lint.Rules() {
		if !slices.Contains([]lint.Needs{lint.Files, lint.Nodes, lint.Cluster}, r.Needs) {
			t.Errorf("%s needs %q", r.ID, r.Needs)
		}
	}
	if n := len(lint.Rules()); n < 30 {
		t.Errorf("there are %d rules", n)
	}
}

// TestNoRuleIsUndocumented holds that every rule that a finding of the program can
// have is in the table. A rule is any text that looks like one and begins with the
// area of a documented rule: findings get theirs through too many hands to follow.
func TestNoRuleIsUndocumented(t *testing.T) {
	t.Parallel()
	known, areas := map[string]bool{}, map[string]bool{}
	for _, r := range lint.Documented() {
		known[r.ID], areas[r.Area()] = true, true
	}
	used := map[string]bool{}
	for id, places := range texts(t) {
		area, _, _ := strings.Cut(id, "/")
		switch {
		case known[id]:
			used[id] = true
		case areas[area] && !slices.Contains(notRules, id):
			t.Errorf("%s is not in the table: %s", id, places[0])
		}
	}
	for id := range known {
		if !used[id] {
			t.Errorf("%s is in the table, and no finding has it", id)
		}
	}
}

// notRules look like rules, and are not.
var notRules = []string{
	"policy/gates", "policy/load", "policy/diag", // packages
}

// texts returns what looks like a rule among the texts of the program's Go files,
// but not those of the table itself, with where it stands.
func texts(t *testing.T) map[string][]string {
	t.Helper()
	root := filepath.Join("..", "..")
	found := map[string][]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); path != root && (strings.HasPrefix(name, ".") || slices.Contains([]string{"testdata", "node_modules", "bin", "test"}, name)) {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") || strings.HasPrefix(filepath.Base(path), "elsewhere_") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if _, ok := n.(*ast.ImportSpec); ok {
				return false
			}
			if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				if text, err := strconv.Unquote(literal.Value); err == nil && ruleID.MatchString(text) {
					found[text] = append(found[text], path)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 150 {
		t.Fatalf("only %d texts look like rules", len(found))
	}
	return found
}
