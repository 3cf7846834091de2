package report_test

import (
	"encoding/json"
	"encoding/xml"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"
	cuejson "cuelang.org/go/encoding/json"
	"cuelang.org/go/encoding/jsonschema"
	"github.com/rogpeppe/go-internal/txtar"
	"pgregory.net/rapid"

	"github.com/kubectl-sched/kubectl-sched/internal/report"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
	"github.com/kubectl-sched/kubectl-sched/test/golden"
)

// toolFormats are the formats that a tool reads.
var toolFormats = []report.Format{report.SARIF, report.GitHub, report.GitLab, report.JUnit, report.RDJSON}

// formatOptions stand in /repo/app of the repository /repo; files in the archive are
// named relative to the former.
func formatOptions(archive *txtar.Archive) report.Options {
	return report.Options{
		Dir: "/repo/app", Repository: "/repo", Version: "v1.2.3",
		Source: func(name string) ([]byte, bool) {
			if path.IsAbs(name) {
				name = strings.TrimPrefix(name, "/repo/app/")
			}
			data := golden.File(archive, name)
			return data, data != nil
		},
		Rule: func(id string) report.RuleDoc {
			if id == "workload/documented" {
				return report.RuleDoc{Short: "What \"it\" finds.", HelpURI: "https://example.com/rules#documented"}
			}
			return report.RuleDoc{}
		},
	}
}

// TestFormats writes findings.json of each testdata/*.txtar in every format for tools
// and compares them with "want.FORMAT".
func TestFormats(t *testing.T) {
	t.Parallel()
	schema := sarifSchema(t)
	golden.Run(t, func(t *testing.T, input *txtar.Archive) []txtar.File {
		var findings diag.Findings
		if err := json.Unmarshal(golden.File(input, "findings.json"), &findings); err != nil {
			t.Fatal(err)
		}
		var out []txtar.File
		for _, format := range toolFormats {
			var b strings.Builder
			if err := report.Findings(&b, format, findings, formatOptions(input)); err != nil {
				t.Fatal(err)
			}
			if format == report.SARIF {
				if err := cuejson.Validate([]byte(b.String()), schema); err != nil {
					t.Errorf("not SARIF 2.1.0: %v", err)
				}
			}
			out = append(out, golden.Result("want."+string(format), b.String())...)
		}
		return out
	})
}

// sarifSchema is the official schema, as the errata of the standard have it.
func sarifSchema(t *testing.T) cue.Value {
	t.Helper()
	data, err := os.ReadFile("testdata/schemas/sarif-schema-2.1.0.json")
	if err != nil {
		t.Fatal(err)
	}
	expr, err := cuejson.Extract("sarif-schema-2.1.0.json", data)
	if err != nil {
		t.Fatal(err)
	}
	ctx := cuecontext.New()
	file, err := jsonschema.Extract(ctx.BuildExpr(expr), &jsonschema.Config{StrictFeatures: true})
	if err != nil {
		t.Fatal(err)
	}
	schema := ctx.BuildFile(file)
	if err := cuejson.Validate([]byte(`{"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "x"}}, "results": [{"level": "bad"}]}]}`), schema); err == nil {
		t.Fatal("the schema lets a wrong document through")
	}
	return schema
}

// TestFormatsAreWellFormed holds for any finding that SARIF meets its schema, that
// JSON and XML can be read, and that a workflow command stays one line.
func TestFormatsAreWellFormed(t *testing.T) {
	t.Parallel()
	schema := sarifSchema(t)
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.Map(rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "a: b, c%0A", "x\r\ny", "\x00\x1b[31m", "\xff", "::error::", "]]>", "/repo/app/web.yaml", "../x.yaml", "web.yaml", "-"})), func(s string) string {
			// CUE, which validates, takes a byte order mark for an error anywhere.
			return strings.ReplaceAll(s, "\ufeff", "")
		})
		place := rapid.Custom(func(t *rapid.T) diag.Range {
			file := word.Draw(t, "file")
			n := rapid.IntRange(0, 6)
			r := diag.Range{Start: diag.Pos{File: file, Line: n.Draw(t, "line"), Column: n.Draw(t, "column")}}
			if rapid.Bool().Draw(t, "end") {
				r.End = diag.Pos{File: file, Line: r.Start.Line + n.Draw(t, "lines"), Column: r.Start.Column + n.Draw(t, "columns")}
			}
			return r
		})
		findings := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) diag.Finding {
			f := diag.Finding{
				Rule: word.Draw(t, "rule"), Severity: rapid.SampledFrom([]diag.Severity{diag.Error, diag.Warning, diag.Info}).Draw(t, "severity"),
				Policy: word.Draw(t, "policy"), Subject: word.Draw(t, "subject"), Message: word.Draw(t, "message"), Range: place.Draw(t, "range"),
			}
			if rapid.Bool().Draw(t, "more") {
				f.Related = []diag.Related{{Range: place.Draw(t, "related"), Message: word.Draw(t, "why")}}
				f.Fix = &diag.Fix{Message: word.Draw(t, "fix"), Edits: []diag.Edit{{Range: place.Draw(t, "edit"), NewText: word.Draw(t, "text")}, {Range: place.Draw(t, "edit"), NewText: "x"}}}
			}
			return f
		}), 0, 3).Draw(t, "findings")
		o := report.Options{Dir: "/repo/app", Repository: "/repo", Source: func(string) ([]byte, bool) { return []byte("ab\n\U00010437\xffü\n\nx"), true }}
		for _, format := range toolFormats {
			var b strings.Builder
			if err := report.Findings(&b, format, findings, o); err != nil {
				t.Fatal(err)
			}
			switch format {
			case report.SARIF:
				if err := cuejson.Validate([]byte(b.String()), schema); err != nil {
					t.Fatalf("not SARIF 2.1.0: %v\n%s", err, b.String())
				}
			case report.GitLab, report.RDJSON:
				if !json.Valid([]byte(b.String())) {
					t.Fatalf("not JSON: %s", b.String())
				}
			case report.JUnit:
				if err := xml.Unmarshal([]byte(b.String()), new(struct{})); err != nil {
					t.Fatalf("not XML: %v\n%s", err, b.String())
				}
			case report.GitHub:
				lines := slices.Collect(strings.Lines(b.String()))
				if len(lines) != len(findings) || strings.Contains(b.String(), "\r") {
					t.Fatalf("%d lines for %d findings: %q", len(lines), len(findings), b.String())
				}
			default:
				t.Fatalf("nothing holds of %s", format)
			}
		}
	})
}

// TestIgnoredInSARIF holds that what somebody said is meant is there as suppressed, with
// the reason and the place, and that the rest is said not to be.
func TestIgnoredInSARIF(t *testing.T) {
	t.Parallel()
	at := func(line int) diag.Range { return diag.At(diag.Pos{File: "a.yaml", Line: line, Column: 1}) }
	open := diag.Finding{Rule: "a/open", Severity: diag.Warning, Range: at(1), Message: "m"}
	meant := diag.Finding{Rule: "a/meant", Severity: diag.Error, Range: at(3), Message: "m"}
	var b strings.Builder
	if err := report.Findings(&b, report.SARIF, diag.Findings{open}, report.Options{Ignored: []diag.Ignored{{Finding: meant, Reason: "it is so", Range: at(2)}}}); err != nil {
		t.Fatal(err)
	}
	if err := cuejson.Validate([]byte(b.String()), sarifSchema(t)); err != nil {
		t.Errorf("not SARIF 2.1.0: %v", err)
	}
	var log struct {
		Runs []struct {
			Results []struct {
				RuleID       string `json:"ruleId"`
				Suppressions *[]struct {
					Kind          string `json:"kind"`
					Justification string `json:"justification"`
				} `json:"suppressions"`
			} `json:"results"`
		} `json:"runs"`
	}
	if err := json.Unmarshal([]byte(b.String()), &log); err != nil {
		t.Fatal(err)
	}
	results := log.Runs[0].Results
	if len(results) != 2 || results[0].RuleID != "a/open" || results[0].Suppressions == nil || len(*results[0].Suppressions) != 0 {
		t.Fatalf("%+v", results)
	}
	if s := results[1].Suppressions; results[1].RuleID != "a/meant" || s == nil || len(*s) != 1 || (*s)[0].Kind != "inSource" || (*s)[0].Justification != "it is so" {
		t.Errorf("%+v", results[1])
	}
}
