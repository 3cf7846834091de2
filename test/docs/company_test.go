package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cuelabs.dev/go/oci/ociregistry/ocimem"
	"cuelabs.dev/go/oci/ociregistry/ociserver"

	"github.com/kubectl-sched/kubectl-sched/test/cueregistry"
	"github.com/kubectl-sched/kubectl-sched/test/loopback"
	"github.com/kubectl-sched/kubectl-sched/test/page"
)

// TestCompanyCatalog publishes the catalog of docs/catalog.md as the page says, to a
// registry that is on loopback and is called as there, and is a user of it then.
func TestCompanyCatalog(t *testing.T) {
	t.Parallel()
	company := ""
	var scripts []page.Block
	for _, b := range readPage(t, filepath.Join(root, "docs", "catalog.md")).Blocks {
		remarks, err := said(b)
		if err != nil {
			t.Fatal(err)
		}
		if name, ok := get(remarks, "file"); ok {
			company = t.TempDir()
			if err := (page.Block{Title: filepath.Base(name), Text: b.Text}).Put(company); err != nil {
				t.Fatal(err)
			}
		}
		if b.Under == "from-a-registry" {
			scripts = append(scripts, b)
		}
	}
	if company == "" || len(scripts) != 2 {
		t.Fatal("the page has not a catalog, how it is published and how it is used")
	}
	env := append(loopback.Serve(t, "registry.company.example", ociserver.New(ocimem.New(), nil)), "CUE_CACHE_DIR="+cueregistry.Cache(t), besides(t, "cue", "cue"))

	// The company has the file in git.
	run := func(dir string, b page.Block) string {
		t.Helper()
		out, code := shell(t, dir, noCluster, "set -euxo pipefail\n"+strings.Join(commands(b), "\n"), env...)
		if code != 0 {
			t.Fatalf("docs/catalog.md:%d: exit code %d:\n%s", b.Line, code, out)
		}
		return out
	}
	run(company, page.Block{Text: "git init -q -b main && git add . && git commit -q -m first"})
	if out := run(company, scripts[0]); !strings.Contains(out, "published company.example/placement@v0.1.0") {
		t.Errorf("it is not said what was published:\n%s", out)
	}
	// Who uses it has nothing of it.
	user := t.TempDir()
	run(user, page.Block{Text: "kubectl sched init placement"})
	out := run(user, scripts[1])
	for _, part := range []string{"standard", "every service of the company"} {
		if !strings.Contains(out, part) {
			t.Errorf("%q is not said:\n%s", part, out)
		}
	}
	module, err := os.ReadFile(filepath.Join(user, "placement", "cue.mod", "module.cue"))
	if err != nil || !strings.Contains(string(module), "v0.1.0") {
		t.Errorf("the version is not in %s (%v)", module, err)
	}
}
