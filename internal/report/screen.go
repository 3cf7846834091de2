package report

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/kubectl-sched/kubectl-sched/internal/report/excerpt"
)

// Screen is some lines at the bottom of a terminal that are written anew while
// something goes on; what is printed above them stays.
type Screen struct {
	w io.Writer
	// size returns how many columns and lines the terminal has now.
	size func() (width, height int)
	// lines are what it shows, drawn how many of them are on the terminal.
	lines []string
	drawn int
}

// NewScreen returns the screen at the end of w; nil where lines cannot be
// written anew, or shall not be: see Colored.
func NewScreen(w any, getenv func(string) string) *Screen {
	f, ok := w.(*os.File)
	if !ok || !Colored(w, getenv) {
		return nil
	}
	return &Screen{w: f, size: func() (int, int) { return terminalSize(f) }}
}

// terminalSize returns the columns and lines of the terminal; the usual ones if
// it does not say.
func terminalSize(f *os.File) (width, height int) {
	width, height, err := term.GetSize(int(f.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		return DefaultWidth, 24
	}
	return width, height
}

// mostShown is how many lines a screen takes; more is no overview.
const mostShown = 10

// Show makes the lines what the screen shows. Lines that do not fit are cut, and
// the last says how many are left out.
func (s *Screen) Show(lines []string) {
	s.lines = lines
	var b strings.Builder
	s.erase(&b)
	s.draw(&b)
	fmt.Fprint(s.w, b.String())
}

// Above has something written that stays, above the lines. write may use any
// stream that ends at the same terminal.
func (s *Screen) Above(write func()) {
	var b strings.Builder
	s.erase(&b)
	fmt.Fprint(s.w, b.String())
	write()
	b.Reset()
	s.draw(&b)
	fmt.Fprint(s.w, b.String())
}

func (s *Screen) erase(b *strings.Builder) {
	if s.drawn > 0 {
		fmt.Fprintf(b, "\x1b[%dA\r\x1b[J", s.drawn)
	}
	s.drawn = 0
}

func (s *Screen) draw(b *strings.Builder) {
	width, height := s.size()
	room := max(min(mostShown, height-2), 1)
	lines := s.lines
	if len(lines) > room {
		lines = append(lines[:room-1:room-1], fmt.Sprintf("… and %d more lines", len(s.lines)-room+1))
	}
	for _, line := range lines {
		b.WriteString(cut(excerpt.Printable(line), width-1) + "\n")
	}
	s.drawn = len(lines)
}

// cut shortens text to width columns.
func cut(text string, width int) string {
	runes := []rune(text)
	if len(runes) <= width || width < 1 {
		return text
	}
	return string(runes[:width-1]) + "…"
}
