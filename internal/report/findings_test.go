package report_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-sched/kubectl-sched/internal/report"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

func at(file string, line, from, to int) diag.Range {
	r := diag.At(diag.Pos{File: file, Line: line, Column: from})
	if to > 0 {
		r.End = diag.Pos{File: file, Line: line, Column: to}
	}
	return r
}

func source(files map[string]string) func(string) ([]byte, bool) {
	return func(name string) ([]byte, bool) {
		text, ok := files[name]
		return []byte(text), ok
	}
}

func TestFindingsText(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"/repo/web.cue": "package shop\n\tpools: [\"spto\"]\r\n",
		"web.yaml":      "kind: Deployment\n",
		"long.yaml":     strings.Repeat("x", 100) + "HERE" + strings.Repeat("y", 100) + "\n",
		"wide.yaml":     "name: \"größe\" # ü\n",
		"evil.yaml":     "a: \x1b[31m\n",
		"lines.cue":     "a: {\n\tb: 1\n}\n",
	}
	tests := map[string]struct {
		findings diag.Findings
		want     string
	}{
		"none": {nil, ""},
		"whole": {
			diag.Findings{{
				Rule: "policy/unknown-pool", Severity: diag.Error, Policy: "web", Range: at("/repo/web.cue", 2, 10, 16),
				Message: `there is no pool "spto"; did you mean "spot"?`,
				Related: []diag.Related{{Range: at("web.yaml", 1, 1, 0), Message: "the workload"}},
				Fix:     &diag.Fix{Message: `write "spot"`},
			}},
			`web.cue:2:10: error: policy "web": there is no pool "spto"; did you mean "spot"?
    [policy/unknown-pool]
    2 | pools: ["spto"]
      |         ^^^^^^
  web.yaml:1:1: the workload
    1 | kind: Deployment
      | ^
  fix: write "spot"

1 error
`,
		},
		"several are counted and stand apart": {
			diag.Findings{
				{Rule: "a/b", Severity: diag.Error, Message: "x"},
				{Rule: "a/b", Severity: diag.Error, Message: "y"},
				{Rule: "a/b", Severity: diag.Warning, Subject: "Pod a/b", Message: "z"},
				{Rule: "a/b", Severity: diag.Info, Message: "i"},
			},
			`error: x [a/b]

error: y [a/b]

warning: Pod a/b: z [a/b]

note: i [a/b]

2 errors, 1 warning, 1 note
`,
		},
		"long lines are cut around the mark": {
			diag.Findings{{Rule: "a/b", Severity: diag.Error, Range: at("long.yaml", 1, 101, 105), Message: "m"}},
			"long.yaml:1:101: error: m [a/b]\n" +
				"    1 | …" + strings.Repeat("x", 23) + "HERE" + strings.Repeat("y", 43) + "…\n" +
				"      | " + strings.Repeat(" ", 24) + "^^^^\n\n1 error\n",
		},
		"columns count bytes": {
			diag.Findings{{Rule: "a/b", Severity: diag.Error, Range: at("wide.yaml", 1, 17, 18), Message: "m"}},
			"wide.yaml:1:17: error: m [a/b]\n    1 | name: \"größe\" # ü\n      |               ^\n\n1 error\n",
		},
		"control characters do not reach the terminal": {
			diag.Findings{{Rule: "a/b", Severity: diag.Error, Range: at("evil.yaml", 1, 1, 0), Message: "a\x1b]0;b"}},
			"evil.yaml:1:1: error: a\uFFFD]0;b [a/b]\n    1 | a: \uFFFD[31m\n      | ^\n\n1 error\n",
		},
		"a range over lines marks the first": {
			diag.Findings{{Rule: "a/b", Severity: diag.Error, Message: "m", Range: diag.Range{
				Start: diag.Pos{File: "lines.cue", Line: 1, Column: 4}, End: diag.Pos{File: "lines.cue", Line: 3, Column: 2},
			}}},
			"lines.cue:1:4: error: m [a/b]\n    1 | a: {\n      |    ^\n\n1 error\n",
		},
		"a place past the end has no excerpt": {
			diag.Findings{{Rule: "a/b", Severity: diag.Error, Range: at("web.yaml", 9, 1, 0), Message: "m"}},
			"web.yaml:9:1: error: m [a/b]\n\n1 error\n",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b strings.Builder
			o := report.Options{Dir: "/repo", Source: source(files)}
			if err := report.Findings(&b, report.Text, test.findings, o); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, b.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for line := range strings.Lines(b.String()) {
				if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > report.DefaultWidth {
					t.Errorf("%d columns: %q", n, line)
				}
			}
		})
	}
}

func TestFindingsJSON(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		findings diag.Findings
		want     string
	}{
		"none": {nil, `{
  "apiVersion": "kubectl-sched.github.io/v1alpha1",
  "kind": "FindingList",
  "items": [],
  "summary": {
    "errors": 0,
    "warnings": 0,
    "infos": 0
  }
}
`},
		"files are relative": {
			diag.Findings{{
				Rule: "a/b", Severity: diag.Warning, Range: at("/repo/web.cue", 2, 10, 0), Message: "1 < 2",
				Fix: &diag.Fix{Message: "f", Safe: true, Edits: []diag.Edit{{Range: at("/repo/web.cue", 2, 10, 12), NewText: "x"}}},
			}},
			`{
  "apiVersion": "kubectl-sched.github.io/v1alpha1",
  "kind": "FindingList",
  "items": [
    {
      "rule": "a/b",
      "severity": "warning",
      "range": {
        "start": {
          "file": "web.cue",
          "line": 2,
          "column": 10
        }
      },
      "message": "1 < 2",
      "fix": {
        "message": "f",
        "edits": [
          {
            "range": {
              "start": {
                "file": "web.cue",
                "line": 2,
                "column": 10
              },
              "end": {
                "file": "web.cue",
                "line": 2,
                "column": 12
              }
            },
            "newText": "x"
          }
        ],
        "safe": true
      }
    }
  ],
  "summary": {
    "errors": 0,
    "warnings": 1,
    "infos": 0
  }
}
`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b strings.Builder
			if err := report.Findings(&b, report.JSON, test.findings, report.Options{Dir: "/repo"}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, b.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnknownFormat(t *testing.T) {
	t.Parallel()
	err := report.Findings(&strings.Builder{}, "sarfi", nil, report.Options{})
	if want := `unknown output format "sarfi"; it is one of: text, json, sarif, github, gitlab, junit, rdjson`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %q", err, want)
	}
}

func TestColored(t *testing.T) {
	t.Parallel()
	if report.Colored(&strings.Builder{}, func(string) string { return "" }) {
		t.Error("a buffer is no terminal")
	}
}
