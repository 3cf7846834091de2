package release_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-sched/kubectl-sched/internal/release"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/imagename"
	"github.com/kubectl-sched/kubectl-sched/test/page"
)

// TestInstall does what docs/install.md says, as it stands there. Each way to the plugin
// begins on a machine of its own; GitHub is on loopback.
func TestInstall(t *testing.T) {
	t.Parallel()
	ways := map[string]func(*testing.T, []page.Block){
		"with-krew":         installByKrew,
		"by-hand":           installByHand,
		"who-made-it":       checkMaker,
		"building-it-again": buildAgain,
	}
	blocks := map[string][]page.Block{}
	for _, b := range readPage(t, "install.md").Blocks {
		blocks[b.Under] = append(blocks[b.Under], b)
	}
	for under := range blocks {
		if ways[under] == nil {
			t.Errorf("nothing runs what is under #%s", under)
		}
	}
	for under, way := range ways {
		t.Run(under, func(t *testing.T) {
			t.Parallel()
			if len(blocks[under]) == 0 {
				t.Fatal("the page has nothing to run there")
			}
			way(t, blocks[under])
		})
	}
}

// readPage reads a page of docs.
func readPage(t *testing.T, name string) *page.Page {
	t.Helper()
	p, err := page.Read(filepath.Join(root, "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// commandsOf returns the commands of a block, all of which must be some. The pages are for
// the platform of most readers; here it is that of the machine.
func commandsOf(t *testing.T, b page.Block) (all []string) {
	t.Helper()
	for _, c := range b.Commands() {
		if c.Says != "" || c.Text == "" || b.Language != page.Console {
			t.Errorf("line %d: %q is no command", b.Line, c.Says)
		}
		text := strings.ReplaceAll(c.Text, "linux_amd64", host.OS+"_"+host.Arch)
		all = append(all, strings.ReplaceAll(text, "linux/amd64", host.String()))
	}
	return all
}

// runBlock runs the commands of a block, and returns what they say.
func (m *machine) runBlock(folder string, b page.Block) (said string) {
	m.Helper()
	for _, c := range commandsOf(m.T, b) {
		said += m.shell(folder, c)
	}
	return said
}

// holdsVersion holds that kubectl runs the plugin of the release.
func (m *machine) holdsVersion(folder string) {
	m.Helper()
	if said := m.shell(folder, "kubectl sched version"); !strings.Contains(said, "Client Version: "+version) {
		m.Errorf("it says that it is\n%s", said)
	}
}

// installByKrew takes the plugin from krew's index, which is made of the release's
// manifest as docs/releasing.md says, and on another machine by the manifest alone.
func installByKrew(t *testing.T, blocks []page.Block) {
	if len(blocks) != 2 {
		t.Fatalf("there are %d ways, not 2", len(blocks))
	}
	reach := github(t, made.get(t))

	m := newMachine(t)
	index := filepath.Join(m.home, "krew-index")
	m.env = append(m.env, append(reach, "KREW_DEFAULT_INDEX_URI="+index)...)
	if err := os.MkdirAll(filepath.Join(index, "plugins"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(filepath.Join(made.get(t), "sched.yaml"), filepath.Join(index, "plugins", "sched.yaml")); err != nil {
		t.Fatal(err)
	}
	m.shell(index, "git init -q -b master && git add . && git commit -q -m index")
	m.runBlock(m.home, blocks[0])
	m.holdsVersion(m.home)
	if got := m.run("kubectl", "__complete", "sched", "lin"); !strings.HasPrefix(got, "lint") {
		t.Errorf("kubectl completes \"sched lin\" by %q", got)
	}
	// There is no next version yet.
	if said := m.shell(m.home, "! kubectl krew upgrade sched"); !strings.Contains(said, "the newest version is already installed") {
		t.Errorf("an upgrade says\n%s", said)
	}

	other := newMachine(t)
	other.env = append(other.env, append(reach, "KREW_DEFAULT_INDEX_URI="+index)...)
	other.runBlock(other.home, blocks[1])
	other.holdsVersion(other.home)
}

// installByHand takes the files that a reader has downloaded.
func installByHand(t *testing.T, blocks []page.Block) {
	m := newMachine(t)
	folder := t.TempDir()
	for _, name := range []string{release.Checksums, release.ArchiveName(version, host)} {
		if err := os.Link(filepath.Join(made.get(t), name), filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	m.env = append(m.env, "PATH="+filepath.Join(m.home, ".local", "bin")+":"+m.path())
	for _, b := range blocks {
		said := m.runBlock(folder, b)
		if strings.Contains(b.Text, "--check") && !strings.Contains(said, release.ArchiveName(version, host)+": OK") {
			t.Errorf("the archive is not checked:\n%s", said)
		}
		if strings.Contains(b.Text, "cdx.json") && !strings.Contains(said, `"version": "v1.`) {
			t.Errorf("the bill of materials does not say what is in it:\n%s", said)
		}
	}
	m.holdsVersion(folder)
	if plugin := m.shell(folder, "command -v kubectl-sched"); !strings.Contains(plugin, ".local/bin/") {
		t.Errorf("the plugin is %s", plugin)
	}
	for _, name := range []string{"LICENSE", "NOTICES", "kubectl-sched.cdx.json"} {
		if info, err := os.Stat(filepath.Join(folder, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	// What is not what was published is found out.
	archive := release.ArchiveName(version, host)
	m.shell(folder, fmt.Sprintf("cat %[1]s - <<<x >other && mv other %[1]s && ! sha256sum --check --ignore-missing checksums.txt", archive))
}

// checkMaker runs cosign and gh as stand-ins, since signatures are made by GitHub alone:
// they take nothing but what the workflow has signed, by its own name for it.
func checkMaker(t *testing.T, blocks []page.Block) {
	workflow, err := os.ReadFile(filepath.Join(root, ".github", "workflows", "release.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	project := strings.TrimPrefix(release.Homepage, "https://github.com/")
	signer := "--certificate-oidc-issuer https://token.actions.githubusercontent.com --certificate-identity " + release.Homepage + "/.github/workflows/release.yaml@refs/tags/" + version
	archive := release.ArchiveName(version, host)
	// What may be asked, and what the workflow must do for it.
	asked := map[string]string{
		"cosign verify-blob " + release.Checksums + " --bundle " + release.Checksums + ".sigstore.json " + signer: "cosign sign-blob --yes --bundle dist/" + release.Checksums + ".sigstore.json dist/" + release.Checksums + "\n",
		"cosign verify " + imagename.Of(version) + " " + signer:                                                   "image=" + imagename.Repository + "\n",
		"gh attestation verify " + archive + " --repo " + project:                                                 "subject-checksums: dist/" + release.Checksums + "\n",
	}
	m := newMachine(t)
	for _, name := range []string{"cosign", "gh"} {
		path := filepath.Join(m.bin, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\necho "+name+" \"$@\"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, b := range blocks {
		for said := range strings.Lines(m.runBlock(m.home, b)) {
			step, ok := asked[strings.TrimSpace(said)]
			if !ok {
				t.Errorf("nobody has signed what this asks for: %s", said)
			}
			if !strings.Contains(string(workflow), step) {
				t.Errorf("%sand the workflow does not %q", said, step)
			}
			delete(asked, strings.TrimSpace(said))
		}
	}
	for command := range asked {
		t.Errorf("the page does not say %s", command)
	}
}

// buildAgain builds the archive from the tag, in a clone, by the page's commands. It must
// be the one that was published.
func buildAgain(t *testing.T, blocks []page.Block) {
	m := newMachine(t)
	m.limit = 15 * time.Minute // as a build on two busy cores may take
	m.withGo()
	clone := filepath.Join(m.home, "kubectl-sched")
	m.shell(m.home, fmt.Sprintf("git clone -q %s %s", tagged.get(t), clone))
	said := ""
	for _, b := range blocks {
		said += m.runBlock(clone, b)
	}
	archive := release.ArchiveName(version, host)
	want := sums(t, made.get(t))[archive] + "  dist/" + archive + "\n"
	if !strings.HasSuffix(said, want) {
		t.Errorf("it does not end with\n%s\nbut is\n%s", want, said)
	}
}

// withGo puts Go on the PATH, with the caches that it has here.
func (m *machine) withGo() {
	m.Helper()
	program, err := exec.LookPath("go")
	if err != nil {
		m.Fatal(err)
	}
	m.env = append(m.env, "PATH="+filepath.Dir(program)+":"+m.path())
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPROXY", "GOTOOLCHAIN", "GOSUMDB"} {
		value, err := exec.CommandContext(m.Context(), "go", "env", name).Output()
		if err != nil {
			m.Fatal(err)
		}
		m.env = append(m.env, name+"="+strings.TrimSpace(string(value)))
	}
}

// path is the PATH of the machine: of several, the last is in force.
func (m *machine) path() (list string) {
	for _, v := range m.env {
		if value, ok := strings.CutPrefix(v, "PATH="); ok {
			list = value
		}
	}
	return list
}
