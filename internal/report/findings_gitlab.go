package report

import (
	"io"

	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// gitlabIssue is an entry of GitLab's code quality report, of which GitLab reads
// these fields.
type gitlabIssue struct {
	Description string         `json:"description"`
	CheckName   string         `json:"check_name"`
	Fingerprint string         `json:"fingerprint"`
	Severity    string         `json:"severity"`
	Location    gitlabLocation `json:"location"`
}

type gitlabLocation struct {
	Path  string      `json:"path"`
	Lines gitlabLines `json:"lines"`
}

type gitlabLines struct {
	Begin int `json:"begin"`
	End   int `json:"end,omitempty"`
}

// gitlabSeverities leave out "critical" and "blocker", which say how bad the outcome
// is: nothing here knows that.
var gitlabSeverities = map[diag.Severity]string{diag.Error: "major", diag.Warning: "minor", diag.Info: "info"}

// findingsGitLab writes the report. Every entry must have a path and a line there:
// what has none is at the first line of the repository's folder.
func findingsGitLab(w io.Writer, findings diag.Findings, o Options) error {
	prints := o.prints(findings)
	issues := make([]gitlabIssue, 0, len(findings))
	for i, f := range findings {
		issue := gitlabIssue{
			Description: advice(f), CheckName: f.Rule, Fingerprint: prints[i].String(), Severity: gitlabSeverities[f.Severity],
			Location: gitlabLocation{Path: ".", Lines: gitlabLines{Begin: max(1, f.Range.Start.Line)}},
		}
		if f.Range.Start.IsValid() && f.Range.Start.File != stdin {
			issue.Location.Path = o.Name(f.Range.Start.File)
		}
		if f.Range.End.Line > f.Range.Start.Line {
			issue.Location.Lines.End = f.Range.End.Line
		}
		issues = append(issues, issue)
	}
	return writeJSON(w, issues)
}
