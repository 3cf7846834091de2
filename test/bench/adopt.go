package main

import "path/filepath"

// What is imported, and in how many times the time of reading it.
const (
	importName      = "import: 10,000 manifests"
	importManifests = 10_000
	importRatio     = 3
	importMiB       = 1024
)

// importRows is what finding the policies in a large repository takes, the proof that
// they change nothing included: each manifest has placement by hand, of which some is
// shared by all, some by a part, and some by nobody.
func importRows(dir, plugin, self string) ([]row, error) {
	imported := filepath.Join(dir, "imported")
	if err := generate(imported, lintPolicies, importManifests, 0); err != nil {
		return nil, err
	}
	if err := placeByHand(filepath.Join(imported, "manifests")); err != nil {
		return nil, err
	}
	return []row{{
		name:     importName,
		baseline: "CUE alone + YAML decode and encode",
		runs:     3, maxRatio: importRatio, maxMiB: importMiB,
		a: []string{plugin, "import", "-f", imported + "/manifests", "-R"},
		b: []string{self, "baseline", imported + "/placement", imported + "/manifests"},
	}}, nil
}
