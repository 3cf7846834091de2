package lint_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
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
// but not those of the table itself, with the packages that have it.
func texts(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	eachFile(t, func(file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			if _, ok := n.(*ast.ImportSpec); ok {
				return false
			}
			if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				if text, err := strconv.Unquote(literal.Value); err == nil && ruleID.MatchString(text) {
					found[text] = append(found[text], file.Name.Name)
				}
			}
			return true
		})
	})
	if len(found) < 150 {
		t.Fatalf("only %d texts look like rules", len(found))
	}
	return found
}

// eachFile visits the program's Go files, but not those of the table itself.
func eachFile(t *testing.T, visit func(*ast.File)) {
	t.Helper()
	root := filepath.Join("..", "..")
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
		if err == nil {
			visit(file)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestEachRuleHasItsPage holds that the reference has a place for each rule, which
// reports link to.
func TestEachRuleHasItsPage(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../docs/reference/findings.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	for _, r := range lint.Documented() {
		at := strings.Index(page, "\n### "+r.ID+"\n")
		if at < 0 {
			t.Errorf("%s has no place on the page", r.ID)
			continue
		}
		section, _, _ := strings.Cut(page[at+1:], "\n### ")
		for _, text := range []string{r.Doc, r.Fix, string(r.Severity)} {
			if !strings.Contains(section, text) {
				t.Errorf("the page does not say of %s: %q; run make generate", r.ID, text)
			}
		}
	}
}

// TestSeveritiesAreThoseOfTheTable holds that a finding whose rule and severity the code
// writes in one place has the severity that the table documents. Where the code has one
// rule with several, the table has one of them.
func TestSeveritiesAreThoseOfTheTable(t *testing.T) {
	t.Parallel()
	table := map[string]diag.Severity{}
	for _, r := range lint.Documented() {
		table[r.ID] = r.Severity
	}
	names := map[string]diag.Severity{"Error": diag.Error, "Warning": diag.Warning, "Info": diag.Info}
	written := map[string][]diag.Severity{}
	eachFile(t, func(file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			literal, ok := n.(*ast.CompositeLit)
			if !ok {
				return true
			}
			var rule string
			var severity diag.Severity
			for _, e := range literal.Elts {
				pair, ok := e.(*ast.KeyValueExpr)
				if !ok {
					continue
				}
				key, _ := pair.Key.(*ast.Ident)
				switch v := pair.Value.(type) {
				case *ast.BasicLit:
					if key != nil && key.Name == "Rule" {
						rule, _ = strconv.Unquote(v.Value)
					}
				case *ast.SelectorExpr:
					if key != nil && key.Name == "Severity" {
						severity = names[v.Sel.Name]
					}
				}
			}
			if rule != "" && severity != "" {
				written[rule] = append(written[rule], severity)
			}
			return true
		})
	})
	if len(written) < 20 {
		t.Fatalf("only %d rules are written with a severity", len(written))
	}
	for rule, severities := range written {
		if is, ok := table[rule]; ok && !slices.Contains(severities, is) {
			t.Errorf("%s: the table says %s, the code %v", rule, is, severities)
		}
	}
}
