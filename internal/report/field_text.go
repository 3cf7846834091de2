package report

import (
	"fmt"
	"io"
	"strings"
)

// Field is the documentation of one field of the policy language.
type Field struct {
	// Path is dotted, with "NAME" for what the user names; empty for the
	// document.
	Path, Type, Default, Doc string
	Required                 bool
	// Allowed says what would be right, where the type does not.
	Allowed string
	// CompilesTo, Limits and Example are those of the intent that the field
	// belongs to; empty for the others.
	CompilesTo []string
	Limits     string
	Example    string
	// Fields are the fields below, one level deep.
	Fields []Field
}

// FieldText writes the documentation as "kubectl explain" lays it out.
func FieldText(w io.Writer, f Field, o Options) error {
	var b strings.Builder
	t := newTextWriter(&b, o)
	path := f.Path
	if path == "" {
		path = "(the document)"
	}
	t.label("FIELD", path)
	t.label("TYPE", f.Type)
	if f.Default != "" {
		t.label("DEFAULT", f.Default)
	}
	if f.Required {
		t.label("REQUIRED", "yes")
	}
	t.section("DESCRIPTION", f.Doc)
	t.section("ALLOWED", f.Allowed)
	if len(f.CompilesTo) > 0 {
		t.title("COMPILES TO")
		for _, field := range f.CompilesTo {
			b.WriteString(wrap("    "+field, o.width(), "      ") + "\n")
		}
	}
	t.section("LIMITS", f.Limits)
	if f.Example != "" {
		t.title("EXAMPLE")
		for line := range strings.Lines(f.Example) {
			b.WriteString("    " + strings.ReplaceAll(strings.TrimRight(line, "\n"), "\t", "  ") + "\n")
		}
	}
	if len(f.Fields) > 0 {
		t.title("FIELDS")
	}
	for i, child := range f.Fields {
		if i > 0 {
			b.WriteByte('\n')
		}
		name := child.Path[strings.LastIndexByte(child.Path, '.')+1:]
		head := fmt.Sprintf("    %s <%s>", name, child.Type)
		if child.Required {
			head += " -required-"
		}
		b.WriteString(wrap(head, o.width(), "        ") + "\n")
		if child.Doc != "" {
			b.WriteString(wrap("      "+child.Doc, o.width(), "      ") + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (t textWriter) label(name, text string) {
	t.b.WriteString(t.style.paint(bold, name+":") + wrap(" "+text, t.o.width()-len(name)-1, "    ") + "\n")
}

func (t textWriter) title(name string) {
	t.b.WriteString("\n" + t.style.paint(bold, name+":") + "\n")
}

func (t textWriter) section(name, text string) {
	if text == "" {
		return
	}
	t.title(name)
	t.b.WriteString(wrap("    "+text, t.o.width(), "    ") + "\n")
}
