package suppress_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-sched/kubectl-sched/internal/lint/suppress"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

var known = []string{"policy/a", "policy/b", "workload/c"}

// rules know three rules, whose errors are fatal for those of policies.
func rules() suppress.Rules {
	return suppress.Rules{
		Known: known,
		Fatal: func(f diag.Finding) bool { return f.Severity == diag.Error && strings.HasPrefix(f.Rule, "policy/") },
		Ran:   func(string) bool { return true },
	}
}

func at(file string, line, column int) diag.Range {
	return diag.At(diag.Pos{File: file, Line: line, Column: column})
}

// outcome is what is left, one finding a line, and how many were ignored.
func outcome(findings diag.Findings, ignores []suppress.Ignore, more diag.Findings, r suppress.Rules) (string, int) {
	left, n := suppress.Apply(findings, ignores, r)
	var b strings.Builder
	for _, f := range append(left, more...).Sort() {
		b.WriteString(f.Range.Start.String() + " " + f.Rule + ": " + f.Message + "\n")
	}
	return b.String(), len(n)
}

func TestComments(t *testing.T) {
	t.Parallel()
	warn := func(rule, file string, line int) diag.Finding {
		return diag.Finding{Rule: rule, Severity: diag.Warning, Range: at(file, line, 2), Message: "m"}
	}
	ofPolicy := func(f diag.Finding, policy string) diag.Finding { f.Policy = policy; return f }
	tests := map[string]struct {
		file, text string
		findings   diag.Findings
		want       string
		ignored    int
	}{
		"behind": {
			"w.yaml", "a:\n  b: 1 # sched:ignore workload/c because\n",
			diag.Findings{warn("workload/c", "w.yaml", 2)},
			"", 1,
		},
		"above, with other comments between": {
			"w.yaml", "a:\n  # sched:ignore workload/c because\n  # sched:ignore policy/a so\n\n  # of this\n  b: 1\n",
			diag.Findings{warn("workload/c", "w.yaml", 6), warn("policy/a", "w.yaml", 6), warn("policy/a", "w.yaml", 1)},
			"w.yaml:1:2 policy/a: m\n", 2,
		},
		"not of another rule, line or file": {
			"w.yaml", "a:\n  b: 1 # sched:ignore workload/c because\n",
			diag.Findings{warn("policy/a", "w.yaml", 2), warn("workload/c", "w.yaml", 1), warn("workload/c", "v.yaml", 2)},
			"v.yaml:2:2 workload/c: m\nw.yaml:1:2 workload/c: m\n" +
				"w.yaml:2:2 policy/a: m\n" +
				"w.yaml:2:8 ignore/unused: there is no finding of \"workload/c\" here to ignore; take this out\n", 0,
		},
		"without a reason": {
			"w.yaml", "a: 1 # sched:ignore workload/c\nb: 1 # sched:ignore workload/c --\n",
			diag.Findings{warn("workload/c", "w.yaml", 1)},
			"w.yaml:1:2 workload/c: m\n" +
				"w.yaml:1:6 ignore/no-reason: say behind the rule why \"workload/c\" is ignored here; without a reason it is not\n" +
				"w.yaml:2:6 ignore/no-reason: say behind the rule why \"workload/c\" is ignored here; without a reason it is not\n", 0,
		},
		"unknown rules": {
			"w.yaml", "a: 1 # sched:ignore workload/d because\nb: 1 # sched:ignore what because\n", nil,
			"w.yaml:1:6 ignore/unknown-rule: there is no rule \"workload/d\"; did you mean \"workload/c\"?\n" +
				"w.yaml:2:6 ignore/unknown-rule: there is no rule \"what\"; copy the name from the end of the finding\n", 0,
		},
		"malformed": {
			"w.yaml", "a: 1 # sched:ignored workload/c because\nb: 1 # sched:ignore\nc: 1 # sched: ignore workload/c x\nd: 1 # sched: the old one\n", nil,
			"w.yaml:1:6 ignore/malformed: unknown comment \"sched:ignored\"; it is \"sched:ignore RULE REASON\"\n" +
				"w.yaml:2:6 ignore/malformed: say what to ignore and why: \"sched:ignore RULE REASON\"\n" +
				"w.yaml:3:6 ignore/malformed: unknown comment \"sched:\"; it is \"sched:ignore RULE REASON\"\n", 0,
		},
		"no comment": {
			"w.yaml", "a: \"# sched:ignore workload/c because\"\n",
			diag.Findings{warn("workload/c", "w.yaml", 1)},
			"w.yaml:1:2 workload/c: m\n", 0,
		},
		"an error that stops the program": {
			"p.cue", "package p\na: 1 // sched:ignore policy/a because\n",
			diag.Findings{{Rule: "policy/a", Severity: diag.Error, Range: at("p.cue", 2, 1), Message: "e"}, warn("policy/a", "p.cue", 2)},
			"p.cue:2:1 policy/a: e\n" +
				"p.cue:2:6 ignore/impossible: the error of \"policy/a\" stops compile and apply, and cannot be ignored; mend it\n", 1,
		},
		"an error of lint alone": {
			"w.yaml", "a: 1 # sched:ignore workload/c because\n",
			diag.Findings{{Rule: "workload/c", Severity: diag.Error, Range: at("w.yaml", 1, 1), Message: "e"}},
			"", 1,
		},
		"CUE, behind and above": {
			"p.cue", "package p\na: 1 // sched:ignore policy/a because\n// sched:ignore policy/b because\nb: 1\n",
			diag.Findings{warn("policy/a", "p.cue", 2), warn("policy/b", "p.cue", 4), warn("policy/b", "p.cue", 2)},
			"p.cue:2:2 policy/b: m\n", 2,
		},
		"a whole policy": {
			"p.cue", "package p\npolicies: {\n// sched:ignore policy/a because\nx: {\na: 1\n}\n// sched:ignore policy/b because\ny: {}\n}\n",
			diag.Findings{
				warn("policy/a", "p.cue", 5), ofPolicy(warn("policy/a", "w.yaml", 1), "x"),
				ofPolicy(warn("policy/b", "p.cue", 5), "x"), warn("policy/a", "p.cue", 7),
			},
			"p.cue:5:2 policy/b: m\np.cue:7:1 ignore/unused: there is no finding of \"policy/b\" here to ignore; take this out\np.cue:7:2 policy/a: m\n", 2,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			read := suppress.YAML
			if strings.HasSuffix(test.file, ".cue") {
				read = suppress.CUE
			}
			ignores, more := read(test.file, []byte(test.text))
			got, ignored := outcome(test.findings, ignores, more, rules())
			if diff := cmp.Diff(test.want, got); diff != "" || ignored != test.ignored {
				t.Errorf("%d ignored, want %d (-want +got):\n%s", ignored, test.ignored, diff)
			}
		})
	}
}

func TestAnnotation(t *testing.T) {
	t.Parallel()
	o := suppress.Object{
		Ref: "Deployment shop/web", At: at("w.yaml", 4, 5), Range: diag.Range{Start: diag.Pos{File: "w.yaml", Line: 1, Column: 1}, End: diag.Pos{File: "w.yaml", Line: 9, Column: 3}},
		Annotations: map[string]string{suppress.Annotation: "workload/c as it is\n\n  policy/b  so \nworkload/c\npolicy/z why\n"},
	}
	ignores, more := suppress.Of(o)
	findings := diag.Findings{
		{Rule: "workload/c", Severity: diag.Warning, Range: at("w.yaml", 9, 1), Message: "in it"},
		{Rule: "workload/c", Severity: diag.Warning, Subject: "Deployment shop/web", Message: "about it"},
		{Rule: "workload/c", Severity: diag.Warning, Subject: "Deployment shop/web (driver)", Message: "about a template of it"},
		{Rule: "workload/c", Severity: diag.Warning, Subject: "Deployment shop/web2", Message: "about another"},
		{Rule: "workload/c", Severity: diag.Warning, Range: at("w.yaml", 10, 1), Message: "below it"},
	}
	got, ignored := outcome(findings, ignores, more, rules())
	want := "- workload/c: about another\n" +
		"w.yaml:4:5 ignore/no-reason: say behind the rule why \"workload/c\" is ignored here; without a reason it is not\n" +
		"w.yaml:4:5 ignore/unknown-rule: there is no rule \"policy/z\"; did you mean \"policy/a\"?\n" +
		"w.yaml:4:5 ignore/unused: there is no finding of \"policy/b\" here to ignore; take this out\n" +
		"w.yaml:10:1 workload/c: below it\n"
	if diff := cmp.Diff(want, got); diff != "" || ignored != 3 {
		t.Errorf("%d ignored (-want +got):\n%s", ignored, diff)
	}
	if ignores, more := suppress.Of(suppress.Object{}); ignores != nil || more != nil {
		t.Errorf("there is something without the annotation: %v, %v", ignores, more)
	}
}

// TestSeveralSubjects holds that an object may be taken out of what is said of several.
func TestSeveralSubjects(t *testing.T) {
	t.Parallel()
	of := func(ref string) suppress.Ignore {
		ignores, _ := suppress.Of(suppress.Object{Ref: ref, At: at("w.yaml", 1, 1), Annotations: map[string]string{suppress.Annotation: "policy/a because"}})
		return ignores[0]
	}
	names := []string{"Pod a/1", "Pod a/2", "Pod a/3", "Pod a/4", "Pod a/5", "Pod a/6"}
	finding := diag.Finding{Rule: "policy/a", Severity: diag.Warning, Policy: "p", Subject: diag.JoinSubjects(names), Subjects: names}
	left, ignored := suppress.Apply(diag.Findings{finding}, []suppress.Ignore{of("Pod a/6"), of("Pod a/2")}, rules())
	if len(left) != 1 || len(ignored) != 0 || left[0].Subject != "Pod a/1, Pod a/3, Pod a/4 and Pod a/5" || len(left[0].Subjects) != 4 || len(finding.Subjects) != 6 {
		t.Errorf("%d ignored, left %+v", len(ignored), left)
	}
	finding.Subjects = names[:2]
	left, ignored = suppress.Apply(diag.Findings{finding}, []suppress.Ignore{of("Pod a/2")}, rules())
	if len(left) != 1 || len(ignored) != 0 || left[0].Subject != "Pod a/1" || left[0].Subjects != nil {
		t.Errorf("%d ignored, left %+v", len(ignored), left)
	}
	left, ignored = suppress.Apply(diag.Findings{finding}, []suppress.Ignore{of("Pod a/2"), of("Pod a/1")}, rules())
	if len(left) != 0 || len(ignored) != 1 {
		t.Errorf("%d ignored, left %+v", len(ignored), left)
	}
}

// TestNotRun holds that what was not looked for is not called unused.
func TestNotRun(t *testing.T) {
	t.Parallel()
	ignores, _ := suppress.YAML("w.yaml", []byte("a: 1 # sched:ignore workload/c because\n"))
	r := rules()
	r.Ran = func(string) bool { return false }
	if got, _ := outcome(nil, ignores, nil, r); got != "" {
		t.Error(got)
	}
}

// TestRemoval holds that taking an unused comment out leaves every other byte.
func TestRemoval(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a: 1\t # sched:ignore workload/c x\nb: 2\n":      "a: 1\nb: 2\n",
		"a: 1\n  # sched:ignore workload/c x\nb: 2\n":     "a: 1\nb: 2\n",
		"a: 1\r\n# sched:ignore workload/c ü\r\nb: 2\r\n": "a: 1\r\nb: 2\r\n",
		"a: ü # sched:ignore workload/c x":                "a: ü",
		"a: 1\n# sched:ignore workload/c x":               "a: 1\n",
	} {
		ignores, more := suppress.YAML("w.yaml", []byte(text))
		left, _ := suppress.Apply(nil, ignores, rules())
		if len(left) != 1 || len(more) != 0 || left[0].Fix == nil || left[0].Fix.Safe || len(left[0].Fix.Edits) != 1 {
			t.Errorf("%q: %v %v", text, left, more)
			continue
		}
		e := left[0].Fix.Edits[0]
		lines := diag.NewText([]byte(text))
		start, ok1 := lines.Offset(e.Range.Start)
		end, ok2 := lines.Offset(e.Range.End)
		if got := text[:start] + e.NewText + text[end:]; !ok1 || !ok2 || got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

// FuzzIgnores holds that no text, whoever wrote it, fails or has an Ignore without a
// rule, a reason and a place.
func FuzzIgnores(f *testing.F) {
	f.Add("a: 1 # sched:ignore workload/c because\n# sched:ignore\n", "workload/c\nx y")
	f.Add("package p\n// sched:ignore policy/a b\npolicies: x: {a: 1 // sched:ignored\n}\n", "\t\n")
	f.Fuzz(func(t *testing.T, text, annotation string) {
		o := suppress.Object{Ref: "A b", Annotations: map[string]string{suppress.Annotation: annotation}, At: at("a", 1, 1)}
		lines := diag.NewText([]byte(text))
		var all []suppress.Ignore
		var findings diag.Findings
		for _, read := range []func() ([]suppress.Ignore, diag.Findings){
			func() ([]suppress.Ignore, diag.Findings) { return suppress.CUE("f", []byte(text)) },
			func() ([]suppress.Ignore, diag.Findings) { return suppress.YAML("f", []byte(text)) },
			func() ([]suppress.Ignore, diag.Findings) { return suppress.Of(o) },
		} {
			ignores, fs := read()
			all, findings = append(all, ignores...), append(findings, fs...)
		}
		for _, i := range all {
			if i.Rule == "" || i.Reason == "" || i.Range.Start.Line < 1 || strings.ContainsAny(i.Rule, " \t\n") {
				t.Errorf("%+v", i)
			}
		}
		left, _ := suppress.Apply(findings, all, rules())
		for _, f := range left {
			if f.Fix == nil {
				continue
			}
			for _, e := range f.Fix.Edits {
				start, ok := lines.Offset(e.Range.Start)
				end, fits := lines.Offset(e.Range.End)
				if !ok || !fits || end < start {
					t.Errorf("%q: the edit %+v does not fit", text, e)
				}
			}
		}
	})
}
