package docs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// beside are the programs of others that examples run, each in the version that is pinned
// in tools/beside.
var beside = map[string]*program{
	"cue":   {pkg: "cuelang.org/go/cmd/cue"},
	"helm3": {pkg: "helm.sh/helm/v3/cmd/helm"},
	"helm4": {pkg: "helm.sh/helm/v4/cmd/helm"},
}

type program struct {
	pkg  string
	once sync.Once
	path string
	err  error
}

// besides returns the variable PATH with a folder in front of it in which a program of
// beside has a name.
func besides(t *testing.T, name, which string) string {
	t.Helper()
	p := beside[which]
	p.once.Do(func() {
		// It builds the tool where it is not built yet, and says where it is.
		build := exec.Command("go", "tool", "-n", p.pkg)
		build.Dir = filepath.Join(root, "tools", "beside")
		build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath")
		var said strings.Builder
		build.Stderr = &said
		out, err := build.Output()
		if err != nil {
			p.err = fmt.Errorf("build %s: %w\n%s", p.pkg, err, said.String())
		}
		p.path = strings.TrimSpace(string(out))
	})
	if p.err != nil {
		t.Fatal(p.err)
	}
	bin := t.TempDir()
	if err := os.Symlink(p.path, filepath.Join(bin, name)); err != nil {
		t.Fatal(err)
	}
	return "PATH=" + bin + string(filepath.ListSeparator) + os.Getenv("PATH")
}
