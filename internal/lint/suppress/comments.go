package suppress

import (
	"bytes"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/internal/workload/yamldoc"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
	"github.com/kubectl-sched/kubectl-sched/policy/load"
)

// CUE returns the Ignores of a CUE file: "// sched:ignore RULE REASON" behind what it
// is for or in a line above. Above a policy it is for all findings about the policy,
// wherever they are.
func CUE(file string, data []byte) ([]Ignore, diag.Findings) {
	if !bytes.Contains(data, []byte(directivePrefix)) {
		return nil, nil
	}
	var ignores []Ignore
	var findings diag.Findings
	text := diag.NewText(data)
	for _, c := range load.Comments(file, data) {
		ignore, f := parse(c.Text, c.Range)
		if f != nil {
			findings = append(findings, *f)
		}
		if ignore == nil {
			continue
		}
		ignore.covers = func(f diag.Finding) bool {
			if f.Range.Start.File == file && f.Range.Start.Line == c.Line {
				return true
			}
			return c.Policy != "" && (f.Policy == c.Policy || f.Policy == "" && within(f.Range.Start, file, c.Line, c.Last))
		}
		ignore.remove = removal(text, c.Range)
		ignores = append(ignores, *ignore)
	}
	return ignores, findings
}

// YAML returns the Ignores in the comments of a file of manifests: "# sched:ignore
// RULE REASON" behind what it is for or in a line above.
func YAML(file string, data []byte) ([]Ignore, diag.Findings) {
	if !bytes.Contains(data, []byte(directivePrefix)) {
		return nil, nil
	}
	var ignores []Ignore
	var findings diag.Findings
	text := diag.NewText(data)
	for _, d := range yamldoc.Split(data) {
		if !bytes.Contains(d.Text(), []byte(directivePrefix)) {
			continue
		}
		for _, c := range d.Comments() {
			position := func(offset int) diag.Pos {
				line, column := d.Position(offset)
				return diag.Pos{File: file, Line: line, Column: column}
			}
			at := diag.Range{Start: position(c.Start), End: position(c.End)}
			ignore, f := parse(strings.TrimLeft(string(data[c.Start:c.End]), "#"), at)
			if f != nil {
				findings = append(findings, *f)
			}
			if ignore == nil {
				continue
			}
			ignore.covers = func(f diag.Finding) bool { return within(f.Range.Start, file, c.Below, c.Below) }
			ignore.remove = removal(text, at)
			ignores = append(ignores, *ignore)
		}
	}
	return ignores, findings
}

// within reports whether a position is in one of the lines of the file.
func within(p diag.Pos, file string, first, last int) bool {
	return p.File == file && p.Line >= first && p.Line <= last && p.Line > 0
}

// removal is the fix that takes a comment out: with its line where nothing else is in
// it, else with the space before it. It is not safe: what the comment is for may come of
// manifests or of a cluster that were not given this time.
func removal(text *diag.Text, at diag.Range) *diag.Fix {
	line, ok := text.Line(at.Start.Line)
	if !ok || at.Start.Column-1 > len(line) {
		return nil
	}
	before := line[:at.Start.Column-1]
	start, end := at.Start, at.End
	if strings.TrimSpace(before) == "" && at.Start.Line < text.Lines() {
		start.Column = 1
		end.Line, end.Column = end.Line+1, 1
	} else {
		start.Column = len(strings.TrimRight(before, " \t")) + 1
	}
	if _, ok := text.Offset(end); !ok {
		return nil
	}
	return &diag.Fix{
		Message: "take out the comment",
		Edits:   []diag.Edit{{Range: diag.Range{Start: start, End: end}}},
	}
}
