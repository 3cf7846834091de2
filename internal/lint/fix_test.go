package lint_test

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/kubectl-sched/kubectl-sched/internal/lint"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// TestFixes holds that what a fix writes mends its finding, and breaks nothing, in
// the fixture of every rule that has one.
func TestFixes(t *testing.T) {
	t.Parallel()
	fixed := 0
	for _, rule := range lint.Rules() {
		archive, err := txtar.ParseFile(filepath.Join(fixtures, rule.ID+".txtar"))
		if err != nil {
			t.Fatal(err)
		}
		fixed += checkFixes(t, rule, archive)
	}
	if fixed < 8 {
		t.Errorf("only %d findings were mended", fixed)
	}
}

// checkFixes returns how many findings were mended.
func checkFixes(t *testing.T, rule lint.Rule, archive *txtar.Archive) int {
	t.Helper()
	before := of(rule.ID, lint.Check(readScene(t, archive, "fail/").input))
	edits := map[string][]diag.Edit{}
	mended := 0
	for _, f := range before {
		if f.Fix == nil || len(f.Fix.Edits) == 0 {
			continue
		}
		mended++
		for _, e := range f.Fix.Edits {
			name := "fail/" + filepath.Base(e.Range.Start.File)
			edits[name] = append(edits[name], e)
		}
	}
	after := &txtar.Archive{}
	for _, f := range archive.Files {
		f.Data = []byte(edited(string(f.Data), edits[f.Name]))
		after.Files = append(after.Files, f)
	}
	left := of(rule.ID, lint.Check(readScene(t, after, "fail/").input))
	if len(left) != len(before)-mended {
		t.Errorf("%s: of %d findings %d were to be mended, and there are:\n%s\n%s", rule.ID, len(before), mended, show(left), txtar.Format(after))
	}
	return mended
}

// edited applies edits, the last in the text first.
func edited(text string, edits []diag.Edit) string {
	lines := strings.SplitAfter(text, "\n")
	offset := func(p diag.Pos) int {
		n := p.Column - 1
		for _, line := range lines[:p.Line-1] {
			n += len(line)
		}
		return n
	}
	slices.SortFunc(edits, func(a, b diag.Edit) int { return b.Range.Start.Compare(a.Range.Start) })
	for _, e := range edits {
		text = text[:offset(e.Range.Start)] + e.NewText + text[offset(cmp.Or(e.Range.End, e.Range.Start)):]
	}
	return text
}

// TestFixInFlow holds that entries are added to maps of either style.
func TestFixInFlow(t *testing.T) {
	t.Parallel()
	const text = `flow and block, the key first or not
-- fail/manifests.yaml --
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      topologySpreadConstraints:
      - {topologyKey: topology.kubernetes.io/zone, maxSkew: 1, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}
      -   # the nodes
          whenUnsatisfiable: DoNotSchedule
          topologyKey: kubernetes.io/hostname
          maxSkew: 1
          labelSelector: {matchLabels: {app: web}}
`
	rules := lint.Rules()
	i := slices.IndexFunc(rules, func(r lint.Rule) bool { return r.ID == "workload/spread-rollout" })
	if n := checkFixes(t, rules[i], txtar.Parse([]byte(text))); n != 2 {
		t.Errorf("%d findings were mended", n)
	}
}
