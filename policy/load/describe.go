package load

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// Field documents one field of the language.
type Field struct {
	// Path is the field's dotted path; "NAME" stands for what the user names,
	// and empty is the document.
	Path string
	// Doc is the schema's own comment, as one line.
	Doc string
	// Type says what may be written: "a list of strings".
	Type string
	// Default is what holds if nothing is written, as CUE; empty if nothing does.
	Default string
	// Required says that the field must be there.
	Required bool
	// Allowed says what would be right, in the schema's words; may be empty.
	Allowed string
	// Fields are the fields below, by name, one level deep. A map of things that
	// the user names has those of each thing.
	Fields []Field
}

// anyName stands for a name of the user's own choice.
const anyName = "NAME"

// Describe returns the documentation of the field at the path, such as
// "policies", "spread", "maxSkew". What the user names may be left out of the
// path or be any name. The error names the field that does not exist, and those
// that do.
func Describe(path ...string) (Field, error) {
	top, err := schemaShapes()
	if err != nil {
		return Field{}, err
	}
	at := described{shape: top}
	for _, name := range path {
		next, err := at.step(name)
		if err != nil {
			return Field{}, err
		}
		at = next
	}
	return at.field(true), nil
}

// described is a place in the schema.
type described struct {
	*shape
	path     []string
	doc      string
	required bool
}

// step goes to a field; a name or an index is stepped over where the field is
// not there but below it.
func (d described) step(name string) (described, error) {
	if f := d.fields[name]; f != nil {
		return described{f.shape, append(slices.Clip(d.path), name), f.doc, f.required}, nil
	}
	if inner := d.inside(); inner != nil {
		below := described{shape: inner, path: slices.Clip(d.path), doc: d.doc}
		if d.values != nil {
			below.path = append(below.path, anyName)
		}
		if inner.fields[name] != nil {
			return below.step(name)
		}
		if d.values != nil && !d.nested() {
			return below, nil
		}
		if d.values != nil {
			if _, near := diag.Nearest(name, inner.fieldNames()); !near {
				return below, nil
			}
		}
		return described{}, below.unknown(name)
	}
	return described{}, d.unknown(name)
}

// inside is the shape of each value of a map or element of a list, or nil.
func (d described) inside() *shape {
	if d.values != nil {
		return d.values
	}
	return d.elem
}

// documentation is the comment above the field, or else above the definition that it
// refers to.
func (d described) documentation() string {
	switch inner := d.inside(); {
	case d.doc != "":
		return d.doc
	case d.about != "":
		return d.about
	case inner != nil:
		return inner.about
	}
	return ""
}

// typeName says what may be written, without the fields, which are listed.
func (d described) typeName() string {
	switch {
	case d.values != nil && d.nested():
		return "a map of objects"
	case d.values != nil:
		return "a map, each value " + d.values.String()
	case len(d.kinds) == 1 && d.kinds[0] == "struct":
		return "an object"
	case d.elem != nil && d.nested() && len(d.kinds) == 1:
		return "a list of objects"
	}
	return d.String()
}

// defaultIn returns the default that a comment names: "(default 1)".
func defaultIn(doc string) string {
	_, rest, _ := strings.Cut(doc, "(default ")
	value, _, _ := strings.Cut(rest, ")")
	return value
}

// nested reports whether what is inside has fields.
func (d described) nested() bool { return d.inside() != nil && len(d.inside().fields) > 0 }

func (d described) unknown(name string) error {
	where := "the document"
	if len(d.path) > 0 {
		where = strings.Join(d.path, ".")
	}
	names := d.fieldNames()
	if len(names) == 0 {
		return fmt.Errorf("%s has no fields, and so no %q", where, name)
	}
	if near, ok := diag.Nearest(name, names); ok {
		return fmt.Errorf("%s has no field %q; did you mean %q?", where, name, near)
	}
	return fmt.Errorf("%s has no field %q; it has %s", where, name, orList(names))
}

// field returns the documentation, with the fields below if deep.
func (d described) field(deep bool) Field {
	f := Field{
		Path: strings.Join(d.path, "."), Doc: d.documentation(), Type: d.typeName(),
		Default: cmp.Or(d.preset, defaultIn(d.doc)), Required: d.required, Allowed: d.message,
	}
	if !deep {
		return f
	}
	below := d
	for below.nested() && len(below.fields) == 0 {
		if below.values != nil {
			below.path = append(slices.Clip(below.path), anyName)
		}
		below.shape = below.inside()
	}
	for _, name := range below.fieldNames() {
		child := below.fields[name]
		f.Fields = append(f.Fields, described{child.shape, append(slices.Clip(below.path), name), child.doc, child.required}.field(false))
	}
	return f
}
