package baseline_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/kubectl-sched/kubectl-sched/internal/lint/baseline"
	"github.com/kubectl-sched/kubectl-sched/internal/lint/fingerprint"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

func at(line int) diag.Range {
	return diag.At(diag.Pos{File: "w.yaml", Line: line, Column: 1})
}

func same(name string) string { return name }

func every(baseline.Entry) bool { return true }

// write returns the file that knows the findings, read again.
func write(t interface {
	Helper()
	Fatal(...any)
}, findings diag.Findings, text string,
) (*baseline.Baseline, []byte) {
	t.Helper()
	data, err := baseline.New(findings, prints(findings, text), same).Encode()
	if err != nil {
		t.Fatal(err)
	}
	b, problems := baseline.Parse("known.json", data)
	if len(problems) > 0 {
		t.Fatal(problems, string(data))
	}
	return b, data
}

// prints are those of findings in one text.
func prints(findings diag.Findings, text string) []fingerprint.Print {
	return fingerprint.Of(findings, fingerprint.Sources{Read: func(string) ([]byte, bool) { return []byte(text), true }})
}

func TestBaseline(t *testing.T) {
	t.Parallel()
	before := diag.Findings{
		{Rule: "a/b", Severity: diag.Warning, Range: at(1), Message: `3 of "x" < "y"`},
		{Rule: "a/b", Severity: diag.Warning, Range: at(2), Message: "the same"},
		{Rule: "a/b", Severity: diag.Warning, Range: at(3), Message: "the same"},
		{Rule: "a/c", Severity: diag.Error, Subject: "Pod a/b", Message: "nowhere"},
	}
	b, data := write(t, before, "one\ntwo\ntwo\n")
	want := `{
  "apiVersion": "kubectl-sched.github.io/v1alpha1",
  "kind": "Baseline",
  "entries": [
    {"rule":"a/c","fingerprint":"HASH","count":1,"message":"Pod a/b: nowhere"},
    {"rule":"a/b","file":"w.yaml","fingerprint":"HASH","count":1,"message":"3 of \"x\" < \"y\""},
    {"rule":"a/b","file":"w.yaml","fingerprint":"HASH","count":2,"message":"the same"}
  ]
}
`
	got := string(data)
	for _, p := range prints(before, "one\ntwo\ntwo\n") {
		got = strings.ReplaceAll(got, p.Hash, "HASH")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if b.Len() != 4 {
		t.Errorf("it knows %d", b.Len())
	}

	// Two lines further down, one of the three gone, another line, and one more of the
	// same kind as one that is known.
	text := "#\n#\none\ntwo\nthree\none\n"
	after := diag.Findings{
		{Rule: "a/b", Severity: diag.Warning, Range: at(3), Message: `5 of "x"`},
		{Rule: "a/b", Severity: diag.Warning, Range: at(4), Message: "the same"},
		{Rule: "a/b", Severity: diag.Warning, Range: at(5), Message: "new"},
		{Rule: "a/b", Severity: diag.Warning, Range: at(6), Message: "one too many"},
	}
	left, known := b.Apply(after, prints(after, text), every)
	var lines []string
	for _, f := range left {
		lines = append(lines, string(f.Severity)+" "+f.String())
	}
	wantLines := []string{
		`info known.json:5:5: the finding of "a/c" is not there any more; write the baseline again with --write-baseline`,
		`info known.json:7:5: 1 of the 2 findings of "a/b" in "w.yaml" is not there any more; write the baseline again with --write-baseline`,
		"warning w.yaml:5:1: new",
		"warning w.yaml:6:1: one too many",
	}
	if diff := cmp.Diff(wantLines, lines); diff != "" || known != 2 {
		t.Errorf("%d known (-want +got):\n%s", known, diff)
	}
	// What nobody looked for is not gone.
	left, _ = b.Apply(nil, nil, func(e baseline.Entry) bool { return e.File == "" })
	if len(left) != 1 || left[0].Range.Start.Line != 5 {
		t.Errorf("%v", left)
	}
}

func TestEmpty(t *testing.T) {
	t.Parallel()
	b, data := write(t, nil, "")
	if left, known := b.Apply(nil, nil, every); len(left) > 0 || known > 0 {
		t.Errorf("%v", left)
	}
	if want := "{\n  \"apiVersion\": \"kubectl-sched.github.io/v1alpha1\",\n  \"kind\": \"Baseline\",\n  \"entries\": []\n}\n"; string(data) != want {
		t.Errorf("got %s", data)
	}
}

func TestParseProblems(t *testing.T) {
	t.Parallel()
	const head = `{"apiVersion": "kubectl-sched.github.io/v1alpha1", "kind": "Baseline", `
	for text, want := range map[string]string{
		``:                       `b.json: this is no baseline: EOF; write it with --write-baseline`,
		"{\n,":                   `b.json:2:2: this is no baseline: invalid character`,
		`[]`:                     `b.json: this is no baseline: json: cannot unmarshal array`,
		`{}`:                     `b.json: this is no baseline of apiVersion "kubectl-sched.github.io/v1alpha1" and kind "Baseline"`,
		head + `"x": 1}`:         `b.json: this is no baseline: json: unknown field "x"`,
		head + `"entries": []}1`: `b.json: there is something behind the baseline`,
		head + "\n" + `"entries": [{"rule": "a", "fingerprint": "b", "count": 1},` + "\n" + ` {"rule": "a", "fingerprint": "b"}]}`: `b.json:3:2: an entry must have a rule, a fingerprint and a count above 0`,
	} {
		b, findings := baseline.Parse("b.json", []byte(text))
		if b != nil || len(findings) != 1 || !strings.HasPrefix(findings[0].String(), want) {
			t.Errorf("%s:\n got %v\nwant %s", text, findings, want)
		}
	}
}

// TestMerged holds that an entry that a merge left twice is known once.
func TestMerged(t *testing.T) {
	t.Parallel()
	f := diag.Findings{{Rule: "a/b", Message: "m"}, {Rule: "a/b", Message: "m"}, {Rule: "a/b", Message: "m"}}
	p := prints(f, "")
	entry := func(count string) string {
		return `{"rule": "a/b", "fingerprint": "` + p[0].Hash + `", "count": ` + count + `, "message": "m"}`
	}
	b, findings := baseline.Parse("b.json", []byte(`{"apiVersion": "kubectl-sched.github.io/v1alpha1", "kind": "Baseline", "entries": [`+entry("1")+", "+entry("2")+"]}"))
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	if left, known := b.Apply(f, p, every); known != 2 || len(left) != 1 {
		t.Errorf("%d known, left %v", known, left)
	}
}

// TestRoundTrip holds that a baseline knows exactly what it was written for, whatever
// lines are put before and whichever of it is looked for again.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(rapid.SampledFrom([]string{"a: 1", "b: \"ü\"", "", "  a: 1"}), 1, 8).Draw(t, "lines")
		var findings diag.Findings
		for range rapid.IntRange(0, 8).Draw(t, "findings") {
			findings = append(findings, diag.Finding{
				Rule: rapid.SampledFrom([]string{"a/b", "a/c"}).Draw(t, "rule"), Severity: diag.Warning,
				Range: at(rapid.IntRange(1, len(lines)).Draw(t, "line")), Message: rapid.String().Draw(t, "message"),
			})
		}
		b, _ := write(t, findings, strings.Join(lines, "\n"))
		above := rapid.IntRange(0, 3).Draw(t, "above")
		moved := make(diag.Findings, 0, len(findings))
		for _, f := range findings {
			f.Range.Start.Line += above
			if rapid.Bool().Draw(t, "still there") {
				moved = append(moved, f)
			}
		}
		left, known := b.Apply(moved, prints(moved, strings.Repeat("#\n", above)+strings.Join(lines, "\n")), func(baseline.Entry) bool { return false })
		if known != len(moved) || len(left) > 0 {
			t.Fatalf("%d of %d are known, left %v", known, len(moved), left)
		}
	})
}

// FuzzParse holds that a baseline file, whoever wrote it, is read or refused, and that
// what was read can be written and read again.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"apiVersion": "kubectl-sched.github.io/v1alpha1", "kind": "Baseline", "entries": [{"rule": "a", "fingerprint": "b", "count": 1, "message": "m"}]}`))
	f.Add([]byte("{\"entries\": [\n,"))
	f.Fuzz(func(t *testing.T, data []byte) {
		b, findings := baseline.Parse("b.json", data)
		if (b == nil) != (len(findings) > 0) {
			t.Fatalf("%q: %v, %v", data, b, findings)
		}
		if b == nil {
			return
		}
		again, err := b.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, findings := baseline.Parse("b.json", again); len(findings) > 0 {
			t.Fatalf("%q: %v", again, findings)
		}
		b.Apply(nil, nil, every)
	})
}
