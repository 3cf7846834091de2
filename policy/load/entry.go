package load

import (
	"maps"
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"
)

// entrySyntax is a definition of a package that something of a document comes of: a
// definition inside that is a policy, a pool, a cluster or a kind of the schema.
type entrySyntax struct {
	name    string // "#WebService"
	field   *ast.Field
	results []resultSyntax
}

// resultSyntax is a definition inside of an entry.
type resultSyntax struct {
	name    string // "#policy"
	section section
	doc     string
}

// catalogOf returns the entries among the definitions of a package, sorted by name, and
// a builder of their shapes.
func catalogOf(files []*ast.File) (*shapeBuilder, []entrySyntax) {
	b := newShapeBuilder(files)
	found := map[string]entrySyntax{}
	for _, f := range files {
		schemaName := schemaImport(f)
		if schemaName == "" {
			continue
		}
		if schema, err := schemaBuilder(); err == nil { // the schema of this build can be read
			b.imports[schemaName] = schema
		}
		for _, d := range f.Decls {
			field, ok := d.(*ast.Field)
			if !ok || field.Constraint != token.ILLEGAL {
				continue
			}
			name, _, err := ast.LabelName(field.Label)
			if err != nil || !strings.HasPrefix(name, "#") {
				continue
			}
			if results := resultsIn(field.Value, schemaName); len(results) > 0 {
				found[name] = entrySyntax{name, field, results}
			}
		}
	}
	var entries []entrySyntax
	for _, name := range slices.Sorted(maps.Keys(found)) {
		entries = append(entries, found[name])
	}
	return b, entries
}

// resultsIn returns what comes of an entry, in the order in which it is written.
func resultsIn(e ast.Expr, schema string) (results []resultSyntax) {
	st, ok := e.(*ast.StructLit)
	if !ok {
		return nil
	}
	for _, d := range st.Elts {
		field, ok := d.(*ast.Field)
		if !ok {
			continue
		}
		name, _, err := ast.LabelName(field.Label)
		if err != nil || !strings.HasPrefix(name, "#") {
			continue
		}
		ref := entryIn(field.Value)
		if ref == nil || ref[0] != schema {
			continue
		}
		for _, s := range sections {
			if s.definition() == ref[1] {
				results = append(results, resultSyntax{name, s, docOf(field)})
			}
		}
	}
	return results
}
