package report

import (
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// color is an ANSI colour or weight.
type color string

const (
	red    color = "31;1"
	yellow color = "33;1"
	blue   color = "34;1"
	green  color = "32;1"
	faint  color = "2"
	bold   color = "1"
)

// style paints, or not.
type style struct{ on bool }

func (s style) paint(c color, text string) string {
	if !s.on || text == "" {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}

// Colored reports whether output to w should be coloured: w is a terminal,
// NO_COLOR is not set and TERM is not "dumb".
func Colored(w any, getenv func(string) string) bool {
	return IsTerminal(w) && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
}

// IsTerminal reports whether a person reads what is written to w.
func IsTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// The widths that text is given on a terminal: on a wider one lines are no
// longer read with ease, and on a narrower one nothing fits anyway.
const (
	narrowestTerminal = 40
	widestText        = 100
)

// WidthOf returns how many columns text written to w may take: those of the
// terminal within reason, and DefaultWidth where w is none.
func WidthOf(w any) int {
	if !IsTerminal(w) {
		return DefaultWidth
	}
	width, _ := terminalSize(w.(*os.File))
	return min(max(width, narrowestTerminal), widestText)
}

// wrap breaks text at spaces so that lines take at most width columns; all but
// the first begin with indent. A word that is longer stays whole.
func wrap(text string, width int, indent string) string {
	lead := text[:len(text)-len(strings.TrimLeft(text, " "))]
	var b strings.Builder
	b.WriteString(lead)
	column, fresh := len(lead), true
	for _, word := range strings.Split(text[len(lead):], " ") {
		n := utf8.RuneCountInString(word)
		switch {
		case fresh:
		case column+1+n > width:
			b.WriteString("\n" + indent)
			column = len(indent)
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
		fresh = false
	}
	return b.String()
}
