package settings_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-sched/kubectl-sched/internal/lint/settings"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

var known = []string{"policy/a", "workload/b", "workload/c"}

const head = "apiVersion: kubectl-sched.github.io/v1alpha1\nkind: LintSettings\n"

func TestParse(t *testing.T) {
	t.Parallel()
	s, findings := settings.Parse("s.yaml", []byte(head+"severity:\n  policy/a: error # why\n  workload/b: off\n  \"workload/c\": 'info'\nbaseline: ci/known.json\n"), known)
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	got := map[string]diag.Severity{}
	for rule, o := range s.Severity {
		got[rule] = o.Severity
	}
	if diff := cmp.Diff(map[string]diag.Severity{"policy/a": diag.Error, "workload/b": settings.Off, "workload/c": diag.Info}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if at := s.Severity["workload/b"].Range.Start.String(); at != "s.yaml:5:3" || s.Baseline != "ci/known.json" {
		t.Errorf("workload/b is at %s, the baseline %q", at, s.Baseline)
	}
	if s, findings := settings.Parse("s.yaml", []byte(head), known); len(findings) > 0 || len(s.Severity) > 0 || s.Baseline != "" {
		t.Errorf("a file with nothing to say: %+v, %v", s, findings)
	}
}

func TestParseProblems(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		head + "severity: {workload/d: error}":      `s.yaml:3:12: there is no rule "workload/d"; did you mean "workload/b"?`,
		head + "severity: {policy/a: erro}":         `s.yaml:3:22: there is no severity "erro"; it is one of error, warning, info, off`,
		head + "severity: {policy/a: [error]}":      `s.yaml:3:22: this is no severity; it is one of error, warning, info, off`,
		head + "severity: {policy/a: true}":         `s.yaml:3:22: this is no severity; it is one of error, warning, info, off`,
		head + "severity: [policy/a]":               `s.yaml:3:11: severity is not written as names with values`,
		head + "severty: {}":                        `s.yaml:3:1: unknown field "severty"; did you mean "severity"?`,
		head + "x: {}":                              `s.yaml:3:1: unknown field "x"; allowed are apiVersion, baseline, kind, severity`,
		head + "baseline: ../x.json":                `s.yaml:3:11: the baseline must be a file in this folder or below`,
		head + "baseline: /x.json":                  `s.yaml:3:11: the baseline must be a file in this folder or below`,
		head + "baseline: 1":                        `s.yaml:3:11: the baseline must be a file in this folder or below`,
		"kind: LintSettings":                        `s.yaml:1:1: the file must begin with apiVersion: kubectl-sched.github.io/v1alpha1 and kind: LintSettings`,
		"apiVersion: v1\nkind: LintSettings":        `s.yaml:1:13: this must be "kubectl-sched.github.io/v1alpha1"`,
		"":                                          `s.yaml:1:1: the file is not written as names with values`,
		"- a":                                       `s.yaml:1:1: the file is not written as names with values`,
		"a: [":                                      `s.yaml:1:1: this is not YAML: did not find expected node content`,
		head + "---\n" + head:                       `s.yaml:3:1: there is more than one document; write all settings in one`,
		head + "baseline: a.json\nbaseline: b.json": `s.yaml:4:1: `,
	} {
		_, findings := settings.Parse("s.yaml", []byte(text), known)
		if len(findings) != 1 || !strings.HasPrefix(findings[0].String(), want) || findings[0].Severity != diag.Error {
			t.Errorf("%q:\n got %v\nwant %s", text, findings, want)
		}
	}
}

func TestFlag(t *testing.T) {
	t.Parallel()
	rule, o, err := settings.Flag("policy/a=off", known)
	if err != nil || rule != "policy/a" || o.Severity != settings.Off {
		t.Errorf("%q, %v, %v", rule, o, err)
	}
	for text, want := range map[string]string{
		"policy/a":       `"policy/a" is not RULE=SEVERITY`,
		"policy/aa=off":  `there is no rule "policy/aa"; did you mean "policy/a"?`,
		"policy/a=fatal": `there is no severity "fatal"; it is one of error, warning, info, off`,
	} {
		if _, _, err := settings.Flag(text, known); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write := func(name string) {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(settings.FileName)
	write("repo/.git/HEAD")
	write("repo/app/deep/x")
	write("alone/" + settings.FileName)
	write("alone/below/x")
	find := func(dir string) string {
		file, ok := settings.Find(filepath.Join(root, dir))
		if !ok {
			return ""
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			t.Fatal(err)
		}
		return filepath.ToSlash(rel)
	}
	if got := find("repo/app/deep"); got != "" {
		t.Errorf("a file above the repository counts: %s", got)
	}
	write("repo/" + settings.FileName)
	if got := find("repo/app/deep"); got != "repo/"+settings.FileName {
		t.Errorf("found %q", got)
	}
	write("repo/app/" + settings.FileName)
	if got := find("repo/app/deep"); got != "repo/app/"+settings.FileName {
		t.Errorf("the nearest does not win: %q", got)
	}
	if got := find("alone"); got != "alone/"+settings.FileName {
		t.Errorf("found %q", got)
	}
	if got := find("alone/below"); got != "" {
		t.Errorf("without a repository a folder above counts: %s", got)
	}
}

func TestApply(t *testing.T) {
	t.Parallel()
	s, _ := settings.Parse("s.yaml", []byte(head+"severity: {policy/a: info, workload/b: error, workload/c: \"off\"}"), known)
	findings := diag.Findings{
		{Rule: "policy/a", Severity: diag.Error, Message: "fatal"},
		{Rule: "policy/a", Severity: diag.Error, Message: "fatal too"},
		{Rule: "policy/a", Severity: diag.Warning, Message: "mere"},
		{Rule: "workload/b", Severity: diag.Info, Message: "b"},
		{Rule: "workload/c", Severity: diag.Error, Message: "c"},
		{Rule: "workload/d", Severity: diag.Warning, Message: "d"},
	}
	fatal := func(f diag.Finding) bool { return f.Severity == diag.Error && strings.HasPrefix(f.Rule, "policy/") }
	var got []string
	for _, f := range s.Apply(findings, fatal) {
		got = append(got, string(f.Severity)+" "+f.String())
	}
	want := []string{
		"error fatal", "error fatal too", "info mere", "error b", "warning d",
		`warning s.yaml:3:12: the errors of "policy/a" stop compile and apply, and cannot be "info"; mend them`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// FuzzParse holds that a settings file, whoever wrote it, is read or refused, and never
// both half.
func FuzzParse(f *testing.F) {
	f.Add(head + "severity: {policy/a: off}\nbaseline: a\n")
	f.Add("a: &x [*x]\n")
	f.Fuzz(func(t *testing.T, text string) {
		s, findings := settings.Parse("s.yaml", []byte(text), known)
		for _, finding := range findings {
			if finding.Severity != diag.Error || finding.Message == "" || !finding.Range.Start.IsValid() {
				t.Errorf("%q: %+v", text, finding)
			}
		}
		for rule, o := range s.Severity {
			if _, _, err := settings.Flag(rule+"="+string(o.Severity), known); err != nil {
				t.Errorf("%q: %v", text, err)
			}
		}
	})
}
