package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-sched/kubectl-sched/internal/apply"
)

func TestDiffCommand(t *testing.T) {
	t.Parallel()
	for value, want := range map[string][]string{
		"":                               {"diff", "-u", "-N"},
		"colordiff -N -u":                {"colordiff", "-N", "-u"},
		"d --context=3 ; $(rm) -x /etc":  {"d", "--context=3", "-x"},
		"/usr/bin/delta":                 {"/usr/bin/delta"},
		"vimdiff -c|sh --side-by-side=x": {"vimdiff", "--side-by-side=x"},
	} {
		program, args := diffCommand(value)
		if d := cmp.Diff(want, append([]string{program}, args...)); d != "" {
			t.Errorf("%q (-want +got):\n%s", value, d)
		}
	}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	comparisons := []apply.Comparison{{Name: "v1.Node..gpu-1", Before: map[string]any{"kind": "Node", "x": int64(1)}, After: map[string]any{"kind": "Node", "x": int64(2)}}}
	compare := func(external string) error {
		var out bytes.Buffer
		a := &app{IOStreams: genericiooptions.IOStreams{Out: &out, ErrOut: &out}, getenv: func(string) string { return external }}
		return a.compare(t.Context(), comparisons)
	}
	// Exit code 1 says that there are differences and is no error; others are.
	if err := compare("false"); err != nil {
		t.Errorf("false: %v", err)
	}
	if err := compare("no-such-program-anywhere"); err == nil {
		t.Error("a program that does not exist: no error")
	}
	a := &app{IOStreams: genericiooptions.IOStreams{Out: new(bytes.Buffer)}}
	if err := a.compareHere(comparisons); err != nil {
		t.Fatal(err)
	}
	want := "--- LIVE/v1.Node..gpu-1\n+++ MERGED/v1.Node..gpu-1\n@@ -1,2 +1,2 @@\n kind: Node\n-x: 1\n+x: 2\n"
	if got := a.Out.(*bytes.Buffer).String(); got != want {
		t.Errorf("by ourselves:\n%s\nwant:\n%s", got, want)
	}
}

// What is not for a terminal is escaped, for programs of the user as by ourselves.
func TestCompareControls(t *testing.T) {
	t.Parallel()
	comparisons := []apply.Comparison{{Name: "v1.Node..gpu-1", Before: map[string]any{"x": "a"}, After: map[string]any{"x": "\x7f\u009b"}}}
	const want = "-x: a\n+x: \"\\x7F\\x9B\"\n"
	for name, compare := range map[string]func(*app) error{
		"program": func(a *app) error { return a.compare(t.Context(), comparisons) },
		"here":    func(a *app) error { return a.compareHere(comparisons) },
	} {
		var out bytes.Buffer
		a := &app{IOStreams: genericiooptions.IOStreams{Out: &out, ErrOut: &out}, getenv: func(string) string { return "diff -u" }}
		if err := compare(a); err != nil || !strings.HasSuffix(out.String(), want) {
			t.Errorf("%s: %v\n%s", name, err, out.String())
		}
	}
}
