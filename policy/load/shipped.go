package load

import (
	"embed"
	"fmt"
	"path/filepath"

	cueload "cuelang.org/go/cue/load"

	"github.com/kubectl-sched/kubectl-sched/catalog"
	"github.com/kubectl-sched/kubectl-sched/policy"
)

// shippedPackage is a CUE package that this build carries and serves to imports.
type shippedPackage struct {
	name string // below policy.ModulePath
	word string // what a reader calls it
	// files has the package's files at its top, and may have others in folders.
	files embed.FS
}

// shipped returns the packages that this build carries: the schema and the catalog.
func shipped() []shippedPackage {
	return []shippedPackage{
		{"policy", "schema", policy.Schema()},
		{"catalog", "catalog", catalog.Source()},
	}
}

// texts returns the package's files, sorted by name.
func (p shippedPackage) texts() (files []namedFile, err error) {
	entries, err := p.files.ReadDir(".")
	if err != nil {
		return nil, fmt.Errorf("read the built-in %s: %w", p.word, err)
	}
	for _, e := range entries {
		data, err := p.files.ReadFile(e.Name())
		if err != nil {
			return nil, fmt.Errorf("read the built-in %s: %w", p.word, err)
		}
		files = append(files, namedFile{e.Name(), data})
	}
	return files, nil
}

// addShipped adds the packages to an overlay, each in its folder below root.
func addShipped(overlay map[string]cueload.Source, root string) error {
	for _, p := range shipped() {
		files, err := p.texts()
		if err != nil {
			return err
		}
		for _, f := range files {
			overlay[filepath.Join(root, p.name, f.name)] = cueload.FromBytes(f.data)
		}
	}
	return nil
}
