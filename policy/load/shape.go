package load

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"
)

// shape is what the schema says of one field, as far as it is needed to say
// what is wrong with a document: CUE's own messages speak of disjunctions.
type shape struct {
	fields  map[string]*shapeField
	values  *shape // of a map
	names   bool   // whether a map's keys must be names
	elem    *shape // of a list
	open    bool   // any field is allowed
	kinds   []string
	allowed []string // the strings that are written out
	free    bool     // whether other strings than these are allowed as well
	message string   // the schema's own words for what would be right
	about   string   // the comment of the definition, as one line
	preset  string   // the value that is marked as the default, as CUE
}

// shapeField is one field of a struct.
type shapeField struct {
	*shape
	required bool
	doc      string
}

// schemaShapes returns the shape of #Document.
var schemaShapes = sync.OnceValues(func() (*shape, error) {
	b, err := schemaBuilder()
	if err != nil {
		return nil, err
	}
	return b.definition("#Document"), nil
})

// schemaFiles are the schema's files, parsed.
var schemaFiles = sync.OnceValues(func() ([]*ast.File, error) {
	texts, err := shipped()[0].texts()
	if err != nil {
		return nil, err
	}
	var files []*ast.File
	for _, t := range texts {
		f, err := parser.ParseFile(t.name, t.data, parser.ParseComments)
		if err != nil {
			return nil, fmt.Errorf("parse the built-in schema: %w", err)
		}
		files = append(files, f)
	}
	return files, nil
})

// schemaBuilder returns a builder of the schema's shapes, which are its own.
func schemaBuilder() (*shapeBuilder, error) {
	files, err := schemaFiles()
	if err != nil {
		return nil, err
	}
	return newShapeBuilder(files), nil
}

// nameRule says what #Name is: its regular expression is no help to a reader.
const nameRule = "must be lower-case letters, digits and \"-\", at most 63, beginning and ending with a letter or digit"

// shapeBuilder reads shapes off the syntax of a package: the schema, or a catalog.
type shapeBuilder struct {
	defs  map[string]ast.Expr
	docs  map[string]string
	built map[string]*shape
	// imports are the packages that it refers to, by the names that it gives them.
	imports map[string]*shapeBuilder
}

func newShapeBuilder(files []*ast.File) *shapeBuilder {
	b := &shapeBuilder{defs: map[string]ast.Expr{}, docs: map[string]string{}, built: map[string]*shape{}, imports: map[string]*shapeBuilder{}}
	for _, f := range files {
		for _, d := range f.Decls {
			if field, ok := d.(*ast.Field); ok {
				name, _, _ := ast.LabelName(field.Label)
				b.defs[name] = field.Value
				b.docs[name] = strings.TrimPrefix(docOf(field), "#")
			}
		}
	}
	return b
}

// foreign returns the shape of another package's definition, or nil if the expression
// is none.
func (b *shapeBuilder) foreign(e ast.Expr) *shape {
	ref := reference(e)
	if len(ref) != 2 || b.imports[ref[0]] == nil || ref[1] == "#Name" {
		return nil
	}
	return b.imports[ref[0]].definition(ref[1])
}

// definition returns the shape of a definition. One that refers to itself (as
// #Workloads does) gets a pointer to the shape being built.
func (b *shapeBuilder) definition(name string) *shape {
	if s := b.built[name]; s != nil {
		return s
	}
	s := &shape{about: b.docs[name]}
	b.built[name] = s
	if e := b.defs[name]; e != nil {
		b.add(s, e)
	}
	return s
}

func (b *shapeBuilder) shapeOf(e ast.Expr) *shape {
	if id, ok := e.(*ast.Ident); ok && strings.HasPrefix(id.Name, "#") && id.Name != "#Name" {
		return b.definition(id.Name)
	}
	if s := b.foreign(e); s != nil {
		return s
	}
	s := &shape{}
	b.add(s, e)
	return s
}

// add adds to s what an expression allows.
func (b *shapeBuilder) add(s *shape, e ast.Expr) {
	switch e := e.(type) {
	case *ast.ParenExpr:
		b.add(s, e.X)
	case *ast.Ident:
		switch {
		case e.Name == "#Name":
			s.kind("string")
			s.message, s.free = nameRule, true
		case strings.HasPrefix(e.Name, "#"):
			s.merge(b.definition(e.Name))
		default:
			s.kind(e.Name)
			s.free = s.free || e.Name == "string"
		}
	case *ast.SelectorExpr:
		if other := b.foreign(e); other != nil {
			s.merge(other)
		} else if ref := reference(e); len(ref) == 2 && ref[1] == "#Name" {
			s.kind("string")
			s.message, s.free = nameRule, true
		}
	case *ast.BasicLit:
		switch e.Kind {
		case token.STRING:
			v, _ := strconv.Unquote(e.Value)
			s.kind("string")
			s.allow(v)
		case token.TRUE, token.FALSE:
			s.kind(e.Value)
		case token.INT:
			s.kind("int")
		}
	case *ast.UnaryExpr:
		switch e.Op {
		case token.MAT:
			s.kind("string")
			s.free = true
		case token.MUL:
			s.preset = source(e.X)
			b.add(s, e.X)
		case token.SUB:
			b.add(s, e.X)
		}
	case *ast.BinaryExpr:
		b.add(s, e.X)
		b.add(s, e.Y)
	case *ast.CallExpr:
		if id, ok := e.Fun.(*ast.Ident); ok && id.Name == "error" && len(e.Args) == 1 {
			if lit, ok := e.Args[0].(*ast.BasicLit); ok {
				s.message, _ = strconv.Unquote(lit.Value)
			}
		}
	case *ast.ListLit:
		s.kind("list")
		for _, x := range e.Elts {
			if dots, ok := x.(*ast.Ellipsis); ok {
				x = dots.Type
			}
			s.elem = b.shapeOf(x)
		}
	case *ast.StructLit:
		s.kind("struct")
		b.addStruct(s, e)
	}
}

func (b *shapeBuilder) addStruct(s *shape, st *ast.StructLit) {
	for _, d := range st.Elts {
		switch d := d.(type) {
		case *ast.Ellipsis:
			s.open = true
		case *ast.EmbedDecl:
			b.add(s, d.Expr)
		case *ast.Field:
			if pattern, ok := d.Label.(*ast.ListLit); ok {
				b.addPattern(s, pattern.Elts[0], b.shapeOf(d.Value))
				continue
			}
			name, _, err := ast.LabelName(d.Label)
			if err != nil || hidden(name) {
				continue
			}
			if s.fields == nil {
				s.fields = map[string]*shapeField{}
			}
			s.fields[name] = &shapeField{
				shape:    b.shapeOf(d.Value),
				required: d.Constraint == token.NOT,
				doc:      docOf(d),
			}
		}
	}
}

// addPattern adds the fields that a pattern over their names allows.
func (b *shapeBuilder) addPattern(s *shape, names ast.Expr, values *shape) {
	id, _ := names.(*ast.Ident)
	if id != nil && id.Name != "#Name" && strings.HasPrefix(id.Name, "#") {
		// A pattern of a few names, each a field that may be there.
		for _, name := range b.definition(id.Name).allowed {
			if s.fields == nil {
				s.fields = map[string]*shapeField{}
			}
			s.fields[name] = &shapeField{shape: values}
		}
		return
	}
	s.values = values
	s.names = id != nil && id.Name == "#Name"
}

// docOf returns the comment above a field as one line.
func docOf(n ast.Node) string {
	var lines []string
	for _, g := range ast.Comments(n) {
		if g.Doc {
			lines = append(lines, strings.Fields(g.Text())...)
		}
	}
	return strings.Join(lines, " ")
}

func (s *shape) kind(k string) {
	if !slices.Contains(s.kinds, k) {
		s.kinds = append(s.kinds, k)
	}
}

func (s *shape) allow(v string) {
	if !slices.Contains(s.allowed, v) {
		s.allowed = append(s.allowed, v)
	}
}

func (s *shape) merge(o *shape) {
	for _, k := range o.kinds {
		s.kind(k)
	}
	for name, f := range o.fields {
		if s.fields == nil {
			s.fields = map[string]*shapeField{}
		}
		s.fields[name] = f
	}
	if o.values != nil {
		s.values, s.names = o.values, o.names
	}
	if o.elem != nil {
		s.elem = o.elem
	}
	s.open = s.open || o.open
	s.free = s.free || o.free
	for _, v := range o.allowed {
		s.allow(v)
	}
	if s.message == "" {
		s.message = o.message
	}
}

// child returns the shape of a field or element, or nil if there is none or it
// may be anything.
func (s *shape) child(label string) *shape {
	if s == nil {
		return nil
	}
	if f := s.fields[label]; f != nil {
		return f.shape
	}
	if s.values != nil {
		return s.values
	}
	if s.elem != nil {
		if _, err := strconv.Atoi(label); err == nil {
			return s.elem
		}
	}
	return nil
}

// at returns the shape at a path, or nil.
func (s *shape) at(path []string) *shape {
	for _, p := range path {
		s = s.child(p)
	}
	return s
}

// closed reports whether s is a struct that allows its known fields only.
func (s *shape) closed() bool {
	return s != nil && len(s.fields) > 0 && !s.open && s.values == nil
}

// fieldNames returns the names of a struct's fields, sorted.
func (s *shape) fieldNames() []string { return slices.Sorted(maps.Keys(s.fields)) }

// String says what a value of that shape looks like: "a list of strings".
func (s *shape) String() string {
	var ways []string
	for _, k := range s.kinds {
		switch k {
		case "string":
			if len(s.allowed) == 0 || s.free {
				ways = append(ways, "a string")
				continue
			}
			for _, a := range s.allowed {
				ways = append(ways, strconv.Quote(a))
			}
		case "int":
			ways = append(ways, "a whole number")
		case "list":
			ways = append(ways, "a list of "+s.elem.plural())
		case "struct":
			if s.values != nil {
				ways = append(ways, "fields in braces, each "+s.values.String())
			} else if s.open || len(s.fields) == 0 {
				ways = append(ways, "fields in braces")
			} else {
				ways = append(ways, "fields in braces ("+strings.Join(s.fieldNames(), ", ")+")")
			}
		default:
			ways = append(ways, k)
		}
	}
	return orList(ways)
}

// plural says what the elements of a list look like.
func (s *shape) plural() string {
	if s != nil && len(s.kinds) == 1 && s.kinds[0] == "string" {
		return "strings"
	}
	return "fields in braces"
}

// orList joins words: "a, b or c".
func orList(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}
