package report_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/kubectl-sched/kubectl-sched/internal/preview"
	"github.com/kubectl-sched/kubectl-sched/internal/report"
	"github.com/kubectl-sched/kubectl-sched/internal/review"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// evil is a name that would be something else in markdown or HTML.
const evil = "x`</details><script>alert(1)</script> @all [a](http://evil.example) | <!-- \n# heading"

func written(t *testing.T, format report.Format, r *review.Review) string {
	t.Helper()
	var b bytes.Buffer
	if err := report.Review(&b, format, r, report.Options{}); err != nil {
		t.Fatal(err)
	}
	var again bytes.Buffer
	if err := report.Review(&again, format, r, report.Options{}); err != nil || !bytes.Equal(b.Bytes(), again.Bytes()) {
		t.Errorf("%s: not the same twice (%v)", format, err)
	}
	return b.String()
}

func hostile() *review.Review {
	at := diag.At(diag.Pos{File: evil, Line: 1, Column: 1})
	return &review.Review{
		Base: evil, Head: evil,
		Policies: []review.Declaration{{Sort: "policy", Name: evil, Action: review.Changed, Range: at, Values: []review.Value{{Path: evil, Before: evil, After: evil, Range: at}}}},
		Ignored:  []diag.Ignored{{Finding: diag.Finding{Rule: "a/b", Severity: diag.Error, Range: at, Subject: evil, Message: evil}, Reason: evil, Range: at}},
		Findings: diag.Findings{{Rule: "a/b", Severity: diag.Error, Range: at, Policy: evil, Subject: evil, Message: evil}},
		Sections: []review.Section{{
			Clusters:  []string{evil, evil},
			Restarts:  review.Restarts{Workloads: []string{evil}, Pods: 1},
			Workloads: []review.Workload{{Name: evil, Action: review.Added, Range: at}},
			Fields:    []review.FieldChange{{Field: evil, Removed: []string{evil}, Added: []string{evil}, Workloads: []string{evil}}},
			Objects:   []review.Object{{Name: evil, Action: review.Added}},
			Placement: &review.Placement{
				Cluster: evil, Moved: 1,
				Moves:   []review.Move{{Workload: evil, Moved: 1, Before: []review.Where{{Place: preview.Place{Pool: evil, Zone: evil}, Pods: 1}}, Pods: []review.PodMove{{Pod: evil, From: evil, To: evil}}}},
				Waiting: []review.Waiting{{Workload: evil, Verdict: "pending", Pods: []string{evil}, Causes: []review.Cause{{Reason: evil, Plugin: evil, Nodes: 1}}}},
				Skews:   []review.Skew{{Workload: evil, Key: evil}}, Stuck: []string{evil},
				Fill:        []review.Fill{{Place: preview.Place{Pool: evil, Zone: evil}}},
				Picture:     []review.Node{{Name: evil, Place: preview.Place{Pool: evil, Zone: evil}}},
				Assumptions: []string{evil},
			},
		}},
	}
}

// TestReviewEscapes holds that nothing that comes from a repository or a cluster is
// markup in what is written.
func TestReviewEscapes(t *testing.T) {
	t.Parallel()
	for _, several := range []bool{false, true} {
		r := hostile()
		if several {
			r.Sections = append(r.Sections, r.Sections[0])
		}
		html := written(t, report.HTML, r)
		if n := strings.Count(html, "<script>"); n != 1 {
			t.Errorf("the page has %d scripts", n)
		}
		if strings.Contains(html, "</details><script") || strings.Count(html, "href=") != strings.Count(html, `href="#`) || strings.Contains(html, "src=") {
			t.Error("a name is markup in the page, or the page loads something")
		}
		for line := range strings.Lines(written(t, report.Markdown, r)) {
			bare := withoutCode(line)
			if strings.Contains(bare, "script") || strings.Contains(bare, "@all") || strings.Contains(bare, "](") || strings.HasPrefix(line, "# ") {
				t.Errorf("a name is markup in the comment: %s", line)
			}
		}
	}
}

// withoutCode is the line without its code spans.
func withoutCode(line string) string {
	parts := strings.Split(line, "`")
	var out strings.Builder
	for i := 0; i < len(parts); i += 2 {
		out.WriteString(parts[i])
	}
	return out.String()
}

// TestReviewCommentIsSmall holds that a comment fits: in bytes, in lines that are not
// folded, and with all that is folded closed again.
func TestReviewCommentIsSmall(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 20, 400} {
		r := &review.Review{Base: "main", Head: "change"}
		for i := range n {
			r.Ignored = append(r.Ignored, diag.Ignored{Finding: diag.Finding{Rule: "a/b", Severity: diag.Warning, Message: "ignored"}, Reason: "reason"})
			r.Findings = append(r.Findings, diag.Finding{Rule: "a/b", Severity: diag.Warning, Message: fmt.Sprintf("finding %d", i)})
			s := hostile().Sections[0]
			s.Clusters = []string{fmt.Sprintf("cluster-%d", i)}
			for j := range n {
				s.Fields = append(s.Fields, review.FieldChange{Field: fmt.Sprint(j), Added: []string{strings.Repeat("x", 100)}, Workloads: []string{"Deployment a/b"}})
			}
			r.Sections = append(r.Sections, s)
		}
		text := written(t, report.Markdown, r)
		if !strings.HasPrefix(text, report.ReviewMarker+"\n") {
			t.Error("the comment does not begin with the marker")
		}
		if len(text) > 60_000 {
			t.Errorf("%d sections: the comment has %d bytes", n, len(text))
		}
		open, depth := 0, 0
		for line := range strings.Lines(text) {
			depth += strings.Count(withoutCode(line), "<details>")
			if depth == 0 || strings.Contains(line, "<summary>") && depth == 1 {
				open++
			}
			depth -= strings.Count(withoutCode(line), "</details>")
		}
		if depth != 0 || open > 60 {
			t.Errorf("%d sections: %d lines are open, and %d folds", n, open, depth)
		}
	}
}
