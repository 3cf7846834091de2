package load

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/build"

	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// use is a hidden top-level field that takes an entry of a catalog and gives it
// parameters, such as
//
//	_web: catalog.#WebService & {zones: 3}
//
// What comes of it are definitions inside, which sections refer to. CUE reports a wrong
// parameter wherever its value arrives; here it is reported once, where it was written.
type use struct {
	label string
	entry string // as it is written: "catalog.#WebService"
	at    ast.Node
	shape *shape // nil if there is no such entry
	// results are the definitions that the entry has, entries the others of the catalog.
	results, entries []string
	own              bool // written in the folder's own files
	broken           bool
}

// findUses returns the uses of entries among the files of the package.
func (ev *evaluation) findUses(inst *build.Instance) map[string]*use {
	uses := map[string]*use{}
	for _, src := range ev.folder.allFiles() {
		for _, d := range src.syntax.Decls {
			field, ok := d.(*ast.Field)
			if !ok {
				continue
			}
			label, _, err := ast.LabelName(field.Label)
			if err != nil || !strings.HasPrefix(label, "_") {
				continue
			}
			ref := entryIn(field.Value)
			b, entries := ev.catalogIn(inst, src.syntax, ref)
			if len(entries) == 0 {
				continue // a package of something else
			}
			u := &use{label: label, entry: strings.Join(ref, "."), at: field.Value, own: slices.Contains(ev.folder.files, src)}
			for _, e := range entries {
				u.entries = append(u.entries, ref[0]+"."+e.name)
				if e.name == ref[1] {
					u.shape = b.definition(e.name)
					for _, r := range e.results {
						u.results = append(u.results, r.name)
					}
				}
			}
			if u.shape != nil || b.defs[ref[1]] == nil {
				uses[label] = u
			}
		}
	}
	return uses
}

// catalogIn returns the entries of the package that a reference in a file leads to; none
// if that is no catalog.
func (ev *evaluation) catalogIn(inst *build.Instance, f *ast.File, ref []string) (*shapeBuilder, []entrySyntax) {
	if ref == nil {
		return nil, nil
	}
	imported := inst.LookupImport(importedAs(f, ref[0]))
	if imported == nil || imported.ImportPath == schemaPackage {
		return nil, nil
	}
	known, ok := ev.catalogs[imported]
	if !ok {
		known.builder, known.entries = catalogOf(imported.Files)
		if ev.catalogs == nil {
			ev.catalogs = map[*build.Instance]catalogSyntax{}
		}
		ev.catalogs[imported] = known
	}
	return known.builder, known.entries
}

// catalogSyntax is what catalogOf returns of a package.
type catalogSyntax struct {
	builder *shapeBuilder
	entries []entrySyntax
}

// uncheckedUses finds, in the folder's own files, entries that are used in an expression
// or a let: of what comes of them CUE takes a part, and a parameter that is misspelt is no
// error.
func (ev *evaluation) uncheckedUses(inst *build.Instance) (findings diag.Findings) {
	for _, src := range ev.folder.files {
		found := func(at ast.Node, e ast.Expr) {
			ref := entryIn(e)
			if _, entries := ev.catalogIn(inst, src.syntax, ref); len(entries) == 0 {
				return
			}
			name := strings.Join(ref, ".")
			f := ev.finding(nil, "policy/reference", fmt.Sprintf(
				"the parameters of %s are not checked here; give it a hidden field of its own, such as _web: %[1]s & {…}, and refer to that", name))
			f.Range = ev.set.rangeOf(at)
			findings = append(findings, f)
		}
		ast.Walk(src.syntax, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.LetClause:
				found(n.Ident, n.Expr)
			case *ast.SelectorExpr:
				if inner, ok := n.X.(*ast.ParenExpr); ok {
					found(inner, inner.X)
				}
			}
			return true
		}, nil)
	}
	return findings
}

// entryIn returns the reference to a definition of another package that an expression
// is unified with, or nil.
func entryIn(e ast.Expr) []string {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return entryIn(e.X)
	case *ast.BinaryExpr:
		if ref := entryIn(e.X); ref != nil {
			return ref
		}
		return entryIn(e.Y)
	case *ast.SelectorExpr:
		if ref := reference(e); len(ref) == 2 && strings.HasPrefix(ref[1], "#") {
			return ref
		}
	}
	return nil
}

// importedAs returns the path that a file imports by a name, or "".
func importedAs(f *ast.File, name string) string {
	for spec := range f.ImportSpecs() {
		importPath := strings.Trim(spec.Path.Value, `"`)
		if importName(spec) == name {
			return importPath
		}
	}
	return ""
}

// importName returns the name by which a file refers to what it imports.
func importName(spec *ast.ImportSpec) string {
	if spec.Name != nil {
		return spec.Name.Name
	}
	importPath := strings.Trim(spec.Path.Value, `"`)
	if base, name, ok := strings.Cut(importPath, ":"); ok && base != "" {
		return name
	}
	base, _, _ := strings.Cut(importPath, "@")
	return path.Base(base)
}

// checkUses judges the parameters of each use, and returns what is wrong with those of
// the folder itself; the folders above have their own said where they are evaluated.
func (ev *evaluation) checkUses() (findings diag.Findings) {
	if len(ev.uses) == 0 {
		return nil
	}
	fields, err := ev.value.Fields(cue.Hidden(true))
	if err != nil {
		return nil //nolint:nilerr // what is no struct is said where the folder is validated
	}
	for fields.Next() {
		u := ev.uses[fields.Selector().String()]
		if u == nil {
			continue
		}
		fs := ev.checkUse(u, fields.Value())
		u.broken = fs.HasErrors()
		if u.own {
			findings = append(findings, fs...)
		}
	}
	return findings
}

func (ev *evaluation) checkUse(u *use, v cue.Value) diag.Findings {
	at := []string{u.label}
	if u.shape == nil {
		f := ev.finding(nil, "policy/reference", fmt.Sprintf("the catalog has no %s%s", u.entry, suggest(u.entry, u.entries)))
		f.Range = ev.set.rangeOf(u.at)
		return diag.Findings{f}
	}
	findings := ev.unknownFields(nil, at, certain([]*node{ev.index.root}, u.label), u.shape)
	if err := v.Validate(cue.Concrete(true), cue.Final()); err != nil {
		findings = append(findings, ev.objectFindings(nil, at, v, u.shape, err)...)
	}
	findings = dedupe(findings)
	for i := range findings {
		findings[i].Subject = u.entry
	}
	return findings
}

// usesBroken reports whether an object is made of an entry whose parameters are wrong.
func (ev *evaluation) usesBroken(nodes []*node) bool {
	return slices.ContainsFunc(nodes, func(n *node) bool {
		return slices.ContainsFunc(n.refs, func(ref []string) bool {
			u := ev.uses[ref[0]]
			return u != nil && u.broken
		})
	})
}

// noResult returns the finding about an object that asks an entry for what does not come
// of it.
func (ev *evaluation) noResult(o *object, nodes []*node) diag.Findings {
	for _, n := range nodes {
		for _, ref := range n.refs {
			u := ev.uses[ref[0]]
			if u == nil || u.shape == nil || len(ref) > 1 && slices.Contains(u.results, ref[1]) {
				continue
			}
			asked := strings.Join(ref, ".")
			var known []string
			for _, r := range u.results {
				known = append(known, u.label+"."+r)
			}
			f := ev.finding(o, "policy/reference", fmt.Sprintf("%s is nothing that comes of %s%s", asked, u.entry, suggest(asked, known)))
			f.Range = ev.set.rangeOf(n.places[0].value)
			return diag.Findings{f}
		}
	}
	return nil
}

// shapeAt returns the shape at a path of the document, or of an entry's parameters.
func (ev *evaluation) shapeAt(path []string) *shape {
	if len(path) > 0 && ev.uses[path[0]] != nil {
		return ev.uses[path[0]].shape.at(path[1:])
	}
	return ev.shapes.at(path)
}

// inObject returns what of a path is inside of the object that it leads to: behind
// "policies.web", or behind the field that uses an entry.
func inObject(path []string) []string {
	n := min(2, len(path))
	if n > 0 && hidden(path[0]) {
		n = 1
	}
	return path[n:]
}

// inside is inObject, or the last name of the path where nothing is.
func inside(path []string) []string {
	if rest := inObject(path); len(rest) > 0 {
		return rest
	}
	return path[len(path)-1:]
}
