package krm

import (
	"os"
	"path/filepath"
	"regexp"

	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// inlinePolicy is CUE that was written inside a functionConfig. Policies are
// loaded from files, so that it is put into one for the while.
type inlinePolicy struct {
	// folder is the temporary folder, empty where there is no such policy.
	folder string
	// added counts the lines that were put before the text.
	added int
}

// inlineName is what findings call the text.
const inlineName = "functionConfig.cue"

var packageClause = regexp.MustCompile(`(?m)^package[ \t]`)

// writeInline puts the text into a file. Without a package clause it gets one.
func writeInline(text string) (inlinePolicy, error) {
	if text == "" {
		return inlinePolicy{}, nil
	}
	var p inlinePolicy
	if !packageClause.MatchString(text) {
		text, p.added = "package placement\n"+text, 1
	}
	var err error
	if p.folder, err = os.MkdirTemp("", "kubectl-sched-fn-"); err != nil {
		return inlinePolicy{}, err
	}
	if err := os.WriteFile(p.file(), []byte(text), 0o600); err != nil {
		p.remove()
		return inlinePolicy{}, err
	}
	return p, nil
}

func (p inlinePolicy) file() string { return filepath.Join(p.folder, inlineName) }

// paths returns the folder to load, if there is one.
func (p inlinePolicy) paths() []string {
	if p.folder == "" {
		return nil
	}
	return []string{p.folder}
}

// remove takes the file away. What fails to go from the temporary folder harms
// nobody.
func (p inlinePolicy) remove() {
	if p.folder != "" {
		_ = os.RemoveAll(p.folder)
	}
}

// rename lets the findings speak of the text that the user wrote.
func (p inlinePolicy) rename(findings diag.Findings) diag.Findings {
	if p.folder == "" {
		return findings
	}
	renamed := make(diag.Findings, len(findings))
	for i, f := range findings {
		f.Range = p.renameRange(f.Range)
		related := make([]diag.Related, len(f.Related))
		for j, r := range f.Related {
			r.Range = p.renameRange(r.Range)
			related[j] = r
		}
		f.Related = related
		renamed[i] = f
	}
	return renamed
}

func (p inlinePolicy) renameRange(r diag.Range) diag.Range {
	return diag.Range{Start: p.renamePos(r.Start), End: p.renamePos(r.End)}
}

func (p inlinePolicy) renamePos(pos diag.Pos) diag.Pos {
	if pos.File == p.file() {
		pos.File = inlineName
		pos.Line = max(pos.Line-p.added, 0)
	}
	return pos
}
