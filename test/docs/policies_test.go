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

// CUE on a page is right: what is a whole document loads without errors, and the rest
// can be parsed.
func TestPolicies(t *testing.T) {
	t.Parallel()
	whole, parts := 0, 0
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			if b.title != "" || b.language != "cue" && (b.language != "" || !startsSection.MatchString(b.text)) {
				continue // what has a title is run, mistakes included
			}
			where := fmt.Sprintf("%s:%d", p.path, b.line)
			f, err := parser.ParseFile(where, b.text, parser.ParseComments)
			if err != nil {
				t.Errorf("%s: %v", where, err)
				continue
			}
			if !isDocument(f) {
				parts++
				continue
			}
			whole++
			if errs := loadErrors(t, f, b.text); len(errs) > 0 {
				t.Errorf("%s: %v", where, errs)
			}
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
		if err != nil || !slices.Contains(sections, name) {
			return false
		}
		found = true
	}
	return found
}

// loadErrors loads the document, with what makes a document of sections alone.
func loadErrors(t *testing.T, f *ast.File, text string) (errs diag.Findings) {
	t.Helper()
	var b strings.Builder
	if f.PackageName() == "" {
		b.WriteString("package p\n")
	}
	b.WriteString(text) // the schema is applied to sections in any case
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "p.cue"), []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	_, findings := load.Evaluate(t.Context(), load.Options{Dir: dir, Paths: []string{"."}})
	for _, finding := range findings {
		if finding.Severity == diag.Error {
			errs = append(errs, finding)
		}
	}
	return errs
}
