package fingerprint_test

import (
	"strings"
	"testing"

	"github.com/kubectl-sched/kubectl-sched/internal/lint/fingerprint"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// printOf returns the print of a finding in web.yaml, whose text is given.
func printOf(f diag.Finding, text string) string {
	s := fingerprint.Sources{
		Name: func(file string) string { return strings.TrimPrefix(file, "/home/me/repo/") },
		Read: func(string) ([]byte, bool) { return []byte(text), text != "" },
	}
	return fingerprint.Of(diag.Findings{f}, s)[0].String()
}

func TestOf(t *testing.T) {
	t.Parallel()
	at := func(file string, line int) diag.Range { return diag.At(diag.Pos{File: file, Line: line, Column: 3}) }
	base := diag.Finding{Rule: "a/b", Policy: "p", Subject: "Deployment a/b", Range: at("web.yaml", 2), Message: `3 nodes lack "x"`}
	text := "a:\n  topologyKey: zone\n"
	want := printOf(base, text)

	same := map[string]func(f *diag.Finding) string{
		"the line has moved":                func(f *diag.Finding) string { f.Range = at("web.yaml", 4); return "#\n#\na:\n  topologyKey: zone\n" },
		"it is indented otherwise":          func(*diag.Finding) string { return "a:\r\n\t topologyKey:  zone \r\n" },
		"the message counts other nodes":    func(f *diag.Finding) string { f.Message = `5 nodes lack "y"`; return text },
		"the policy selects another":        func(f *diag.Finding) string { f.Subject = "Deployment a/c"; return text },
		"the severity is another":           func(f *diag.Finding) string { f.Severity = diag.Info; return text },
		"the file is named by its path":     func(f *diag.Finding) string { f.Range = at("/home/me/repo/web.yaml", 2); return text },
		"the mark is elsewhere in the line": func(f *diag.Finding) string { f.Range.Start.Column = 9; return text },
	}
	for name, change := range same {
		f := base
		if text := change(&f); printOf(f, text) != want {
			t.Errorf("%s: the print is another", name)
		}
	}
	other := map[string]func(f *diag.Finding) string{
		"another rule":   func(f *diag.Finding) string { f.Rule = "a/c"; return text },
		"another policy": func(f *diag.Finding) string { f.Policy = "q"; return text },
		"no policy":      func(f *diag.Finding) string { f.Policy = ""; return text },
		"another file":   func(f *diag.Finding) string { f.Range = at("api.yaml", 2); return text },
		"another line":   func(*diag.Finding) string { return "a:\n  topologyKey: rack\n" },
		"no text":        func(*diag.Finding) string { return "" },
	}
	for name, change := range other {
		f := base
		if text := change(&f); printOf(f, text) == want {
			t.Errorf("%s: the print is the same", name)
		}
	}
}

// TestSubject holds that the subject counts where no policy is named, and that no part
// can stand for another.
func TestSubject(t *testing.T) {
	t.Parallel()
	prints := map[string]bool{}
	for _, f := range []diag.Finding{{Subject: "Pod a/b"}, {Subject: "Pod a/c"}, {Policy: "Pod a/b"}, {Rule: "Pod a/b"}, {}} {
		prints[printOf(f, "")] = true
	}
	if len(prints) != 5 {
		t.Errorf("five findings have %d prints", len(prints))
	}
}

func TestOccurrence(t *testing.T) {
	t.Parallel()
	f := diag.Finding{Rule: "a/b", Subject: "x"}
	prints := fingerprint.Of(diag.Findings{f, {Rule: "a/c"}, f}, fingerprint.Sources{})
	if prints[0].Hash != prints[2].Hash || prints[0].Occurrence != 1 || prints[1].Occurrence != 1 || prints[2].Occurrence != 2 {
		t.Errorf("got %v", prints)
	}
}
