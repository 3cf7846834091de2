package excerpt_test

import (
	"strings"
	"testing"
	"unicode"

	"github.com/kubectl-sched/kubectl-sched/internal/report/excerpt"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// FuzzExcerpt holds that no text and no position makes an excerpt fail, leave the width
// or move the cursor, and that there is a mark.
func FuzzExcerpt(f *testing.F) {
	f.Add("a: b\n\tc", 2, 1, 2, 3, 40)
	f.Add("\xff\x00\u0301", 1, 9, 1, 2, 12)
	f.Add(strings.Repeat("0", 24), 1, 113, 24, -72, 12)
	f.Fuzz(func(t *testing.T, text string, line, column, endLine, endColumn, width int) {
		width = 12 + abs(width)%100
		r := diag.Range{Start: diag.Pos{File: "f", Line: line, Column: column}, End: diag.Pos{File: "f", Line: endLine, Column: endColumn}}
		shown, marks, ok := excerpt.Of(diag.NewText([]byte(text)), r, width)
		if !ok {
			return
		}
		for _, l := range []string{shown, marks} {
			if n := len([]rune(l)); n > width {
				t.Errorf("%d columns of %d: %q", n, width, l)
			}
			if strings.ContainsFunc(l, func(r rune) bool { return !unicode.IsGraphic(r) }) {
				t.Errorf("it moves the cursor: %q", l)
			}
		}
		if !strings.Contains(marks, "^") {
			t.Errorf("nothing is marked: %q", marks)
		}
	})
}

func abs(n int) int {
	if n < 0 {
		return -(n + 1)
	}
	return n
}
