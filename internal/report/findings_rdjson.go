package report

import (
	"io"

	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// The parts of the Reviewdog Diagnostic Format that findings need, named as its
// definition (reviewdog.rdf) names them.
type (
	rdResult struct {
		Source      rdSource       `json:"source"`
		Diagnostics []rdDiagnostic `json:"diagnostics"`
	}
	rdSource struct {
		Name string `json:"name"`
		URL  string `json:"url"`
	}
	rdDiagnostic struct {
		Message     string         `json:"message"`
		Location    *rdLocation    `json:"location,omitempty"`
		Severity    string         `json:"severity"`
		Code        rdCode         `json:"code"`
		Suggestions []rdSuggestion `json:"suggestions,omitempty"`
	}
	rdLocation struct {
		Path  string   `json:"path"`
		Range *rdRange `json:"range,omitempty"`
	}
	rdRange struct {
		Start rdPosition  `json:"start"`
		End   *rdPosition `json:"end,omitempty"`
	}
	rdPosition struct {
		Line   int `json:"line"`
		Column int `json:"column,omitempty"`
	}
	rdCode struct {
		Value string `json:"value"`
		URL   string `json:"url,omitempty"`
	}
	rdSuggestion struct {
		Range rdRange `json:"range"`
		Text  string  `json:"text"`
	}
)

var rdSeverities = map[diag.Severity]string{diag.Error: "ERROR", diag.Warning: "WARNING", diag.Info: "INFO"}

// findingsRDJSON writes one result. Its columns count bytes, as ours do, and its ends
// are not part of the range, as ours are not. Paths are relative to the working
// folder, from which reviewdog finds the repository. The format has no related
// places: they are lines of the message.
func findingsRDJSON(w io.Writer, findings diag.Findings, o Options) error {
	o.Repository = ""
	out := rdResult{Source: rdSource{toolName, toolURI}, Diagnostics: make([]rdDiagnostic, 0, len(findings))}
	for _, f := range findings {
		d := rdDiagnostic{
			Message: o.details(f), Severity: rdSeverities[f.Severity],
			Code: rdCode{Value: f.Rule, URL: o.rule(f.Rule).HelpURI},
		}
		if f.Range.Start.IsValid() {
			d.Location = &rdLocation{Path: o.Name(f.Range.Start.File), Range: rdRangeOf(f.Range)}
			d.Suggestions = rdSuggestions(f)
		}
		out.Diagnostics = append(out.Diagnostics, d)
	}
	return writeJSON(w, out)
}

func rdRangeOf(r diag.Range) *rdRange {
	if r.Start.Line == 0 {
		return nil
	}
	out := &rdRange{Start: rdPosition{r.Start.Line, r.Start.Column}}
	if r.End.Line > 0 {
		out.End = &rdPosition{r.End.Line, r.End.Column}
	}
	return out
}

// rdSuggestions returns the edits of the fix; none where one is in another file,
// which the format cannot say.
func rdSuggestions(f diag.Finding) []rdSuggestion {
	if f.Fix == nil {
		return nil
	}
	var out []rdSuggestion
	for _, e := range f.Fix.Edits {
		at := rdRangeOf(e.Range)
		if at == nil || e.Range.Start.File != f.Range.Start.File {
			return nil
		}
		if at.End == nil {
			at.End = &at.Start
		}
		out = append(out, rdSuggestion{Range: *at, Text: e.NewText})
	}
	return out
}
