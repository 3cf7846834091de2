// Package excerpt shows a place in a text: the line, and carets under what is meant. It
// lets nothing of a stranger's text through that would move the cursor.
//
// It must not know what is found there.
package excerpt

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// tabWidth is how many columns a tab takes in an excerpt.
const tabWidth = 4

// Of returns the first line of the range and a line of carets under the
// marked part, cut to width columns around the mark. It is not ok if the text
// has no such line.
func Of(source *diag.Text, r diag.Range, width int) (line, marks string, ok bool) {
	raw, ok := source.Line(r.Start.Line)
	if !ok || strings.TrimSpace(raw) == "" {
		return "", "", false
	}
	text, columns := layout(raw)
	// What the line is indented by says nothing here and takes room.
	if indent := len(text) - len([]rune(strings.TrimLeft(string(text), " "))); indent > 0 {
		text = text[indent:]
		for i := range columns {
			columns[i] = max(0, columns[i]-indent)
		}
	}
	start := columnAt(columns, r.Start.Column)
	end := start + 1
	switch {
	case r.Start.Column == 0: // only the line is known: mark all of it
		start, end = 0, len(text)
	case r.End.Line == r.Start.Line:
		end = columnAt(columns, r.End.Column)
	case r.End.Line > r.Start.Line:
		end = len([]rune(strings.TrimRight(string(text), " ")))
	}
	end = max(end, start+1)
	return clip(text, start, end, width)
}

// clip cuts the text to width columns so that the start of the mark shows.
func clip(text []rune, start, end, width int) (line, marks string, ok bool) {
	from, prefix := 0, ""
	// A mark behind the last character takes a column too.
	if columns := max(len(text), start+1); columns > width {
		// A third of the room goes to what stands before the mark.
		from = min(max(0, start-width/3), columns-width+1)
		from = max(from, 0)
		if from > 0 {
			prefix = "…"
			from++
		}
	}
	to, suffix := len(text), ""
	if room := width - len([]rune(prefix)); to-from > room {
		to, suffix = from+room-1, "…"
	}
	shift := len([]rune(prefix)) - from
	end = min(end, max(to, start+1))
	return prefix + string(text[from:to]) + suffix, strings.Repeat(" ", start+shift) + strings.Repeat("^", end-start), true
}

// layout returns the runes that are printed for a line, and for each byte of it
// (and for its end) the index of the rune that is printed there.
func layout(raw string) (text []rune, columns []int) {
	for i := 0; i < len(raw); {
		r, size := utf8.DecodeRuneInString(raw[i:])
		for range size {
			columns = append(columns, len(text))
		}
		if r == '\t' {
			for range tabWidth - len(text)%tabWidth {
				text = append(text, ' ')
			}
		} else {
			text = append(text, visible(r))
		}
		i += size
	}
	return text, append(columns, len(text))
}

// columnAt returns the printed column of a byte column that counts from 1.
func columnAt(columns []int, column int) int {
	return columns[min(max(column-1, 0), len(columns)-1)]
}

// visible replaces what would move the cursor or change the terminal's state: a
// file is a stranger's text.
func visible(r rune) rune {
	if unicode.IsGraphic(r) {
		return r
	}
	return '\uFFFD'
}

// Printable is the same for a whole message; line ends become spaces.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return ' '
		}
		return visible(r)
	}, s)
}
