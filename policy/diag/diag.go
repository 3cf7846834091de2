// Package diag holds the one type for everything that a user must mend: the
// Finding, and the source positions that it points to.
//
// Load errors, compile errors, lint results and apply refusals all are
// Findings, so that every command prints them the same way. The package is a
// leaf: it imports the standard library only, and must not know where findings
// come from (policy, compiler, apply) or how they are printed
// (internal/report).
package diag

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Severity says how a Finding weighs in an exit code.
type Severity string

// The severities, from the one that stops a run to the one that only informs.
const (
	// Error means that the input is wrong: nothing is compiled or applied.
	Error Severity = "error"
	// Warning means that the input is accepted, and most likely not what was meant.
	Warning Severity = "warning"
	// Info means that the reader should know, and need do nothing.
	Info Severity = "info"
)

// Pos is a place in a file that the user wrote. Line and Column count from 1;
// Column counts bytes, as CUE and Go do (formats that count otherwise convert).
// A zero Line means that only the file is known; a zero Pos that nothing is.
type Pos struct {
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
}

// IsValid reports whether p names a file at all.
func (p Pos) IsValid() bool { return p.File != "" }

// String returns "file:line:column", as much of it as is known, or "-".
func (p Pos) String() string {
	switch {
	case p.File == "":
		return "-"
	case p.Line == 0:
		return p.File
	case p.Column == 0:
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Compare orders positions by file, line and column; it returns -1, 0 or +1.
func (p Pos) Compare(q Pos) int {
	return cmp.Or(cmp.Compare(p.File, q.File), cmp.Compare(p.Line, q.Line), cmp.Compare(p.Column, q.Column))
}

// Range is a stretch of a file from Start up to, not including, End. A Range
// whose End is the zero Pos marks the single place Start.
type Range struct {
	Start Pos `json:"start"`
	End   Pos `json:"end,omitzero"`
}

// At returns the Range that marks the single place p.
func At(p Pos) Range { return Range{Start: p} }

// Related is a second place that a Finding speaks of, such as the other half of
// a contradiction, with a few words on its part in it.
type Related struct {
	Range   Range  `json:"range"`
	Message string `json:"message"`
}

// Edit replaces the text of Range by NewText. An Edit whose Range is a single
// place inserts.
type Edit struct {
	Range   Range  `json:"range"`
	NewText string `json:"newText"`
}

// Fix is a change that would mend a Finding. Edits may be empty: then Message
// alone says what to do.
type Fix struct {
	Message string `json:"message"`
	// Edits do not overlap, and hold together: half of them is no fix.
	Edits []Edit `json:"edits,omitempty"`
	// Safe says that the edits may be made without asking anybody: they write what
	// the text was evidently meant to say. What is guessed (the name that was meant)
	// or weighed (fewer pods during a rollout) is not safe. A safe fix may well
	// restart pods, as every change of a pod template does.
	Safe bool `json:"safe,omitempty"`
}

// Finding is one thing that a user must mend or know.
type Finding struct {
	// Rule is the stable identifier of the kind of finding, "area/kebab-name"
	// (such as "load/unknown-field").
	Rule string `json:"rule"`
	// Severity decides the exit code: any Error makes a command fail.
	Severity Severity `json:"severity"`
	// Policy is the policy that the finding speaks of, or empty.
	Policy string `json:"policy,omitempty"`
	// Subject is the workload, node or object that it speaks of
	// ("Deployment shop/web"), or empty.
	Subject string `json:"subject,omitempty"`
	// Subjects are all of them, where the same is said of several; Subject is then
	// what JoinSubjects makes of them.
	Subjects []string `json:"subjects,omitempty"`
	// Range is where the user must look, in the user's own file.
	Range Range `json:"range"`
	// Message says what is wrong and what would be right: one sentence, lower
	// case, values quoted, no full stop, no position and no policy name.
	Message string `json:"message"`
	// Related lists the other places that matter.
	Related []Related `json:"related,omitempty"`
	// Fix is how to mend it, where that is known.
	Fix *Fix `json:"fix,omitempty"`
}

// String returns the finding as one line: position, policy, subject, message.
func (f Finding) String() string {
	var b strings.Builder
	if f.Range.Start.IsValid() {
		b.WriteString(f.Range.Start.String() + ": ")
	}
	if f.Policy != "" {
		fmt.Fprintf(&b, "policy %q: ", f.Policy)
	}
	if f.Subject != "" {
		b.WriteString(f.Subject + ": ")
	}
	b.WriteString(f.Message)
	return b.String()
}

// JoinSubjects names several subjects as one text, at most five of them.
func JoinSubjects(names []string) string {
	const most = 5
	if len(names) > most {
		names = append(names[:most-1:most-1], fmt.Sprintf("%d others", len(names)-most+1))
	}
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// Findings is a list of findings; as an error it is what a load or a compile
// that cannot go on returns.
type Findings []Finding

// Error returns the findings, one a line.
func (fs Findings) Error() string {
	lines := make([]string, len(fs))
	for i, f := range fs {
		lines[i] = f.String()
	}
	return strings.Join(lines, "\n")
}

// HasErrors reports whether any finding has severity Error.
func (fs Findings) HasErrors() bool {
	return slices.ContainsFunc(fs, func(f Finding) bool { return f.Severity == Error })
}

// Sort orders the findings by position, rule, policy, subject and message, and
// drops exact repetitions, in place. It returns the shortened list.
func (fs Findings) Sort() Findings {
	order := func(a, b Finding) int {
		return cmp.Or(
			a.Range.Start.Compare(b.Range.Start),
			cmp.Compare(a.Rule, b.Rule),
			cmp.Compare(a.Policy, b.Policy),
			cmp.Compare(a.Subject, b.Subject),
			cmp.Compare(a.Message, b.Message),
		)
	}
	slices.SortStableFunc(fs, order)
	return slices.CompactFunc(fs, func(a, b Finding) bool { return order(a, b) == 0 })
}
