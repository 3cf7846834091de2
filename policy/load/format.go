package load

import (
	"fmt"

	cueerrors "cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/format"
	"cuelang.org/go/cue/parser"

	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// Format returns a CUE file in the form that CUE gives it. A file that cannot
// be parsed is an error, which is of type diag.Findings and names filename.
func Format(src []byte, filename string) ([]byte, error) {
	if len(src) > MaxFile {
		return nil, diag.Findings{inputError("input/limit", filename, "%v", errTooLarge)}
	}
	set := &folderSet{display: map[string]string{filename: filename}}
	f, err := parser.ParseFile(filename, src, parser.ParseComments, parser.AllErrors, parser.Version(policy.SchemaLanguage))
	if err != nil {
		return nil, set.syntaxFindings(err, &cueSource{display: filename})
	}
	out, err := format.Node(f)
	if err != nil {
		return nil, fmt.Errorf("format %s: %w", filename, err)
	}
	if findings := stillCUE(out, filename, policy.SchemaLanguage); len(findings) > 0 {
		return nil, findings
	}
	return out, nil
}

// stillCUE returns what there is to say of a formatted file that cannot be parsed any
// more: CUE's formatter loses a comma that begins a line. Such a file stays as it is.
func stillCUE(formatted []byte, shown, language string) diag.Findings {
	_, err := parser.ParseFile(shown, formatted, parser.ParseComments, parser.Version(language))
	if err == nil {
		return nil
	}
	return diag.Findings{inputError("input/format", shown, "cannot be formatted, since the formatter would lose a part of it (%s); write each comma behind what it follows, on the same line", cueText(cueerrors.Errors(err)[0]))}
}
