package load

import (
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/parser"

	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// Comment is one comment line of a CUE file.
type Comment struct {
	// Range is the comment, its "//" included.
	Range diag.Range
	// Text is what follows the "//".
	Text string
	// Line is the line that the comment speaks of: its own where it follows code, else
	// the first line of code below; 0 if nothing is below.
	Line int
	// Policy is the name of the policy whose declaration begins in that line below the
	// comment, or empty, and Last the line in which the declaration ends.
	Policy string
	Last   int
}

// Comments returns the comments of a CUE file in their order. A file that is no CUE
// has none: loading says what is wrong with it.
func Comments(file string, data []byte) []Comment {
	syntax, err := parser.ParseFile(file, data, parser.ParseComments)
	if err != nil {
		return nil
	}
	text := diag.NewText(data)
	policies := policyLines(syntax)
	var out []Comment
	ast.Walk(syntax, func(n ast.Node) bool {
		group, ok := n.(*ast.CommentGroup)
		if !ok {
			return true
		}
		for _, c := range group.List {
			at := c.Slash.Position()
			start := diag.Pos{File: file, Line: at.Line, Column: at.Column}
			end := start
			end.Column += len(c.Text)
			comment := Comment{Range: diag.Range{Start: start, End: end}, Text: strings.TrimPrefix(c.Text, "//"), Line: at.Line}
			if line, _ := text.Line(at.Line); strings.TrimSpace(line[:min(len(line), at.Column-1)]) == "" {
				comment.Line = codeBelow(text, at.Line)
				if p, ok := policies[comment.Line]; ok {
					comment.Policy, comment.Last = p.name, p.last
				}
			}
			out = append(out, comment)
		}
		return true
	}, nil)
	slices.SortFunc(out, func(a, b Comment) int { return a.Range.Start.Compare(b.Range.Start) })
	return out
}

// codeBelow returns the first line below that is neither blank nor a comment.
func codeBelow(text *diag.Text, line int) int {
	for n := line + 1; n <= text.Lines(); n++ {
		code, _ := text.Line(n)
		if code = strings.TrimSpace(code); code != "" && !strings.HasPrefix(code, "//") {
			return n
		}
	}
	return 0
}

// policyField is a policy's declaration.
type policyField struct {
	name string
	last int
}

// policyLines maps lines to the policies whose declarations begin in them.
func policyLines(syntax *ast.File) map[int]policyField {
	out := map[int]policyField{}
	for _, d := range syntax.Decls {
		field, ok := d.(*ast.Field)
		if !ok || labelName(field.Label) != "policies" {
			continue
		}
		list, ok := field.Value.(*ast.StructLit)
		if !ok {
			continue
		}
		for _, e := range list.Elts {
			if p, ok := e.(*ast.Field); ok {
				if name := labelName(p.Label); name != "" {
					out[p.Pos().Line()] = policyField{name, p.End().Line()}
				}
			}
		}
	}
	return out
}

// labelName returns the name that a label spells out, or nothing.
func labelName(l ast.Label) string {
	switch l := l.(type) {
	case *ast.Ident:
		return l.Name
	case *ast.BasicLit:
		if name, err := strconv.Unquote(l.Value); err == nil {
			return name
		}
	}
	return ""
}
