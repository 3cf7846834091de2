package take

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/parser"

	"github.com/kubectl-sched/kubectl-sched/policy/load"
)

// document is what of a package's files matters to what is added.
type document struct {
	file *ast.File // nil for a new one
	// names are those of the objects, by section, with what each is.
	names map[string]map[string]ast.Expr
	// hidden are the top-level fields that the package keeps to itself, and uses the
	// definitions that these are made of.
	hidden map[string]bool
	uses   map[string]string
}

// read parses the files of the package.
func read(r Request) (*document, error) {
	doc := &document{names: map[string]map[string]ast.Expr{}, hidden: map[string]bool{}, uses: map[string]string{}}
	for _, text := range r.Others {
		f, err := parser.ParseFile("", text)
		if err != nil {
			continue // said by whoever reads it
		}
		doc.add(f)
	}
	if len(r.Text) == 0 {
		return doc, nil
	}
	f, err := parser.ParseFile("", r.Text, parser.ParseComments)
	if err != nil {
		return nil, fmt.Errorf("the file cannot be parsed: %w", err)
	}
	doc.file = f
	doc.add(f)
	return doc, nil
}

func (d *document) add(f *ast.File) {
	for _, decl := range f.Decls {
		field, ok := decl.(*ast.Field)
		if !ok {
			continue
		}
		name, _, err := ast.LabelName(field.Label)
		if err != nil {
			continue
		}
		if strings.HasPrefix(name, "_") {
			d.hidden[name] = true
			if definition := definitionIn(field.Value); definition != "" {
				d.uses[name] = definition
			}
			continue
		}
		st, ok := field.Value.(*ast.StructLit)
		if !ok {
			continue
		}
		for _, e := range st.Elts {
			object, ok := e.(*ast.Field)
			if !ok {
				continue
			}
			label, _, err := ast.LabelName(object.Label)
			if err != nil {
				continue
			}
			if d.names[name] == nil {
				d.names[name] = map[string]ast.Expr{}
			}
			if d.from(d.names[name][label]) == "" {
				d.names[name][label] = object.Value
			}
		}
	}
}

// definitionIn returns the definition of another package in an expression, or "".
func definitionIn(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BinaryExpr:
		if d := definitionIn(e.X); d != "" {
			return d
		}
		return definitionIn(e.Y)
	case *ast.SelectorExpr:
		if name, _, err := ast.LabelName(e.Sel); err == nil && strings.HasPrefix(name, "#") {
			return name
		}
	}
	return ""
}

// from returns the entry that an object comes of, or "".
func (d *document) from(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BinaryExpr:
		if entry := d.from(e.X); entry != "" {
			return entry
		}
		return d.from(e.Y)
	case *ast.SelectorExpr:
		if id, ok := e.X.(*ast.Ident); ok {
			return d.uses[id.Name]
		}
	}
	return ""
}

// importName returns the name by which the file refers to the catalog, or will.
func (d *document) importName(c *load.Catalog) string {
	taken := map[string]bool{}
	if d.file != nil {
		for spec := range d.file.ImportSpecs() {
			path, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				continue
			}
			name := path[strings.LastIndexAny(path, "/:")+1:]
			name, _, _ = strings.Cut(name, "@")
			if spec.Name != nil {
				name = spec.Name.Name
			}
			if path == c.ImportPath {
				return name
			}
			taken[name] = true
		}
	}
	name := c.Package
	for n := 2; taken[name]; n++ {
		name = c.Package + strconv.Itoa(n)
	}
	return name
}

// with returns the file's text with the lines at its end, and with the import.
func (d *document) with(r Request, imported, lines string) ([]byte, error) {
	spec := strconv.Quote(r.Catalog.ImportPath)
	if imported != r.Catalog.Package {
		spec = imported + " " + spec
	}
	if d.file == nil {
		return load.Format([]byte("package "+r.Package+"\n\nimport "+spec+"\n\n"+lines), "")
	}
	text := r.Text
	if !d.imports(r.Catalog.ImportPath) {
		at, insert := d.importPlace(text, spec)
		text = bytes.Join([][]byte{text[:at], []byte(insert), text[at:]}, nil)
	}
	use, err := load.Format([]byte(lines), "")
	if err != nil {
		return nil, err
	}
	text = append(bytes.TrimRight(text, "\n"), "\n\n"...)
	text = append(text, use...)
	// A file that was in the form that CUE gives it stays so.
	if formatted, err := load.Format(r.Text, ""); err == nil && bytes.Equal(formatted, r.Text) {
		return load.Format(text, "")
	}
	return text, nil
}

func (d *document) imports(path string) bool {
	for spec := range d.file.ImportSpecs() {
		if spec.Path.Value == strconv.Quote(path) {
			return true
		}
	}
	return false
}

// importPlace returns where in the text an import goes, and how it is written there:
// behind those that there are, or else behind the package clause.
func (d *document) importPlace(text []byte, spec string) (at int, insert string) {
	var last *ast.ImportDecl
	for _, decl := range d.file.Decls {
		switch decl := decl.(type) {
		case *ast.ImportDecl:
			last = decl
		case *ast.Package:
			at = decl.Name.End().Offset()
		}
	}
	switch {
	case last == nil:
		return endOfLine(text, at), "\n\nimport " + spec
	case last.Rparen.IsValid():
		at = last.Rparen.Offset()
		at = bytes.LastIndexByte(text[:at], '\n') + 1
		if strings.TrimSpace(string(text[at:last.Rparen.Offset()])) != "" {
			return last.Rparen.Offset(), "\n\t" + spec + "\n"
		}
		return at, "\t" + spec + "\n"
	}
	first := last.Specs[0]
	return endOfLine(text, first.End().Offset()), "\nimport " + spec
}

// endOfLine returns where the line ends that has the offset.
func endOfLine(text []byte, offset int) int {
	if i := bytes.IndexByte(text[offset:], '\n'); i >= 0 {
		return offset + i
	}
	return len(text)
}
