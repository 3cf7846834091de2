// Package take writes into a document the few lines by which it takes an entry of a
// catalog.
//
// It maps the text of a document's file, an entry and what the user set to the same text
// with an import and a use more; whatever else is in the file stays as it is. The package
// must not know where files are, whether what comes of it is right, which the loader
// judges, or how it is shown.
package take

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue/ast"

	"github.com/kubectl-sched/kubectl-sched/policy/load"
)

// Request says what to take, and by which names.
type Request struct {
	Catalog *load.Catalog
	Entry   *load.Entry
	// Name is the name of the policy that comes of it.
	Name string
	// Set are the parameters as they were given, "key=value" each, with dots in a key
	// for what is inside of a parameter.
	Set []string
	// Text is the file's text; empty for a new file, which will be of Package.
	Text    []byte
	Package string
	// Others are the texts of the other files of the package.
	Others [][]byte
}

// Taken is what came of a Request.
type Taken struct {
	// Text is the file's text with the lines.
	Text []byte
	// First and Last are the lines that the use takes up, counted from 1.
	First, Last int
	// Missing are the required parameters for which a placeholder was written: an error
	// until somebody fills it in.
	Missing []load.Field
	// Kept are the pools that the document has already by the same entry.
	Kept []string
}

// policyName is a name that a policy or pool may have.
var policyName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// Into writes the use. It is an error if a name is taken, or if a parameter that is set
// is none or is no CUE.
func Into(r Request) (*Taken, error) {
	if !policyName.MatchString(r.Name) {
		return nil, fmt.Errorf("the name %q must be lower-case letters, digits and \"-\", at most 63, beginning and ending with a letter or digit", r.Name)
	}
	doc, err := read(r)
	if err != nil {
		return nil, err
	}
	settings, err := parse(r)
	if err != nil {
		return nil, err
	}
	settings = r.withPoolName(settings)
	out := &Taken{}
	var b strings.Builder
	field := "_" + strings.ReplaceAll(r.Name, "-", "_")
	if doc.hidden[field] {
		return nil, fmt.Errorf("the policies have a field %s already; choose another name with --name", field)
	}
	results, err := r.results(doc, settings, out)
	if err != nil {
		return nil, err
	}
	imported := doc.importName(r.Catalog)
	fmt.Fprintf(&b, "// %s\n", r.comment())
	fmt.Fprintf(&b, "%s: %s.%s", field, imported, r.Entry.Definition)
	if lines := r.parameters(settings, out); len(lines) > 0 {
		fmt.Fprintf(&b, " & {\n%s\n}", strings.Join(lines, "\n"))
	}
	b.WriteByte('\n')
	for _, result := range results {
		fmt.Fprintf(&b, "%s: %s: %s.%s\n", result.section, label(result.name), field, result.definition)
	}
	if out.Text, err = doc.with(r, imported, b.String()); err != nil {
		return nil, err
	}
	at := bytes.LastIndex(out.Text, []byte("\n// "+r.comment()))
	out.First = bytes.Count(out.Text[:at+1], []byte("\n")) + 1
	out.Last = bytes.Count(out.Text, []byte("\n"))
	return out, nil
}

// comment says where a reader of the lines finds what they are for.
func (r Request) comment() string {
	if r.Catalog.Shipped() {
		return fmt.Sprintf("\"kubectl sched catalog show %s\" says what this is for.", r.Entry.Name)
	}
	return fmt.Sprintf("What %s is for is said in %s.", r.Entry.Definition, r.Catalog.ImportPath)
}

// placeholder stands for the value of a parameter that has none yet.
func placeholder(p load.Field) string {
	doc, _, _ := strings.Cut(p.Doc, ". ")
	if doc == "" {
		doc = "it is " + p.Type
	}
	return "error(" + strconv.Quote(strings.TrimSuffix(doc, ".")) + ")"
}

// parameters are the lines of the parameters that are set, or required, in the order of
// the entry.
func (r Request) parameters(settings []setting, out *Taken) (lines []string) {
	for _, p := range r.Entry.Parameters {
		set := false
		for _, s := range settings {
			if s.path[0] == p.Path {
				set = true
				lines = append(lines, "\t"+s.String())
			}
		}
		if p.Required && !set {
			out.Missing = append(out.Missing, p)
			lines = append(lines, "\t"+label(p.Path)+": "+placeholder(p))
		}
	}
	return lines
}

// parameterOf returns the parameter by which a result is called, if there is one: "#pool"
// is called what pool says.
func (r Request) parameterOf(result load.Result) *load.Field {
	i := slices.IndexFunc(r.Entry.Parameters, func(p load.Field) bool { return "#"+p.Path == result.Name && p.Type == "a string" })
	if i < 0 {
		return nil
	}
	return &r.Entry.Parameters[i]
}

// withPoolName adds to the settings the name of a pool that has none otherwise: the
// policy's own.
func (r Request) withPoolName(settings []setting) []setting {
	for _, result := range r.Entry.Results {
		p := r.parameterOf(result)
		if p == nil || !p.Required || slices.ContainsFunc(settings, func(s setting) bool { return s.path[0] == p.Path }) {
			continue
		}
		settings = append(settings, setting{[]string{p.Path}, strconv.Quote(r.Name)})
	}
	return settings
}

// result is a field of a section that takes over a definition of an entry.
type result struct{ section, name, definition string }

// results says by which names the document takes over what comes of the entry.
func (r Request) results(doc *document, settings []setting, out *Taken) (results []result, err error) {
	policies := 0
	for _, e := range r.Entry.Results {
		name := r.Name
		switch p := r.parameterOf(e); {
		case p != nil:
			name = p.Default
			for _, s := range settings {
				if s.path[0] == p.Path {
					name = s.value
				}
			}
			if name, err = strconv.Unquote(name); err != nil || !policyName.MatchString(name) {
				return nil, fmt.Errorf("%s must be a name, in lower-case letters, digits and \"-\"", p.Path)
			}
		case e.Section == "policies":
			if policies > 0 {
				name += "-" + strings.ToLower(strings.TrimPrefix(e.Name, "#"))
			}
			policies++
		}
		there, taken := doc.names[e.Section][name]
		switch {
		case taken && e.Section != "policies" && doc.from(there) == r.Entry.Definition:
			out.Kept = append(out.Kept, name)
			continue
		case taken && r.parameterOf(e) != nil:
			return nil, fmt.Errorf("%s has %q already; choose another name with --set %s=NAME", e.Section, name, r.parameterOf(e).Path)
		case taken:
			return nil, fmt.Errorf("%s has %q already; choose another name with --name", e.Section, name)
		}
		results = append(results, result{e.Section, name, e.Name})
	}
	// Pools come first, as they do in documents.
	slices.SortStableFunc(results, func(a, b result) int {
		return boolCompare(a.section == "policies", b.section == "policies")
	})
	return results, nil
}

func boolCompare(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// label returns a name as it is written before a colon.
func label(name string) string {
	if ast.StringLabelNeedsQuoting(name) {
		return strconv.Quote(name)
	}
	return name
}
