package report

import (
	"io"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/internal/lint/fingerprint"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// findingsWriters has one writer for each format of findings.
var findingsWriters = []struct {
	format Format
	write  func(io.Writer, diag.Findings, Options) error
}{
	{Text, findingsText},
	{JSON, findingsJSON},
	{SARIF, findingsSARIF},
	{GitHub, findingsGitHub},
	{GitLab, findingsGitLab},
	{JUnit, findingsJUnit},
	{RDJSON, findingsRDJSON},
}

// FindingFormats returns the formats that Findings writes.
func FindingFormats() []Format {
	formats := make([]Format, len(findingsWriters))
	for i, f := range findingsWriters {
		formats[i] = f.format
	}
	return formats
}

// Findings writes the findings in the format. Errors are those of w, and an
// unknown format, which names the known ones.
func Findings(w io.Writer, format Format, findings diag.Findings, o Options) error {
	for _, f := range findingsWriters {
		if f.format == format {
			return f.write(w, findings, o)
		}
	}
	_, err := ParseFormat(string(format), FindingFormats()...)
	return err
}

// The program as the formats name it that say what wrote them.
const (
	toolName = "kubectl-sched"
	toolURI  = "https://github.com/kubectl-sched/kubectl-sched"
)

// sentence is what a finding says apart from its place: policy, subject, message.
func sentence(f diag.Finding) string {
	f.Range = diag.Range{}
	return f.String()
}

// advice is sentence with what would mend it in a line below.
func advice(f diag.Finding) string {
	if f.Fix == nil {
		return sentence(f)
	}
	return sentence(f) + "\nfix: " + f.Fix.Message
}

// details is advice with the related places below, for formats that have no others.
func (o Options) details(f diag.Finding) string {
	lines := []string{advice(f)}
	for _, r := range f.Related {
		line := r.Message
		if place := o.place(r.Range.Start); place != "" {
			line = place + ": " + line
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// prints returns the fingerprints of findings, in their order.
func (o Options) prints(findings diag.Findings) []fingerprint.Print {
	return fingerprint.Of(findings, fingerprint.Sources{Name: o.Name, Read: o.Source})
}
