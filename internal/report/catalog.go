package report

import (
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
)

// CatalogEntry is the documentation of an entry of a catalog.
type CatalogEntry struct {
	Name, Definition, Summary string
	// Import is what a document imports.
	Import string
	// Doc are the paragraphs of the entry's comment.
	Doc []string
	// Parameters are what a use may say; Results what comes of it, by section.
	Parameters []Field
	Results    []CatalogResult
	// Example is a document that uses it; empty for none.
	Example string
}

// CatalogResult is a definition that a document takes over, and the section where it
// belongs.
type CatalogResult struct{ Name, Section string }

// CatalogList writes what there is: as a table, as names, or as a document for tools.
func CatalogList(w io.Writer, format Format, entries []CatalogEntry, o Options) error {
	switch format {
	case Name:
		for _, e := range entries {
			if _, err := fmt.Fprintln(w, e.Name); err != nil {
				return err
			}
		}
		return nil
	case Text:
	default:
		items := make([]map[string]any, len(entries))
		for i, e := range entries {
			items[i] = e.document()
		}
		return o.documents(w, format, "CatalogEntryList", map[string]any{"items": items})
	}
	t := o.table()
	t.add("NAME", "MAKES", "WHAT IT DOES")
	for _, e := range entries {
		var makes []string
		for _, r := range e.Results {
			if word := singular(r.Section); !slices.Contains(makes, word) {
				makes = append(makes, word)
			}
		}
		t.add(e.Name, strings.Join(makes, ", "), e.Summary)
	}
	_, err := io.WriteString(w, t.text(o.width()))
	return err
}

// Name is a format for other commands: one name a line.
const Name Format = "name"

// document is the entry for tools.
func (e CatalogEntry) document() map[string]any {
	parameters := make([]map[string]any, len(e.Parameters))
	for i, p := range e.Parameters {
		parameters[i] = p.document()
	}
	results := make([]map[string]any, len(e.Results))
	for i, r := range e.Results {
		results[i] = map[string]any{"name": r.Name, "section": r.Section}
	}
	d := map[string]any{
		"name": e.Name, "definition": e.Definition, "import": e.Import, "summary": e.Summary, "doc": e.Doc,
		"parameters": parameters, "results": results,
	}
	if e.Example != "" {
		d["example"] = e.Example
	}
	return d
}

func (f Field) document() map[string]any {
	d := map[string]any{"name": path.Base(f.Path), "type": f.Type, "required": f.Required, "doc": f.Doc}
	if f.Default != "" {
		d["default"] = f.Default
	}
	if f.Allowed != "" {
		d["allowed"] = f.Allowed
	}
	return d
}

// CatalogShow writes the documentation of an entry, as "kubectl explain" lays it out;
// compiled is what its example comes to, and may be nil.
func CatalogShow(w io.Writer, format Format, e CatalogEntry, compiled []Plan, o Options) error {
	if format != Text {
		return o.documents(w, format, "CatalogEntry", e.document())
	}
	var b strings.Builder
	t := newTextWriter(&b, o)
	t.label("ENTRY", e.Name)
	t.label("IMPORT", e.Import)
	t.label("USED AS", e.Definition)
	t.title("DESCRIPTION")
	for i, p := range e.Doc {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(wrap("    "+p, o.width(), "    ") + "\n")
	}
	t.title("PARAMETERS")
	for i, p := range e.Parameters {
		if i > 0 {
			b.WriteByte('\n')
		}
		head := fmt.Sprintf("    %s <%s>", p.Path, p.Type)
		switch {
		case p.Required:
			head += " -required-"
		case p.Default != "":
			head += " (default " + p.Default + ")"
		}
		b.WriteString(wrap(head, o.width(), "        ") + "\n")
		b.WriteString(wrap("      "+p.Doc, o.width(), "      ") + "\n")
	}
	t.title("MAKES")
	for _, r := range e.Results {
		fmt.Fprintf(&b, "    %s, for %s\n", r.Name, r.Section)
	}
	if e.Example != "" {
		t.title("EXAMPLE")
		for line := range strings.Lines(e.Example) {
			b.WriteString(strings.TrimRight("    "+strings.ReplaceAll(strings.TrimRight(line, "\n"), "\t", "  "), " ") + "\n")
		}
	}
	if len(compiled) > 0 {
		t.title("WHAT THE EXAMPLE COMPILES TO")
	}
	if _, err := io.WriteString(w, b.String()); err != nil || len(compiled) == 0 {
		return err
	}
	return Plans(w, Text, compiled, o)
}

// singular is what one object of a section is called.
func singular(section string) string {
	if section == "policies" {
		return "policy"
	}
	return strings.TrimSuffix(section, "s")
}
