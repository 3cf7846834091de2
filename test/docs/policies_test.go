package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/parser"

	"github.com/kubectl-sched/kubectl-sched/policy/diag"
	"github.com/kubectl-sched/kubectl-sched/policy/load"
)

// sections are what a document of policies is made of.
var sections = []string{"clusters", "pools", "kinds", "policies", "tests"}

// startsSection tells CUE from other blocks without a language.
var startsSection = regexp.MustCompile(`(?m)\A(package \w+|clusters|pools|kinds|policies|tests)\b`)

// CUE on a page is right: what is a whole document loads without errors, by itself or
// with the one before it on the page, and the rest can be parsed.
func TestPolicies(t *testing.T) {
	t.Parallel()
	whole, parts := 0, 0
	for _, p := range pages(t) {
		before := ""
		for _, b := range p.Blocks {
			if b.Title != "" || b.Language != "cue" && (b.Language != "" || !startsSection.MatchString(b.Text)) {
				continue // what has a title is run, mistakes included
			}
			where := fmt.Sprintf("%s:%d", p.path, b.Line)
			f, err := parser.ParseFile(where, b.Text, parser.ParseComments)
			if err != nil {
				t.Errorf("%s: %v", where, err)
				continue
			}
			if !isDocument(f) {
				parts++
				continue
			}
			whole++
			text := b.Text
			if f.PackageName() == "" {
				text = "package p\n" + text // the schema is applied to sections in any case
			}
			errs := loadErrors(t, text)
			if len(errs) > 0 && before != "" && len(loadErrors(t, before, text)) == 0 {
				errs = nil
			}
			if len(errs) > 0 {
				t.Errorf("%s: %v", where, errs)
			}
			before = text
		}
	}
	if whole < 5 {
		t.Errorf("%d documents and %d parts only", whole, parts)
	}
	t.Logf("%d documents, %d parts", whole, parts)
}

// isDocument reports whether all of the file are sections.
func isDocument(f *ast.File) bool {
	found := false
	for _, d := range f.Decls {
		field, ok := d.(*ast.Field)
		if !ok {
			continue
		}
		name, _, err := ast.LabelName(field.Label)
		if err != nil || !slices.Contains(sections, name) && !strings.HasPrefix(name, "_") {
			return false
		}
		found = found || slices.Contains(sections, name)
	}
	return found
}

// loadErrors loads the documents as one folder.
func loadErrors(t *testing.T, documents ...string) (errs diag.Findings) {
	t.Helper()
	dir := t.TempDir()
	for i, text := range documents {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("p%d.cue", i)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, findings := load.Evaluate(t.Context(), load.Options{Dir: dir, Paths: []string{"."}})
	for _, finding := range findings {
		if finding.Severity == diag.Error {
			errs = append(errs, finding)
		}
	}
	return errs
}
