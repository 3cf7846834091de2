package load

import (
	"fmt"

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
	return out, nil
}
