package report

import (
	"path/filepath"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// stdin is how findings name standard input, which is no file.
const stdin = "-"

// Name returns the name of a file relative to the repository, with slashes; the
// whole path for one outside it, which has no such name.
func (o Options) Name(file string) string {
	name, _ := o.inRepository(file)
	return name
}

// inRepository is Name, and reports whether the file is inside the repository.
func (o Options) inRepository(file string) (string, bool) {
	base := o.Repository
	if base == "" {
		base = o.Dir
	}
	full := file
	if !filepath.IsAbs(full) {
		if base == "" || o.Dir == "" || file == stdin {
			return filepath.ToSlash(filepath.Clean(file)), filepath.IsLocal(file)
		}
		full = filepath.Join(o.Dir, file)
	}
	if base != "" {
		if rel, err := filepath.Rel(base, full); err == nil && filepath.IsLocal(rel) {
			return filepath.ToSlash(rel), true
		}
	}
	return filepath.ToSlash(full), false
}

// texts returns a function that returns the text of a file, nil where there is
// none. It asks for each once.
func (o Options) texts() func(file string) *diag.Text {
	known := map[string]*diag.Text{}
	return func(file string) *diag.Text {
		text, seen := known[file]
		if !seen && o.Source != nil {
			if data, ok := o.Source(file); ok {
				text = diag.NewText(data)
			}
			known[file] = text
		}
		return text
	}
}

// characters turns the column of a position, which counts bytes, into one that
// counts what width says of each character, from 1. It is 0, for not known, where
// the text has no such place: a column in the wrong unit marks the wrong thing.
func characters(text *diag.Text, p diag.Pos, width func(rune) int) int {
	if text == nil || p.Column < 1 {
		return 0
	}
	line, ok := text.Line(p.Line)
	if !ok || p.Column > len(line)+1 {
		return 0
	}
	column := 1
	for before := line[:p.Column-1]; before != ""; {
		r, size := utf8.DecodeRuneInString(before)
		column += width(r)
		before = before[size:]
	}
	return column
}

// utf16Width is how many units of UTF-16 a character takes. What is no UTF-8 is read
// as a replacement character.
func utf16Width(r rune) int { return max(1, utf16.RuneLen(r)) }

// place is a position for people, where a format has no other way to say it.
func (o Options) place(p diag.Pos) string {
	if !p.IsValid() {
		return ""
	}
	p.File = o.Name(p.File)
	if p.File == stdin {
		p.File = "standard input"
	}
	return p.String()
}
