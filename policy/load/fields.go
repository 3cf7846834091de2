package load

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"

	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// namePattern is #Name.
var namePattern = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// unknownTopLevel finds top-level fields that no document has. CUE cannot say
// so by itself: a package may have any field.
func (ev *evaluation) unknownTopLevel() (findings diag.Findings) {
	for _, label := range slices.Sorted(maps.Keys(ev.index.root.children)) {
		if hidden(label) || ev.shapes.fields[label] != nil {
			continue
		}
		for _, p := range declared([]*node{ev.index.root.children[label]}) {
			findings = append(findings, ev.unknownField(nil, nil, label, ev.shapes, p.label))
		}
	}
	return findings
}

// unknownFields finds, in the syntax below an object's nodes, the fields that
// the schema does not have. CUE finds them too, but only after every other
// mistake in the same object is mended.
func (ev *evaluation) unknownFields(o *object, path []string, nodes []*node, sh *shape) (findings diag.Findings) {
	if sh == nil || isListFor(nodes, sh) {
		return nil
	}
	labels := map[string]bool{}
	for _, n := range nodes {
		for label := range n.children {
			labels[label] = true
		}
	}
	for _, label := range slices.Sorted(maps.Keys(labels)) {
		if hidden(label) {
			continue
		}
		below := certain(nodes, label)
		childPath := append(slices.Clip(path), label)
		child := sh.child(label)
		bad := sh.closed() && child == nil || sh.names && sh.fields[label] == nil && !namePattern.MatchString(label)
		if !bad {
			findings = append(findings, ev.unknownFields(o, childPath, below, child)...)
			continue
		}
		for _, p := range declared(below) {
			findings = append(findings, ev.unknownField(o, path, label, sh, p.label))
		}
	}
	return findings
}

// hidden reports whether a label is one that a document keeps to itself.
func hidden(label string) bool {
	return strings.HasPrefix(label, "_") || strings.HasPrefix(label, "#")
}

// unknownField is the finding about one field that should not be there. The
// label may be nil if the syntax does not show it.
func (ev *evaluation) unknownField(o *object, path []string, label string, parent *shape, at ast.Node) diag.Finding {
	f := ev.finding(o, "policy/unknown-field", "")
	if at != nil {
		f.Range = ev.set.rangeOf(at)
	}
	if parent != nil && parent.names && parent.fields[label] == nil {
		f.Rule = "policy/name"
		f.Message = fmt.Sprintf("the name %q %s", label, nameRule)
		return f
	}
	where := ""
	if inside := inObject(path); len(inside) > 0 {
		where = " in " + dottedQuote(inside)
	}
	f.Message = fmt.Sprintf("unknown field %q%s", label, where)
	if parent == nil {
		return f
	}
	names := parent.fieldNames()
	if near, ok := diag.Nearest(label, names); ok {
		f.Message += fmt.Sprintf("; did you mean %q?", near)
		if at != nil && f.Range.End.IsValid() {
			f.Fix = &diag.Fix{Message: "rename the field to " + near, Edits: []diag.Edit{{Range: f.Range, NewText: near}}}
		}
	} else {
		f.Message += "; allowed are " + strings.Join(names, ", ")
	}
	return f
}

// finding returns a finding about an object (or, where o is nil, about the
// folder).
func (ev *evaluation) finding(o *object, rule, message string) diag.Finding {
	f := diag.Finding{Rule: rule, Severity: diag.Error, Message: message}
	if o != nil {
		f.Policy, f.Subject = o.labels()
	}
	return f
}

// labels returns what a finding about the object carries as its Policy and its
// Subject.
func (o *object) labels() (policyName, subject string) {
	l := labelsOf(o.section, o.name)
	return l.policy, l.subject
}

// dotted shows a path as CUE would write it.
func dotted(path []string) string {
	var b strings.Builder
	for i, p := range path {
		switch {
		case p != "" && strings.Trim(p, "0123456789") == "":
			b.WriteString("[" + p + "]")
			continue
		case i > 0:
			b.WriteByte('.')
		}
		if ast.StringLabelNeedsQuoting(p) {
			p = `"` + p + `"`
		}
		b.WriteString(p)
	}
	return b.String()
}

// dottedQuote is dotted in quotes, unless it has quotes in it.
func dottedQuote(path []string) string {
	text := dotted(path)
	if strings.Contains(text, `"`) {
		return text
	}
	return `"` + text + `"`
}

// dedupe drops, of findings of one rule about one place, all but the first.
func dedupe(findings diag.Findings) diag.Findings {
	type key struct {
		rule  string
		start diag.Pos
		text  string
	}
	seen := map[key]bool{}
	return slices.DeleteFunc(findings, func(f diag.Finding) bool {
		k := key{f.Rule, f.Range.Start, ""}
		if f.Rule == "policy/missing-field" {
			k.text = f.Message // several fields may be missing in one place
		}
		if seen[k] {
			return true
		}
		seen[k] = true
		return false
	})
}
