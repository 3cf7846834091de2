package emit

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/kubectl-sched/kubectl-sched/compiler/profile"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// Into returns the files as they are to be below an output folder: each Path
// leads there, and Before is what is there now. Findings of severity Error tell
// of files that would have the same name, and of a kustomization, a scheduler's
// configuration, or a file for those who make nodes, that is not ours to replace.
func Into(disk FileSystem, folder string, files []File) ([]File, diag.Findings) {
	var findings diag.Findings
	sources := map[string]string{}
	moved := make([]File, 0, len(files))
	for _, f := range files {
		if other, taken := sources[f.Name]; taken {
			findings = append(findings, finding("input/same-name", f.Path,
				fmt.Sprintf("%q would have the same name %q in the output folder; compile the two in runs of their own", other, f.Name)))
			continue
		}
		sources[f.Name] = f.Path
		to := File{Name: f.Name, Path: filepath.Join(folder, filepath.FromSlash(f.Name)), Root: folder, After: f.After}
		before, err := disk.ReadFile(to.Path)
		switch {
		case err == nil:
			to.Before = nonNil(before)
		case !errors.Is(err, fs.ErrNotExist):
			findings = append(findings, finding("input/read", to.Path, err.Error()))
		}
		if f.Name == ComponentFile && bytes.HasPrefix(f.After, []byte(componentHeader)) && to.Before != nil && !bytes.HasPrefix(to.Before, []byte(componentHeader)) {
			findings = append(findings, finding("input/not-ours", to.Path, "this kustomization was not written by kubectl sched and will not be replaced; give another --output-dir"))
		}
		if bytes.HasPrefix(f.After, []byte(nodesHeader)) && to.Before != nil && !bytes.HasPrefix(to.Before, []byte(nodesHeader)) {
			findings = append(findings, finding("input/not-ours", to.Path, "this file was not written by kubectl sched and will not be replaced; give another --output-dir"))
		}
		if f.Name == ConfigurationFile && to.Before != nil && !profile.IsOurs(to.Before) {
			findings = append(findings, finding("input/not-ours", to.Path, "this configuration was not written by kubectl sched and will not be replaced; give another --output-dir"))
		}
		moved = append(moved, to)
	}
	return moved, findings
}

// nonNil keeps an empty file apart from one that is not there.
func nonNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
