package load_test

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
	"github.com/kubectl-sched/kubectl-sched/policy/load"
)

// seeds adds every CUE file of the golden cases and the examples.
func seeds(f *testing.F) {
	f.Helper()
	cases, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range cases {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range archive.Files {
			if strings.HasSuffix(file.Name, ".cue") {
				f.Add(file.Data)
			}
		}
	}
	examples, err := filepath.Glob("../../examples/*/placement/*.cue")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range examples {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
}

// FuzzEvaluate holds that whatever a file holds, there is a Placement or an
// error at a place in it, within the limits.
func FuzzEvaluate(f *testing.F) {
	seeds(f)
	// The seeds are known to end; only what is made of them needs a limit.
	evaluate := load.Evaluate
	if flag.Lookup("test.fuzz").Value.String() != "" {
		command := childCommand(f)
		evaluate = func(ctx context.Context, o load.Options) (*policy.Placement, diag.Findings) {
			return load.Isolated(ctx, o, load.Limits{Timeout: 5 * time.Second, Memory: 256 << 20}, command)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "placement", "a.cue"), data)
		o := load.Options{Dir: dir, Paths: []string{"placement"}}
		p, findings := evaluate(context.Background(), o)
		if p == nil && !findings.HasErrors() {
			t.Error("no placement, and no error")
		}
		if p != nil {
			for _, pol := range p.Policies {
				if slices.ContainsFunc(findings, func(f diag.Finding) bool { return f.Severity == diag.Error && f.Policy == pol.Name }) {
					t.Errorf("policy %q has errors and is judged: %v", pol.Name, findings)
				}
			}
		}
		for _, finding := range findings {
			if finding.Rule == "input/isolation" || finding.Rule == "input/evaluator" || finding.Rule == "policy/decode" {
				t.Errorf("got %s %v", finding.Rule, finding)
			}
			if !strings.HasPrefix(finding.Range.Start.File, "placement") || finding.Message == "" || strings.Contains(finding.Message, "\n") {
				t.Errorf("got %s at %q: %q", finding.Rule, finding.Range.Start, finding.Message)
			}
		}
	})
}

// FuzzFormat holds that formatting keeps a file's meaning as far as to be
// parsed again, and that what is formatted stays as it is.
func FuzzFormat(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		once, err := load.Format(data, "a.cue")
		if err != nil {
			return
		}
		if _, err := load.Format(once, "a.cue"); err != nil {
			t.Errorf("%v\n%q became\n%q", err, data, once)
		}
	})
}
