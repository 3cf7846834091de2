package fix_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/kubectl-sched/kubectl-sched/internal/lint/fix"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// replace is an edit of the bytes from start up to end of a text of one line.
func replace(file string, start, end int, text string) diag.Edit {
	return diag.Edit{
		Range: diag.Range{Start: diag.Pos{File: file, Line: 1, Column: start + 1}, End: diag.Pos{File: file, Line: 1, Column: end + 1}}, NewText: text,
	}
}

func finding(name string, safe bool, edits ...diag.Edit) diag.Finding {
	return diag.Finding{Rule: name, Fix: &diag.Fix{Safe: safe, Edits: edits}}
}

func reader(files map[string]string) func(string) ([]byte, bool) {
	return func(name string) ([]byte, bool) {
		text, ok := files[name]
		return []byte(text), ok
	}
}

func every(diag.Fix) bool { return true }

func names(findings diag.Findings) string {
	var out []string
	for _, f := range findings {
		out = append(out, f.Rule)
	}
	return strings.Join(out, " ")
}

func TestApply(t *testing.T) {
	t.Parallel()
	insert := diag.Edit{Range: diag.At(diag.Pos{File: "a", Line: 1, Column: 3}), NewText: "-"}
	tests := map[string]struct {
		findings         diag.Findings
		want             map[string]string
		fixed, postponed string
		unfit            int
	}{
		"several, in any order": {
			diag.Findings{finding("2", true, replace("a", 4, 5, "E")), finding("1", true, replace("a", 0, 1, "")), finding("3", true, replace("b", 0, 0, "+"))},
			map[string]string{"a": "bcdEfghi", "b": "+xyz"},
			"2 1 3", "", 0,
		},
		"an insertion": {diag.Findings{finding("1", true, insert)}, map[string]string{"a": "ab-cdefghi"}, "1", "", 0},
		"overlapping ones wait": {
			diag.Findings{finding("1", true, replace("a", 0, 3, "A")), finding("2", true, replace("a", 2, 5, "B")), finding("3", true, replace("a", 6, 7, "C"))},
			map[string]string{"a": "AdefChi"},
			"1 3", "2", 0,
		},
		"neighbours wait": {
			diag.Findings{finding("1", true, replace("a", 0, 3, "A")), finding("2", true, replace("a", 3, 5, "B"))},
			map[string]string{"a": "Adefghi"},
			"1", "2", 0,
		},
		"the same again is made once": {
			diag.Findings{finding("1", true, insert), finding("2", true, insert)},
			map[string]string{"a": "ab-cdefghi"},
			"1 2", "", 0,
		},
		"a fix is made as a whole": {
			diag.Findings{finding("1", true, replace("a", 0, 1, "A")), finding("2", true, replace("a", 0, 1, "B"), replace("b", 0, 1, "X"))},
			map[string]string{"a": "Abcdefghi"},
			"1", "2", 0,
		},
		"what is not wanted stays":    {diag.Findings{finding("1", false, insert)}, map[string]string{}, "", "", 0},
		"one that changes nothing":    {diag.Findings{finding("1", true, replace("a", 0, 1, "a"))}, map[string]string{}, "1", "", 0},
		"past the end":                {diag.Findings{finding("1", true, replace("a", 8, 12, ""))}, map[string]string{}, "", "", 1},
		"backwards":                   {diag.Findings{finding("1", true, replace("a", 5, 2, ""))}, map[string]string{}, "", "", 1},
		"in no file":                  {diag.Findings{finding("1", true, replace("c", 0, 1, ""))}, map[string]string{}, "", "", 1},
		"against itself":              {diag.Findings{finding("1", true, insert, insert)}, map[string]string{}, "", "", 1},
		"without a place":             {diag.Findings{finding("1", true, diag.Edit{NewText: "x"})}, map[string]string{}, "", "", 1},
		"none, and one without edits": {diag.Findings{{Rule: "1"}, finding("2", true)}, map[string]string{}, "", "", 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := fix.Apply(test.findings, func(f diag.Fix) bool { return f.Safe }, reader(map[string]string{"a": "abcdefghi", "b": "xyz"}))
			got := map[string]string{}
			for _, f := range r.Files {
				got[f.Name] = string(f.After)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if names(r.Fixed) != test.fixed || names(r.Postponed) != test.postponed || len(r.Unfit) != test.unfit {
				t.Errorf("fixed %q, postponed %q, unfit %v", names(r.Fixed), names(r.Postponed), r.Unfit)
			}
		})
	}
}

// TestLineBreaks holds that new lines end as the others of the file do.
func TestLineBreaks(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a\r\nb\n": "x\r\ny\r\na\r\nb\n",
		"a\nb\r\n": "x\ny\r\na\nb\r\n",
		"a":        "x\ny\r\na",
		"\na":      "x\ny\r\n\na",
	} {
		r := fix.Apply(diag.Findings{finding("1", true, replace("a", 0, 0, "x\ny\r\n"))}, every, reader(map[string]string{"a": text}))
		if len(r.Files) != 1 || string(r.Files[0].After) != want {
			t.Errorf("%q became %q, want %q", text, r.Files, want)
		}
	}
}

// TestApplyIsExact holds for edits of any places that those which are made are there,
// and that between them every byte stays.
func TestApplyIsExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.SampledFrom([]rune("abü🙂")), 1, 20, -1).Draw(t, "text")
		var findings diag.Findings
		for range rapid.IntRange(1, 6).Draw(t, "edits") {
			start := rapid.IntRange(0, len(text)).Draw(t, "start")
			end := rapid.IntRange(start, len(text)).Draw(t, "end")
			findings = append(findings, finding("r", true, replace("f", start, end, strings.Repeat("X", rapid.IntRange(0, 3).Draw(t, "new")))))
		}
		r := fix.Apply(findings, every, reader(map[string]string{"f": text}))
		if len(r.Unfit) > 0 || len(r.Fixed) == 0 || len(r.Fixed)+len(r.Postponed) != len(findings) {
			t.Fatalf("%+v", r)
		}
		// What is made, made by hand from the back.
		want := text
		made := map[diag.Edit]bool{}
		for _, f := range r.Fixed {
			made[f.Fix.Edits[0]] = true
		}
		for len(made) > 0 {
			var last diag.Edit
			for e := range made {
				if e.Range.Start.Column > last.Range.Start.Column {
					last = e
				}
			}
			want = want[:last.Range.Start.Column-1] + last.NewText + want[last.Range.End.Column-1:]
			delete(made, last)
		}
		got := text
		for _, f := range r.Files {
			got = string(f.After)
		}
		if got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	})
}
