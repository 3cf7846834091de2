package main

import (
	"path/filepath"
	"strconv"
)

// What is imported, and what it may take: in seconds for a repository of the usual size,
// in times of reading it for a large one.
const (
	importName    = "import: "
	importSeconds = 5
	importRatio   = 5
	importMiB     = 2048
)

// importRows is what finding the policies in a repository takes, the proof that they
// change nothing included: each manifest has placement by hand, of which some is shared
// by all, some by a part, and most by nobody.
func importRows(dir, plugin, self string) ([]row, error) {
	rows := []row{
		{name: importName + "1,000 manifests", runs: 3, maxSeconds: importSeconds},
		{name: importName + "10,000 manifests", runs: 3, maxRatio: importRatio, maxMiB: importMiB},
	}
	for i, manifests := range []int{1000, 10_000} {
		folder := filepath.Join(dir, "imported-"+strconv.Itoa(manifests))
		if err := generate(folder, lintPolicies, manifests, 0); err != nil {
			return nil, err
		}
		if err := placeByHand(filepath.Join(folder, "manifests")); err != nil {
			return nil, err
		}
		r := &rows[i]
		r.baseline = "CUE alone + YAML decode and encode"
		r.a = []string{plugin, "import", "-f", folder + "/manifests", "-R"}
		r.b = []string{self, "baseline", folder + "/placement", folder + "/manifests"}
	}
	return rows, nil
}
