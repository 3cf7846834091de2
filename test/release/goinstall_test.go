package release_test

import (
	"archive/zip"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-sched/kubectl-sched/test/page"
)

// module is what "go install" knows this source as.
const module = "github.com/kubectl-sched/kubectl-sched"

// TestGoInstall installs the plugin as the README says, from a proxy for modules in which
// there is this source besides those of others.
func TestGoInstall(t *testing.T) {
	t.Parallel()
	p, err := page.Read(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	command := ""
	for _, b := range p.Blocks {
		if strings.HasPrefix(b.Text, "go install ") {
			command = strings.TrimSpace(b.Text)
		}
	}
	if command == "" || strings.Contains(command, "\n") {
		t.Fatalf("the README has %q", command)
	}
	proxy, newest := t.TempDir(), ""
	if newest, err = publish(tagged.get(t), filepath.Join(proxy, filepath.FromSlash(module), "@v")); err != nil {
		t.Fatal(err)
	}

	m := newMachine(t)
	m.limit = 15 * time.Minute // as a build on two busy cores may take
	m.withGo()
	var others, cache string
	for name, value := range map[string]*string{"GOPROXY": &others, "GOMODCACHE": &cache} {
		out, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		*value = strings.TrimSpace(string(out))
	}
	// What was unpacked of this source is of no use to anybody else.
	t.Cleanup(func() { forget(t, cache, newest) })
	bin := filepath.Join(m.home, "go", "bin")
	m.env = append(m.env, "GOPROXY=file://"+proxy+","+others, "GONOSUMDB="+module, "GOBIN="+bin, "PATH="+bin+":"+m.path(),
		// As everything else is built here: what is linked is compiled by then.
		"CGO_ENABLED=0", "GOFLAGS=-trimpath -modcacherw")
	m.shell(m.home, command)
	if said := m.shell(m.home, "kubectl sched version"); !strings.Contains(said, "Client Version: "+newest+"\n") {
		t.Errorf("it is not %s, but says\n%s", newest, said)
	}
}

// publish writes a source to a folder of a proxy as its module, whose version is that of
// no other source. It returns the version.
func publish(source, to string) (version string, err error) {
	list := exec.Command("git", "ls-files", "-z")
	list.Dir = source
	out, err := list.Output()
	if err != nil {
		return "", err
	}
	names := ofModule(strings.Split(strings.Trim(string(out), "\x00"), "\x00"))
	sum := sha256.New()
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(source, name))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%s %d\n%s", name, len(data), data)
	}
	version = fmt.Sprintf("v1.2.3-%x", sum.Sum(nil)[:8])
	if err := os.MkdirAll(to, 0o755); err != nil {
		return "", err
	}
	file, err := os.Create(filepath.Join(to, version+".zip"))
	if err != nil {
		return "", err
	}
	archive := zip.NewWriter(file)
	for _, name := range names {
		if err := addFile(archive, module+"@"+version+"/"+name, filepath.Join(source, name)); err != nil {
			return "", err
		}
	}
	if err := archive.Close(); err != nil {
		return "", err
	}
	if err := file.Close(); err != nil {
		return "", err
	}
	goMod, err := os.ReadFile(filepath.Join(source, "go.mod"))
	if err != nil {
		return "", err
	}
	for name, text := range map[string]string{
		"list": version + "\n", version + ".mod": string(goMod),
		version + ".info": fmt.Sprintf("{\"Version\": %q, \"Time\": %q}\n", version, at.Format(time.RFC3339)),
	} {
		if err := os.WriteFile(filepath.Join(to, name), []byte(text), 0o644); err != nil {
			return "", err
		}
	}
	return version, nil
}

// ofModule leaves out what is of a module of its own.
func ofModule(names []string) (own []string) {
	var others []string
	for _, name := range names {
		if dir, ok := strings.CutSuffix(name, "/go.mod"); ok {
			others = append(others, dir+"/")
		}
	}
	for _, name := range names {
		other := false
		for _, dir := range others {
			other = other || strings.HasPrefix(name, dir)
		}
		if !other {
			own = append(own, name)
		}
	}
	return own
}

func addFile(archive *zip.Writer, name, path string) error {
	to, err := archive.Create(name)
	if err != nil {
		return err
	}
	from, err := os.Open(path)
	if err != nil {
		return err
	}
	defer from.Close()
	_, err = io.Copy(to, from)
	return err
}

// forget removes a version of the module from Go's cache.
func forget(t *testing.T, cache, version string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(cache, "cache", "download", filepath.FromSlash(module), "@v", version+".*"))
	if err != nil {
		t.Error(err)
	}
	for _, path := range append(files, filepath.Join(cache, filepath.FromSlash(module)+"@"+version)) {
		if err := os.RemoveAll(path); err != nil {
			t.Error(err)
		}
	}
}
