package report

import (
	"encoding/json"
	"io"

	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// FindingList is the document that findings are written as.
type FindingList struct {
	// APIVersion is the schema version of the document: APIVersion.
	APIVersion string `json:"apiVersion"`
	// Kind is "FindingList".
	Kind string `json:"kind"`
	// Items are the findings in the order of their places; never null.
	Items []diag.Finding `json:"items"`
	// Summary counts them.
	Summary Summary `json:"summary"`
}

// Summary counts findings by severity.
type Summary struct {
	Errors   int `json:"errors"`
	Warnings int `json:"warnings"`
	Infos    int `json:"infos"`
}

// Count returns how many findings there are of each severity.
func Count(findings diag.Findings) Summary {
	var s Summary
	for _, f := range findings {
		switch f.Severity {
		case diag.Error:
			s.Errors++
		case diag.Warning:
			s.Warnings++
		default:
			s.Infos++
		}
	}
	return s
}

func findingsJSON(w io.Writer, findings diag.Findings, o Options) error {
	list := FindingList{APIVersion: APIVersion, Kind: "FindingList", Items: make([]diag.Finding, 0, len(findings)), Summary: Count(findings)}
	for _, f := range findings {
		list.Items = append(list.Items, o.relocate(f))
	}
	return writeJSON(w, list)
}

// relocate returns the finding with its files named as the options say.
func (o Options) relocate(f diag.Finding) diag.Finding {
	f.Range = o.rng(f.Range)
	related := make([]diag.Related, 0, len(f.Related))
	for _, r := range f.Related {
		related = append(related, diag.Related{Range: o.rng(r.Range), Message: r.Message})
	}
	f.Related = related
	if f.Fix != nil {
		fix := diag.Fix{Message: f.Fix.Message, Safe: f.Fix.Safe}
		for _, e := range f.Fix.Edits {
			fix.Edits = append(fix.Edits, diag.Edit{Range: o.rng(e.Range), NewText: e.NewText})
		}
		f.Fix = &fix
	}
	return f
}

// writeJSON writes v indented and with a newline at the end, leaving "<" and
// "&" as they are.
func writeJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}
