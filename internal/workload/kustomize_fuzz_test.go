package workload

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// FuzzKustomization holds that no kustomization.yaml ends the check that comes
// before kustomize, and that whatever the check says has a place.
func FuzzKustomization(f *testing.F) {
	for _, s := range []string{
		"resources: [a.yaml, base]\n", "resources:\n- https://example.com/x\n- ../base?ref=v1\n", "bases: [.]\n", "components: [base, /]\n",
		"resources: {a: 1}\n", "resources: [[a], {b: c}, null, 3]\n", "patches:\n- path: a.yaml\n- {patch: x}\n", "openapi: {path: git@x:y}\n", "openapi: 3\n",
		"a: &a [*a]\nresources: *a\n", "resources: &r [a.yaml]\nbases: *r\n", "[", "- a\n", "\"\"", "---\nresources: []\n---\nx\n", "replacements: [{path: x}, 1]\n",
		"resources:\n- \"a\\n- b\"\n", "\xef\xbb\xbfresources: [a.yaml]\n", "patchesJson6902:\n- path: github.com/x/y\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		for name, text := range map[string][]byte{
			"kustomization.yaml": data, "a.yaml": fmt.Appendf(nil, deployment, "a"), "base/kustomization.yaml": []byte("resources: [../]\n"),
		} {
			path := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		g := &gatherer{max: DefaultMaxFileSize}
		c := &kustomizationCheck{ctx: context.Background(), g: g, done: map[string]int{}}
		c.folder(dir, diag.At(diag.Pos{File: dir}))
		for _, finding := range g.findings {
			if finding.Range.Start.File == "" || finding.Message == "" || finding.Rule == "" {
				t.Errorf("%q: a finding without a place or words: %+v", data, finding)
			}
		}
	})
}
