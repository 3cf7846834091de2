package lint_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
	"github.com/kubectl-sched/kubectl-sched/internal/cluster/facts"
	"github.com/kubectl-sched/kubectl-sched/internal/cluster/snapshot"
	"github.com/kubectl-sched/kubectl-sched/internal/lint"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
	"github.com/kubectl-sched/kubectl-sched/policy/load"
)

// fixtures has a file for each rule, testdata/rules/ID.txtar: below fail/ what the
// rule finds, with a comment `want "part of the message"` at the very line, and
// below pass/ the like in which no rule finds anything. snapshot.yaml is the
// cluster, what ends in .cue the policies; the rest are manifests. A finding that has
// no place, because it is of the cluster, is wanted at the line with its subject.
const fixtures = "testdata/rules"

// TestFixtures holds that each rule finds what its fixture says, and nothing else;
// that nothing is found in what is right; and that the fixture fails without the rule.
func TestFixtures(t *testing.T) {
	t.Parallel()
	for _, rule := range lint.Rules() {
		t.Run(rule.ID, func(t *testing.T) {
			t.Parallel()
			failing, passing := fixture(t, rule.ID)
			found := lint.Check(failing.input)
			if problem := failing.judge(of(rule.ID, found)); problem != "" {
				t.Errorf("%s\nfound\n%s", problem, show(found))
			}
			for _, f := range of(rule.ID, found) {
				if weight(f.Severity) > weight(rule.Severity) {
					t.Errorf("a finding has severity %s, and the rule %s", f.Severity, rule.Severity)
				}
			}
			others := slices.DeleteFunc(lint.Rules(), func(r lint.Rule) bool { return r.ID == rule.ID })
			if failing.judge(of(rule.ID, lint.CheckRules(others, failing.input))) == "" {
				t.Error("the fixture does not fail without the rule")
			}
			if found := append(passing.compiled, lint.Check(passing.input)...); len(found) > 0 {
				t.Errorf("found in what is right:\n%s", show(found))
			}
		})
	}
}

// TestFixturesOfOthers does the same for rules of the compiler that a reader of the
// table of rules would look for there.
func TestFixturesOfOthers(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"compile/daemonset-skips", "compile/gang", "compile/pending-for-domains", "compile/rollout-deadlock", "guard/open-grant", "nodes/empty-pool"} {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			failing, passing := fixture(t, id)
			if problem := failing.judge(of(id, failing.compiled)); problem != "" {
				t.Errorf("%s\nfound\n%s", problem, show(failing.compiled))
			}
			if found := of(id, passing.compiled); len(found) > 0 {
				t.Errorf("found in what is right:\n%s", show(found))
			}
		})
	}
}

// TestEachFixtureIsOfARule holds that no fixture is left over.
func TestEachFixtureIsOfARule(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(fixtures + "/*/*.txtar")
	if err != nil || len(files) < len(lint.Rules()) {
		t.Fatalf("%d fixtures for %d rules, %v", len(files), len(lint.Rules()), err)
	}
	for _, file := range files {
		id := strings.TrimSuffix(strings.TrimPrefix(file, fixtures+"/"), ".txtar")
		if !slices.ContainsFunc(lint.Documented(), func(r lint.Rule) bool { return r.ID == id }) {
			t.Errorf("%s is of no rule", file)
		}
	}
}

func weight(s diag.Severity) int {
	return slices.Index([]diag.Severity{diag.Info, diag.Warning, diag.Error}, s)
}

func of(id string, findings diag.Findings) diag.Findings {
	return slices.DeleteFunc(slices.Clone(findings), func(f diag.Finding) bool { return f.Rule != id })
}

// scene is one half of a fixture.
type scene struct {
	input    lint.Input
	compiled diag.Findings
	wants    []want
	lines    map[string][]string
}

// want is a finding that a line asks for.
type want struct {
	file, part string
	line       int
}

var wanted = regexp.MustCompile(`(?:#|//) want "([^"]+)"`)

func fixture(t *testing.T, id string) (failing, passing scene) {
	t.Helper()
	archive, err := txtar.ParseFile(filepath.Join(fixtures, id+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	if len(archive.Comment) == 0 {
		t.Error("the fixture does not say what it shows")
	}
	failing, passing = readScene(t, archive, "fail/"), readScene(t, archive, "pass/")
	if len(failing.wants) == 0 || len(passing.wants) > 0 || len(passing.lines) == 0 {
		t.Fatal("what fails must want something, and what passes must not")
	}
	return failing, passing
}

// readScene compiles what is below a folder of the archive.
func readScene(t *testing.T, archive *txtar.Archive, prefix string) scene {
	t.Helper()
	dir := t.TempDir()
	s := scene{lines: map[string][]string{}}
	var policies, manifests []string
	request := compiler.Request{Placement: &policy.Placement{}, Now: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)}
	for _, f := range archive.Files {
		name, ok := strings.CutPrefix(f.Name, prefix)
		if !ok {
			continue
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, f.Data, 0o600); err != nil {
			t.Fatal(err)
		}
		s.lines[path] = strings.Split(string(f.Data), "\n")
		for i, line := range s.lines[path] {
			for _, m := range wanted.FindAllStringSubmatch(line, -1) {
				s.wants = append(s.wants, want{path, m[1], i + 1})
			}
		}
		switch {
		case filepath.Ext(name) == ".cue":
			policies = append(policies, path)
		case name != "snapshot.yaml":
			manifests = append(manifests, path)
		default:
			c, err := snapshot.ReadFile(path, snapshot.ReadOptions{File: path})
			if err != nil {
				t.Fatal(err)
			}
			s.input.Snapshot, request.Capabilities = c, facts.Capabilities(c)
		}
	}
	if len(policies) > 0 {
		placement, findings := load.Evaluate(t.Context(), load.Options{Paths: policies})
		if findings.HasErrors() {
			t.Fatal(findings)
		}
		request.Placement = placement
	}
	if len(manifests) > 0 {
		set, findings := workload.Read(t.Context(), workload.Input{Files: manifests}, workload.Options{})
		if len(findings) > 0 {
			t.Fatal(findings)
		}
		request.Workloads, s.input.Others = set.Workloads, set.Others
		request.Capabilities = withManifests(request.Capabilities, set.Others)
	}
	s.input.Plan, s.compiled = compiler.Compile(request)
	s.input.Request = request
	return s
}

// judge compares findings with what the lines want, and says the first difference.
func (s scene) judge(findings diag.Findings) string {
	left := slices.Clone(s.wants)
	for _, f := range findings {
		i := slices.IndexFunc(left, func(w want) bool {
			at := f.Range.Start.File == w.file && f.Range.Start.Line == w.line
			if !f.Range.Start.IsValid() {
				name := f.Subject[strings.LastIndexAny(f.Subject, " /")+1:]
				at = strings.Contains(s.lines[w.file][w.line-1], name)
			}
			return at && strings.Contains(strings.ReplaceAll(f.Message, `"`, "'"), w.part)
		})
		if i < 0 {
			return fmt.Sprintf("nobody wants: %s", f)
		}
		left = slices.Delete(left, i, i+1)
	}
	if len(left) > 0 {
		return fmt.Sprintf("%s:%d: not found: %q", filepath.Base(left[0].file), left[0].line, left[0].part)
	}
	return ""
}

// withManifests adds what the manifests say of the cluster, as commands do: of the
// things that rules ask for, the NodePools.
func withManifests(caps capability.Capabilities, others []*workload.Object) capability.Capabilities {
	for _, o := range others {
		if o.Group != capability.NodePoolGroup || o.Kind != capability.NodePoolKind {
			continue
		}
		if pool, err := capability.ReadNodePool(o.Object); err == nil {
			caps.NodePools, caps.NodePoolsKnown = append(caps.NodePools, pool), true
		}
	}
	return caps
}
