package workload

import (
	"context"
	"io"
	"io/fs"

	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// Input says where manifests are to be read from, as kubectl's -f, -R and -k.
type Input struct {
	// Files are files and folders; "-" is Stdin.
	Files []string
	// Recursive reads the folders within folders too.
	Recursive bool
	// Kustomize is the folder of a kustomization, or empty.
	Kustomize string
	// Stdin is what "-" reads.
	Stdin io.Reader
}

// Options are what reading depends on besides the input.
type Options struct {
	// Namespace is that of objects that name none; empty for "default".
	Namespace string
	// Kinds is the table of kinds; nil for the built-in one.
	Kinds *Kinds
	// MaxFileSize is how many bytes one file may have; 0 for DefaultMaxFileSize.
	MaxFileSize int64
}

// DefaultMaxFileSize is how many bytes a file of manifests may have, if the
// user does not say otherwise: 32 MiB.
const DefaultMaxFileSize = 32 << 20

// Set is everything that was read, in the order of the input.
type Set struct {
	Files     []*File
	Workloads []*Workload
	// Others are the objects without a pod template.
	Others []*Object
}

// File is one text that objects were read from.
type File struct {
	// Name is the file as the user named it (for a file in a folder, the
	// folder's name joined with the rest), "-" for standard input, or the folder
	// of a kustomization.
	Name string
	// Data is the text as it was read; for a kustomization, the rendered YAML.
	Data []byte
	// Mode is the mode of the file; 0 where there is none to write back to
	// (standard input, a kustomization).
	Mode fs.FileMode
}

// Object is an object that has no pod template.
type Object struct {
	Group, Version, Kind, Namespace, Name string
	// Object is the whole object; read only.
	Object map[string]any
	Source Source
}

// Read reads all manifests of the input. Findings tell of everything that could
// not be read; the set has all that could.
func Read(ctx context.Context, in Input, o Options) (*Set, diag.Findings) {
	return &Set{}, nil
}

// FromObject returns the workload in an object, with the given source; false
// if the object is of a kind that has no pod template. Findings tell of what is
// wrong in it; with an error among them the workload may lack fields.
func FromObject(object map[string]any, o Options, source Source) (*Workload, diag.Findings, bool) {
	return nil, nil, false
}
