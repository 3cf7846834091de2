// Package emit writes a Plan out for people and tools that hold manifests, not
// clusters: whole manifests, a kustomize Component, or the Plan itself as a
// versioned document.
//
// It maps a Plan and the set of manifests that it was compiled from to files.
// Manifests keep every byte that a policy does not change, and each changed
// object says in its ownership annotation what is ours in it, so that emitting
// twice changes nothing and a policy that goes away leaves the manifest as it
// was. Everything is computed before the first file is replaced. The package
// must not know the policy language, how a Plan was found, clusters, or how
// findings are printed.
package emit

import (
	"bytes"

	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// File is one file that a Plan comes to: what was read and what is to be
// there.
type File struct {
	// Name is the name relative to the folder that the user gave, with slashes:
	// where the file goes below an output folder.
	Name string
	// Path is where the file was read from, or for a file of ours where it
	// goes in place; "-" for standard input.
	Path string
	// Root is the folder that Path may not lead out of through symbolic links.
	Root string
	// Before is what was read, nil where there was no file.
	Before []byte
	// After is what is to be there, nil where there is to be no file.
	After []byte
}

// Changed reports whether the file would be another after writing.
func (f File) Changed() bool {
	return (f.Before == nil) != (f.After == nil) || !bytes.Equal(f.Before, f.After)
}

// finding is a Finding of severity Error about the file as a whole.
func finding(rule, file, message string) diag.Finding {
	return diag.Finding{Rule: rule, Severity: diag.Error, Range: diag.At(diag.Pos{File: file}), Message: message}
}
