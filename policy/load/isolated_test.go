package load_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-sched/kubectl-sched/policy/load"
)

// childArgument makes the test binary act as the child of Isolated.
const childArgument = "evaluate-as-child"

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == childArgument {
		if err := load.Serve(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func childCommand(t testing.TB) []string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{exe, childArgument}
}

// TestIsolatedIsEvaluate holds that nothing is lost on the way to the parent.
func TestIsolatedIsEvaluate(t *testing.T) {
	t.Parallel()
	o := load.Options{Paths: []string{"../../examples"}}
	wantPlacement, wantFindings := load.Evaluate(context.Background(), o)
	placement, findings := load.Isolated(context.Background(), o, load.Limits{}, childCommand(t))
	if diff := cmp.Diff(wantPlacement, placement); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(wantFindings, findings); diff != "" {
		t.Error(diff)
	}
}

// bomb is a document that a stranger may send.
var bombs = []struct {
	name, source string
	limits       load.Limits
	want         string // in the message
}{
	{
		name:   "memory",
		source: "package p\nimport \"list\"\n_a: list.Range(0, 100000000, 1)\nparams: x: _a\n",
		limits: load.Limits{Memory: 200 << 20},
		want:   "took more than 200 MiB of memory; look for a comprehension or reference that grows without end, or raise the limit with --load-memory",
	},
	{
		name: "time",
		source: "package p\nimport \"list\"\n_a: list.Range(0, 3000, 1)\n" +
			"params: x: [for a in _a for b in _a for c in _a if a+b+c < 0 {a}]\n",
		limits: load.Limits{Timeout: 500 * time.Millisecond, Memory: 4 << 30},
		want:   "took longer than 500ms; look for a comprehension or reference that grows without end, or raise the limit with --load-timeout",
	},
	{
		name:   "laughs",
		source: laughs(),
		limits: load.Limits{Memory: 200 << 20, Timeout: 20 * time.Second},
		want:   "raise the limit with --load-",
	},
	{
		name:   "depth",
		source: chain(),
		limits: load.Limits{Memory: 200 << 20, Timeout: 20 * time.Second},
		want:   "went too deep for 200 MiB of memory; look for fields nested without end, or raise the limit with --load-memory",
	},
}

// laughs doubles a list forty times over.
func laughs() string {
	var b strings.Builder
	b.WriteString("package p\n_a0: [\"ha\", \"ha\"]\n")
	for i := range 40 {
		fmt.Fprintf(&b, "_a%d: [for x in [1, 2, 3, 4] for y in _a%d {y}]\n", i+1, i)
	}
	b.WriteString("params: x: _a40\n")
	return b.String()
}

// chain is a value at the end of a long chain of references.
func chain() string {
	var b strings.Builder
	b.WriteString("package p\nparams: x: _a0\n")
	for i := range 8000 {
		fmt.Fprintf(&b, "_a%d: _a%d + 1\n", i, i+1)
	}
	b.WriteString("_a8000: 1\n")
	return b.String()
}

func TestBombs(t *testing.T) {
	t.Parallel()
	for _, b := range bombs {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, filepath.Join(dir, "placement", "bomb.cue"), []byte(b.source))
			p, findings := load.Isolated(context.Background(), load.Options{Dir: dir, Paths: []string{"placement"}}, b.limits, childCommand(t))
			if p != nil || len(findings) != 1 {
				t.Fatalf("got %v, %v", p, findings)
			}
			f := findings[0]
			if f.Rule != "input/limit" || !strings.HasPrefix(f.Range.Start.File, "placement") || !strings.Contains(f.Message, b.want) {
				t.Errorf("got %s %v", f.Rule, f)
			}
		})
	}
}

func TestIsolatedIsCancelled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "placement", "bomb.cue"), []byte(bombs[1].source))
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	start := time.Now()
	p, findings := load.Isolated(ctx, load.Options{Dir: dir, Paths: []string{"placement"}}, load.Limits{Timeout: time.Hour}, childCommand(t))
	if p != nil || len(findings) != 1 || findings[0].Rule != "input/interrupted" {
		t.Errorf("got %v, %v", p, findings)
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("took %v", took)
	}
}

// TestIsolatedChildFails covers children that say nothing of use.
func TestIsolatedChildFails(t *testing.T) {
	t.Parallel()
	exe := childCommand(t)[0]
	for name, command := range map[string][]string{
		"none":     nil,
		"missing":  {filepath.Join(t.TempDir(), "nothing-here")},
		"no child": {exe, "-test.run=^$"},
	} {
		p, findings := load.Isolated(context.Background(), load.Options{Paths: []string{"."}}, load.Limits{}, command)
		if p != nil || len(findings) != 1 || findings[0].Rule != "input/isolation" {
			t.Errorf("%s: got %v, %v", name, p, findings)
		}
	}
}
