package load

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/parser"

	"github.com/kubectl-sched/kubectl-sched/catalog"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// Catalog is a package of ready-made policies.
type Catalog struct {
	// ImportPath is what a document imports.
	ImportPath string `json:"importPath"`
	// Package is the name by which the document refers to it then.
	Package string `json:"package"`
	// Dir is the folder that it was read from, if any.
	Dir string `json:"-"`
	// Module is the module in a registry that it was fetched from, with its major
	// version, in Version; both are empty for other catalogs.
	Module  string `json:"module,omitempty"`
	Version string `json:"version,omitempty"`
	// Entries are sorted by name.
	Entries []Entry `json:"entries"`
	// Examples has a folder for each entry that has an example, named as the entry is:
	// a document that uses it, tests, and workloads in the folder "manifests".
	Examples fs.FS `json:"-"`

	// files has the package at its top.
	files fs.FS
}

// ExampleFile is the document of an example, and ExampleManifests the folder with the
// workloads that it is for.
const (
	ExampleFile      = "placement.cue"
	ExampleManifests = "manifests"
)

// Shipped reports whether the catalog is the one of this build.
func (c *Catalog) Shipped() bool { return c.Dir == "" && c.Module == "" }

// CopyExample copies the example of an entry to a folder below dir, which it returns. It
// can be evaluated there: where the catalog is not the one that is shipped, dir becomes a
// module that depends on the catalog's, if that is in a registry, or has it vendored.
func (c *Catalog) CopyExample(dir string, e *Entry) (folder string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("copy the example of %s: %w", e.Name, err)
		}
	}()
	files, err := fs.Sub(c.Examples, e.Name)
	if err != nil {
		return "", err
	}
	folder = filepath.Join(dir, e.Name)
	if err := os.CopyFS(folder, files); err != nil || c.Shipped() {
		return folder, err
	}
	module := []byte("module: \"catalog.local@v0\"\nlanguage: version: " + strconv.Quote(policy.SchemaLanguage) + "\n")
	if c.Module != "" {
		return folder, writeFile(filepath.Join(dir, moduleFileName), c.withDependency(module), false)
	}
	if err := writeFile(filepath.Join(dir, moduleFileName), module, false); err != nil {
		return "", err
	}
	importPath, _, _ := strings.Cut(c.ImportPath, ":")
	names, err := fs.Glob(c.files, "*.cue")
	if err != nil {
		return "", err
	}
	for _, name := range names {
		data, err := fs.ReadFile(c.files, name)
		if err != nil {
			return "", err
		}
		if err := writeFile(filepath.Join(dir, "cue.mod", "pkg", filepath.FromSlash(importPath), name), data, false); err != nil {
			return "", err
		}
	}
	return folder, nil
}

// Entry is one ready-made policy, with all that belongs to it.
type Entry struct {
	// Name is how people call it ("web-service"), Definition how CUE does
	// ("#WebService").
	Name       string `json:"name"`
	Definition string `json:"definition"`
	// Summary says in one sentence what it is for.
	Summary string `json:"summary"`
	// Doc are the paragraphs of its comment.
	Doc []string `json:"doc"`
	// Parameters are what a use of it may say, in the order of the definition. Their
	// paths are their names.
	Parameters []Field `json:"parameters"`
	// Results are what comes of it.
	Results []Result `json:"results"`
}

// Result is a definition inside of an entry that a document takes over.
type Result struct {
	// Name is the definition's name ("#policy"), Section where it belongs ("policies").
	Name    string `json:"name"`
	Section string `json:"section"`
	Doc     string `json:"doc,omitempty"`
}

// Entry returns the entry of that name or definition; the error names those that there are.
func (c *Catalog) Entry(name string) (*Entry, error) {
	var names []string
	for i := range c.Entries {
		e := &c.Entries[i]
		if e.Name == name || e.Definition == name || e.Definition == "#"+name {
			return e, nil
		}
		names = append(names, e.Name)
	}
	if near, ok := diag.Nearest(name, names); ok {
		return nil, fmt.Errorf("the catalog has no entry %q; did you mean %q?", name, near)
	}
	return nil, fmt.Errorf("the catalog has no entry %q; it has %s", name, strings.Join(names, ", "))
}

// ReadCatalog returns the catalog that this build carries.
func ReadCatalog() (*Catalog, error) {
	c := &Catalog{ImportPath: policy.ModulePath + "/catalog", Examples: catalog.Examples()}
	if err := c.read(catalog.Source(), "."); err != nil {
		return nil, fmt.Errorf("read the built-in catalog: %w", err)
	}
	return c, nil
}

// ReadCatalogFrom returns the catalog in a folder: the package of a CUE module, or one
// that is vendored below a module's cue.mod. It is an error if nothing in it is an entry.
func ReadCatalogFrom(dir string) (*Catalog, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("read the catalog %s: %w", dir, err)
	}
	root, err := os.OpenRoot(abs)
	if err != nil {
		return nil, fmt.Errorf("read the catalog %s: %s", dir, pathProblem(err))
	}
	c := &Catalog{Dir: dir, Examples: os.DirFS(abs)}
	if err := c.read(root.FS(), dir); err != nil {
		return nil, fmt.Errorf("read the catalog %s: %w", dir, err)
	}
	if len(c.Entries) == 0 {
		return nil, fmt.Errorf("the package in %s has no entry: a definition with a definition inside that is a #Policy or #Pool of %s", dir, schemaPackage)
	}
	if c.ImportPath, err = importPathOf(abs); err != nil {
		return nil, fmt.Errorf("read the catalog %s: %w", dir, err)
	}
	if path.Base(c.ImportPath) != c.Package {
		c.ImportPath += ":" + c.Package
	}
	return c, nil
}

// importPathOf returns what a document imports for the package in a folder.
func importPathOf(dir string) (string, error) {
	root, found := moduleRoot(dir)
	if !found {
		return "", fmt.Errorf("it is in no CUE module, so that nobody can import it; run \"cue mod init\" in the root of its repository")
	}
	rel, err := filepath.Rel(root, dir)
	if err != nil {
		return "", err
	}
	rel = filepath.ToSlash(rel)
	for _, kind := range vendorKinds {
		if below, ok := strings.CutPrefix(rel, "cue.mod/"+kind+"/"); ok {
			return below, nil
		}
	}
	text, err := os.ReadFile(filepath.Join(root, moduleFileName))
	if err != nil {
		return "", err
	}
	said, err := readModuleFile(moduleFileName, text)
	if err != nil {
		return "", err
	}
	return path.Join(said.module, rel), nil
}

// read reads the package at the top of files.
func (c *Catalog) read(files fs.FS, dir string) error {
	c.files = files
	entries, err := fs.ReadDir(files, ".")
	if err != nil {
		return err
	}
	var syntax []*ast.File
	for _, e := range entries {
		if e.IsDir() || !isPolicyFile(e.Name()) {
			continue
		}
		f, err := files.Open(e.Name())
		if err != nil {
			return err
		}
		data, err := readLimited(f)
		if err := cmp.Or(err, f.Close()); err != nil {
			return err
		}
		parsed, err := parser.ParseFile(path.Join(filepath.ToSlash(dir), e.Name()), data, parser.ParseComments)
		if err != nil {
			return err
		}
		if name := parsed.PackageName(); c.Package == "" {
			c.Package = name
		} else if name != c.Package {
			return fmt.Errorf("the files are of two packages, %q and %q", c.Package, name)
		}
		syntax = append(syntax, parsed)
	}
	if c.Package == "" {
		return fmt.Errorf("it has no CUE package")
	}
	b, found := catalogOf(syntax)
	for _, e := range found {
		c.Entries = append(c.Entries, b.entry(e))
	}
	slices.SortFunc(c.Entries, func(a, b Entry) int { return cmp.Compare(a.Name, b.Name) })
	return nil
}

// entry describes an entry.
func (b *shapeBuilder) entry(e entrySyntax) Entry {
	entry := Entry{Name: entryName(e.name), Definition: e.name, Doc: paragraphs(e.field)}
	if len(entry.Doc) > 0 {
		entry.Summary = summary(e.name, entry.Doc[0])
	}
	for _, r := range e.results {
		entry.Results = append(entry.Results, Result{r.name, string(r.section), r.doc})
	}
	s := b.definition(e.name)
	for _, name := range s.fieldOrder(e.field.Value) {
		f := s.fields[name]
		entry.Parameters = append(entry.Parameters, described{f.shape, []string{name}, f.doc, f.required}.field(true))
	}
	return entry
}

// fieldOrder returns the names of the fields in the order in which an expression writes
// them, those that it embeds last.
func (s *shape) fieldOrder(e ast.Expr) (names []string) {
	if st, ok := e.(*ast.StructLit); ok {
		for _, d := range st.Elts {
			field, ok := d.(*ast.Field)
			if !ok {
				continue
			}
			if name, _, err := ast.LabelName(field.Label); err == nil && s.fields[name] != nil && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	for _, name := range s.fieldNames() {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// wordBegin is where a word of a definition's name begins: at a capital behind a small
// letter, and at the last capital of several.
var wordBegin = regexp.MustCompile(`([a-z0-9])([A-Z])|([A-Z])([A-Z][a-z])`)

// entryName is how people call a definition: "gpu-gang" for "#GPUGang".
func entryName(definition string) string {
	name := strings.TrimPrefix(definition, "#")
	return strings.ToLower(wordBegin.ReplaceAllString(name, "$1$3-$2$4"))
}

// paragraphs returns the comment above a field, each paragraph as one line.
func paragraphs(field *ast.Field) (out []string) {
	var text strings.Builder
	for _, g := range ast.Comments(field) {
		if g.Doc {
			text.WriteString(g.Text())
		}
	}
	for p := range strings.SplitSeq(text.String(), "\n\n") {
		if words := strings.Fields(p); len(words) > 0 {
			out = append(out, strings.Join(words, " "))
		}
	}
	return out
}

// summary is the first sentence of a comment, without the definition's name.
func summary(definition, doc string) string {
	text := firstSentence(strings.TrimPrefix(doc, definition+" "))
	text, _, _ = strings.Cut(text, ": ")
	return text
}
