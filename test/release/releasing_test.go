package release_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-sched/kubectl-sched/internal/release"
	"github.com/kubectl-sched/kubectl-sched/test/page"
)

// TestReleasing does what docs/releasing.md says: the release in a clone, for this machine
// alone, and the pull request to krew's index, with GitHub on loopback and a stand-in for
// its command.
func TestReleasing(t *testing.T) {
	t.Parallel()
	blocks := readPage(t, "releasing.md").Blocks
	if len(blocks) != 2 {
		t.Fatalf("there are %d blocks, not 2", len(blocks))
	}
	t.Run("make", func(t *testing.T) { makeByPage(t, blocks[0]) })
	t.Run("index", func(t *testing.T) { submitByPage(t, blocks[1]) })
}

// makeByPage makes what will be published, and then checks what was as the page says.
func makeByPage(t *testing.T, b page.Block) {
	t.Parallel()
	m := newMachine(t)
	m.limit = 15 * time.Minute // as a build on two busy cores may take
	m.withGo()
	m.env = append(m.env, "PLATFORMS="+host.String())
	clone := filepath.Join(m.home, "kubectl-sched")
	m.shell(m.home, "git clone -q "+tagged.get(t)+" "+clone)
	m.shell(clone, b.Text)
	dist := filepath.Join(clone, "dist")
	published, err := os.ReadFile(filepath.Join(made.get(t), release.Checksums))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dist, release.Checksums), published, 0o644); err != nil {
		t.Fatal(err)
	}
	m.shell(dist, "sha256sum --check "+release.Checksums)
	for _, name := range []string{"sched.yaml", release.DigestName(version), release.LayoutName(version)} {
		if _, err := os.Stat(filepath.Join(dist, name)); err != nil {
			t.Error(err)
		}
	}
}

// submitByPage opens the pull request to an index that has had no plugin of the name.
func submitByPage(t *testing.T, b page.Block) {
	t.Parallel()
	m := newMachine(t)
	m.env = append(m.env, github(t, made.get(t))...)
	m.env = append(m.env, gitEnvironment()...)
	m.shell(m.home, "git init -q -b master upstream && cd upstream && mkdir plugins && touch plugins/other.yaml && git add . && git commit -q -m index")
	// gh forks, and the fork is where it pushes to.
	stand := `#!/bin/sh
set -eu
case "$*" in
"repo fork kubernetes-sigs/krew-index --clone") git clone -q --bare "$HOME/upstream" "$HOME/fork" && git clone -q "$HOME/fork" krew-index ;;
"pr create --fill") git push -q origin HEAD && git log --format=%s -1 >"$HOME/title" ;;
*) echo "the stand-in for gh does not know $*" >&2; exit 2 ;;
esac
`
	if err := os.WriteFile(filepath.Join(m.bin, "gh"), []byte(stand), 0o755); err != nil {
		t.Fatal(err)
	}
	m.shell(m.home, "set -euo pipefail\n"+b.Text)
	if title := m.shell(m.home, "cat title"); strings.TrimSpace(title) != "new version "+version+" of sched" {
		t.Errorf("the pull request is called %q", title)
	}
	want, err := os.ReadFile(filepath.Join(made.get(t), "sched.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if got := m.shell(m.home, "git -C fork show sched-"+version+":plugins/sched.yaml"); got != string(want) {
		t.Errorf("the index would get\n%s", got)
	}
	if changed := m.shell(m.home, "git -C fork diff --name-only master sched-"+version); changed != "plugins/sched.yaml\n" {
		t.Errorf("the pull request changes\n%s", changed)
	}
}
