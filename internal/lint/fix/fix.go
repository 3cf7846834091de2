// Package fix carries out the edits that findings bring with them.
//
// It maps texts and findings to new texts: every byte that no edit is about stays.
// The package must not read or write files, nor know how findings were made or how
// they are printed.
package fix

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// File is a text with the edits made to it.
type File struct {
	// Name is the file as findings name it.
	Name string
	// Before is the text as it was read, After what has become of it.
	Before, After []byte
}

// Result is what came of a list of findings.
type Result struct {
	// Files are the files that changed, by name.
	Files []File
	// Fixed are the findings whose edits were all made.
	Fixed diag.Findings
	// Postponed are those whose edits could not be made together with those of
	// Fixed: look again once these are in place.
	Postponed diag.Findings
	// Unfit are those whose edits no text fits, with why; a defect in whatever found
	// them, or a file that was changed since.
	Unfit []error
}

// Apply makes the edits of all findings that have some and that want picks. Of edits
// that overlap or touch, those of the earlier finding are made, but for the same edits
// again, which are made once. A fix is made as a whole or not at all. Line breaks of
// new text are those of the file. read returns the text of a file, false if there is
// none.
func Apply(findings diag.Findings, want func(diag.Fix) bool, read func(file string) ([]byte, bool)) Result {
	var r Result
	files := map[string]*file{}
	var names []string
	for _, f := range findings {
		if f.Fix == nil || len(f.Fix.Edits) == 0 || !want(*f.Fix) {
			continue
		}
		edits, err := resolve(f.Fix.Edits, func(name string) *file {
			known, seen := files[name]
			if !seen {
				if data, ok := read(name); ok {
					known = &file{name: name, before: data, text: diag.NewText(data)}
					names = append(names, name)
				}
				files[name] = known
			}
			return known
		})
		switch {
		case err != nil:
			r.Unfit = append(r.Unfit, fmt.Errorf("%s: the fix does not fit: %w", f.Range.Start, err))
		case slices.ContainsFunc(edits, edit.blocked):
			r.Postponed = append(r.Postponed, f)
		default:
			for _, e := range edits {
				e.make()
			}
			r.Fixed = append(r.Fixed, f)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		f := files[name]
		if after := f.after(); !bytes.Equal(f.before, after) {
			r.Files = append(r.Files, File{Name: name, Before: f.before, After: after})
		}
	}
	return r
}

// file is a text on its way.
type file struct {
	name   string
	before []byte
	text   *diag.Text
	// edits are those that are made, in the order of the text.
	edits []edit
}

// edit replaces the bytes from start to end of the file.
type edit struct {
	file       *file
	start, end int
	text       string
}

// resolve finds the bytes of the edits.
func resolve(edits []diag.Edit, get func(string) *file) ([]edit, error) {
	out := make([]edit, 0, len(edits))
	for _, e := range edits {
		from, to := e.Range.Start, e.Range.End
		if to == (diag.Pos{}) {
			to = from
		}
		f := get(from.File)
		if f == nil {
			return nil, fmt.Errorf("%s cannot be read", from.File)
		}
		start, ok := f.text.Offset(from)
		end, fits := f.text.Offset(to)
		if !ok || !fits || end < start || to.File != from.File {
			return nil, fmt.Errorf("there is no %s to %s", from, to)
		}
		resolved := edit{f, start, end, f.broken(e.NewText)}
		if slices.ContainsFunc(out, func(o edit) bool { return o.file == f && o.touches(resolved) }) {
			return nil, fmt.Errorf("two of its edits are at %s", from)
		}
		out = append(out, resolved)
	}
	return out, nil
}

// touches reports whether two edits of a file overlap or meet, so that what comes of
// both depends on their order.
func (e edit) touches(o edit) bool { return e.start <= o.end && o.start <= e.end }

// blocked reports whether an edit that is made already stands in the way.
func (e edit) blocked() bool {
	return slices.ContainsFunc(e.file.edits, func(o edit) bool { return o.touches(e) && o != e })
}

func (e edit) make() {
	i, there := slices.BinarySearchFunc(e.file.edits, e, func(a, b edit) int { return cmp.Compare(a.start, b.start) })
	if !there { // else it is the same edit
		e.file.edits = slices.Insert(e.file.edits, i, e)
	}
}

// broken returns the text with the line breaks that the file has.
func (f *file) broken(text string) string {
	if i := bytes.IndexByte(f.before, '\n'); i < 1 || f.before[i-1] != '\r' {
		return text
	}
	return strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\n", "\r\n")
}

func (f *file) after() []byte {
	var out []byte
	done := 0
	for _, e := range f.edits {
		out = append(append(out, f.before[done:e.start]...), e.text...)
		done = e.end
	}
	return append(out, f.before[done:]...)
}
