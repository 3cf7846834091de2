package load_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
	"github.com/kubectl-sched/kubectl-sched/policy/load"
	"github.com/kubectl-sched/kubectl-sched/test/golden"
)

// TestGolden evaluates the folders of each testdata/*.txtar and compares the
// findings and the Placement. Of the comment at its top, two kinds of line are
// read: "paths:" names what is loaded (else the folder placement), and
// "positions" asks for the positions to be shown. UPDATE=1 rewrites the files.
func TestGolden(t *testing.T) {
	t.Parallel()
	golden.Run(t, evaluate)
}

func evaluate(t *testing.T, input *txtar.Archive) []txtar.File {
	dir := t.TempDir()
	for _, f := range input.Files {
		write(t, filepath.Join(dir, f.Name), f.Data)
	}
	paths, positions := []string{"placement"}, false
	for line := range strings.Lines(string(input.Comment)) {
		if rest, ok := strings.CutPrefix(line, "paths:"); ok {
			paths = strings.Fields(rest)
		}
		positions = positions || strings.TrimSpace(line) == "positions"
	}
	placement, findings := load.Evaluate(t.Context(), load.Options{Dir: dir, Paths: paths})
	results := golden.Result("want/findings", showFindings(findings))
	switch {
	case findings.HasErrors():
		results = append(results, golden.Result("want/sound", showNames(placement))...)
	case placement == nil:
		t.Error("no placement, and no error")
	default:
		results = append(results, golden.Result("want/placement.json", showPlacement(t, placement))...)
		if positions {
			results = append(results, golden.Result("want/positions", showPositions(placement))...)
		}
	}
	return results
}

// showNames shows what can be judged of a document with errors, none of which may
// be about it.
func showNames(p *policy.Placement) string {
	if p == nil {
		return "nothing\n"
	}
	var b strings.Builder
	for _, pool := range p.Pools {
		fmt.Fprintf(&b, "pool %s\n", pool.Name)
	}
	for _, pol := range p.Policies {
		fmt.Fprintf(&b, "policy %s\n", pol.Name)
	}
	return b.String()
}

func showFindings(fs diag.Findings) string {
	var b strings.Builder
	for _, f := range fs {
		fmt.Fprintf(&b, "%s %s: %s\n", f.Severity, f.Rule, f)
		for _, r := range f.Related {
			fmt.Fprintf(&b, "\t%s: %s\n", r.Range.Start, r.Message)
		}
		if f.Fix != nil {
			fmt.Fprintf(&b, "\tfix: %s\n", f.Fix.Message)
		}
	}
	return b.String()
}

// showPositions lists where every field of every object was written.
func showPositions(p *policy.Placement) string {
	var b strings.Builder
	show := func(object string, ps policy.Positions) {
		for _, pointer := range slices.Sorted(maps.Keys(ps)) {
			r := ps[pointer]
			fmt.Fprintf(&b, "%s%s %s-%d\n", object, pointer, r.Start, r.End.Column)
		}
	}
	for _, c := range p.Clusters {
		show("clusters/"+c.Name, c.Positions)
	}
	for _, pool := range p.Pools {
		show("pools/"+pool.Name, pool.Positions)
	}
	for _, k := range p.Kinds {
		show("kinds/"+k.Name, k.Positions)
	}
	for _, pol := range p.Policies {
		show("policies/"+pol.Name, pol.Positions)
	}
	return b.String()
}

func showPlacement(t *testing.T, p *policy.Placement) string {
	t.Helper()
	show := *p
	show.Clusters, show.Pools = slices.Clone(p.Clusters), slices.Clone(p.Pools)
	show.Kinds, show.Policies = slices.Clone(p.Kinds), slices.Clone(p.Policies)
	for i := range show.Clusters {
		show.Clusters[i].Positions = nil
	}
	for i := range show.Pools {
		show.Pools[i].Positions = nil
	}
	for i := range show.Kinds {
		show.Kinds[i].Positions = nil
	}
	for i := range show.Policies {
		show.Policies[i].Positions = nil
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(show); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func writeFile(tb testing.TB, file, text string) {
	tb.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		tb.Fatal(err)
	}
}

func write(t *testing.T, file string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, data, 0o644); err != nil {
		t.Fatal(err)
	}
}
