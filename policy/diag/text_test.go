package diag_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

func TestText(t *testing.T) {
	t.Parallel()
	text := diag.NewText([]byte("\xef\xbb\xbfab\r\nü\n\nlast"))
	for n, want := range map[int]string{1: "ab", 2: "ü", 3: "", 4: "last"} {
		if got, ok := text.Line(n); !ok || got != want {
			t.Errorf("line %d is %q, %v", n, got, ok)
		}
	}
	for _, n := range []int{0, -1, 5} {
		if got, ok := text.Line(n); ok {
			t.Errorf("there is a line %d: %q", n, got)
		}
	}
	for _, test := range []struct {
		line, column, want int
		ok                 bool
	}{
		{1, 1, 3, true},
		{1, 3, 5, true},
		{1, 4, 6, true},
		{1, 5, 0, false},
		{2, 3, 9, true},
		{2, 4, 0, false},
		{3, 1, 10, true},
		{4, 5, 15, true},
		{4, 6, 0, false},
		{0, 1, 0, false},
		{1, 0, 0, false},
		{5, 1, 0, false},
	} {
		got, ok := text.Offset(diag.Pos{Line: test.line, Column: test.column})
		if ok != test.ok || ok && got != test.want {
			t.Errorf("%d:%d is at %d, %v; want %d, %v", test.line, test.column, got, ok, test.want, test.ok)
		}
	}
	if n := text.Lines(); n != 4 {
		t.Errorf("%d lines", n)
	}
}

// TestTextInverse holds that Pos and Offset are each other's inverse, for every
// offset of every text.
func TestTextInverse(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		data := rapid.SliceOfN(rapid.SampledFrom([]byte("a\r\n\xc3\xbc")), 0, 40).Draw(t, "text")
		offset := rapid.IntRange(0, len(data)).Draw(t, "offset")
		text := diag.NewText(data)
		p := text.Pos("f", offset)
		if got, ok := text.Offset(p); !ok || got != offset || p.File != "f" {
			t.Errorf("%q: offset %d is at %s, which is at %d (%v)", data, offset, p, got, ok)
		}
	})
}
