package load

import (
	cueerrors "cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/format"
	"cuelang.org/go/cue/parser"

	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// Format returns a CUE file in the form that CUE gives it, for the language version of
// the schema. A file that cannot be parsed or formatted is an error, which is of type
// diag.Findings and names filename.
func Format(src []byte, filename string) ([]byte, error) {
	if len(src) > MaxFile {
		return nil, diag.Findings{inputError("input/limit", filename, "%v", errTooLarge)}
	}
	set := &folderSet{display: map[string]string{filename: filename}}
	s := &cueSource{file: filename, display: filename, data: src}
	findings := set.parse(s, policy.SchemaLanguage)
	if len(findings) == 0 {
		var out []byte
		if out, findings = set.formatted(s, policy.SchemaLanguage); len(findings) == 0 {
			return out, nil
		}
	}
	return nil, findings
}

// formatted returns a file that was parsed in the form that CUE gives it. CUE's formatter
// loses a comma that begins a line: a file that could not be parsed any more stays as it is.
func (set *folderSet) formatted(s *cueSource, language string) ([]byte, diag.Findings) {
	out, err := format.Node(s.syntax, format.Version(language))
	if err != nil {
		return nil, set.syntaxFindings(err, s)
	}
	if _, err := parser.ParseFile(s.display, out, parser.ParseComments, parser.Version(language)); err != nil {
		return nil, diag.Findings{inputError("input/format", s.display, "cannot be formatted, since the formatter would lose a part of it (%s); write each comma behind what it follows, on the same line", cueText(cueerrors.Errors(err)[0]))}
	}
	return out, nil
}
