// Package catalog carries the ready-made policies: the CUE package that documents import,
// and for each of its entries a folder with an example, tests and a workload.
//
// It holds files and nothing else. It must not know how they are read: policy/load
// serves the package, and tells what its entries are.
package catalog

import "embed"

//go:embed *.cue
var source embed.FS

//go:embed */*.cue */manifests
var examples embed.FS

// Source returns the files of the CUE package, at the top.
func Source() embed.FS { return source }

// Examples returns a folder for each entry, named as the entry is: placement.cue uses it,
// tests.cue has tests of that, and manifests holds workloads that it is for.
func Examples() embed.FS { return examples }
