package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// findingsGitHub writes one workflow command a finding, which GitHub Actions makes an
// annotation of. It shows those of the first few only (ten of each level and step).
func findingsGitHub(w io.Writer, findings diag.Findings, o Options) error {
	var b strings.Builder
	texts := o.texts()
	for _, f := range findings {
		level := "notice"
		if f.Severity != diag.Info {
			level = string(f.Severity)
		}
		properties, where := githubPlace(f.Range, texts, o)
		properties = append(properties, "title="+githubProperty.Replace(f.Rule))
		fmt.Fprintf(&b, "::%s %s::%s\n", level, strings.Join(properties, ","), githubMessage.Replace(where+advice(f)))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// githubPlace returns the properties of a command that say where, or, where they
// cannot, the beginning of its message.
func githubPlace(r diag.Range, texts func(string) *diag.Text, o Options) (properties []string, where string) {
	if !r.Start.IsValid() {
		return nil, ""
	}
	name, inside := o.inRepository(r.Start.File)
	if !inside || r.Start.File == stdin {
		return nil, o.place(r.Start) + ": "
	}
	add := func(key string, value any) {
		properties = append(properties, key+"="+githubProperty.Replace(fmt.Sprint(value)))
	}
	add("file", name)
	if r.Start.Line == 0 {
		return properties, ""
	}
	add("line", r.Start.Line)
	if r.End.Line > r.Start.Line {
		add("endLine", r.End.Line) // for several lines there are no columns
		return properties, ""
	}
	text := texts(r.Start.File)
	if column := characters(text, r.Start, utf16Width); column > 0 {
		add("col", column)
		if end := characters(text, r.End, utf16Width); end > column {
			add("endColumn", end)
		}
	}
	return properties, ""
}

// What the runner undoes of a command's message and of its properties.
var (
	githubMessage  = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	githubProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)
