package release_test

import (
	goversion "go/version"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/kubectl-sched/kubectl-sched/internal/release"
	"github.com/kubectl-sched/kubectl-sched/internal/release/gobuild"
	"github.com/kubectl-sched/kubectl-sched/krew"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/imagename"
)

// workflow is what matters of the workflow that publishes a release.
type workflow struct {
	Permissions map[string]string `json:"permissions"`
	Jobs        map[string]struct {
		Permissions map[string]string `json:"permissions"`
		Steps       []struct{ Name, Uses, Run string }
	} `json:"jobs"`
}

// readWorkflow reads it.
func readWorkflow(t *testing.T) workflow {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, ".github", "workflows", "release.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var w workflow
	if err := yaml.Unmarshal(text, &w); err != nil {
		t.Fatal(err)
	}
	return w
}

// TestWorkflow holds of the workflow what can be held without running it: nobody can
// change an action under it, the job that builds may write nothing, and what it
// publishes is what is made, under the names by which it is installed.
func TestWorkflow(t *testing.T) {
	t.Parallel()
	w := readWorkflow(t)
	if w.Permissions == nil || len(w.Permissions) > 0 {
		t.Errorf("jobs that say nothing may do %v", w.Permissions)
	}
	for _, may := range w.Jobs["build"].Permissions {
		if may != "read" {
			t.Errorf("the job that builds may do %v", w.Jobs["build"].Permissions)
		}
	}
	pinned := regexp.MustCompile(`^[\w.-]+/[\w./-]+@[0-9a-f]{40}$`)
	var scripts strings.Builder
	for name, job := range w.Jobs {
		for _, s := range job.Steps {
			if s.Uses != "" && !pinned.MatchString(s.Uses) {
				t.Errorf("%s: %s is not pinned to a commit", name, s.Uses)
			}
			if strings.Contains(s.Run, "${{") {
				t.Errorf("%s: %q has an expression in a script, where a name could become a command", name, s.Name)
			}
			scripts.WriteString(s.Run + "\n")
		}
	}
	check := exec.CommandContext(t.Context(), "bash", "-n")
	check.Stdin = strings.NewReader(scripts.String())
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("a script is no bash: %v\n%s", err, out)
	}
	for _, part := range []string{
		"image=" + imagename.Repository + "\n",
		"dist/" + strings.Replace(release.DigestName("v0"), "v0", "${VERSION}", 1),
		"oci:dist/" + strings.Replace(release.LayoutName("v0"), "v0", "${VERSION}", 1) + ":${VERSION}",
		"make release image ", "dist/" + release.Checksums, "dist/sched.yaml",
	} {
		if !strings.Contains(scripts.String(), part) {
			t.Errorf("the workflow does not say %q", part)
		}
	}
	for name := range sums(t, made.get(t)) {
		if strings.Contains(name, "/") {
			continue // of the layout, which is pushed
		}
		if !published(t, scripts.String(), name) {
			t.Errorf("%s is made, and not published", name)
		}
	}
}

// TestWorkflowValidates runs the step that holds the manifest against krew's validator: one
// for this machine alone is refused, and that of all platforms is taken unless something is
// wrong with it.
func TestWorkflowValidates(t *testing.T) {
	t.Parallel()
	w := readWorkflow(t)
	script := ""
	for _, s := range w.Jobs["build"].Steps {
		if s.Name == "Validate krew's manifest" {
			script = s.Run
		}
	}
	tools, err := filepath.Abs(filepath.Join(root, "tools"))
	if err != nil {
		t.Fatal(err)
	}
	validate := func(platforms []gobuild.Platform, change func(string) string) (string, error) {
		t.Helper()
		var archives []krew.Archive
		for _, p := range platforms {
			archives = append(archives, krew.Archive{
				OS: p.OS, Arch: p.Arch, Bin: p.Executable("kubectl-sched"), SHA256: strings.Repeat("0123456789abcdef", 4),
				URI: release.Homepage + "/releases/download/" + version + "/" + release.ArchiveName(version, p),
			})
		}
		manifest, err := krew.Manifest(version, archives)
		if err != nil {
			t.Fatal(err)
		}
		folder := t.TempDir()
		if err := os.Mkdir(filepath.Join(folder, "dist"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "dist", "sched.yaml"), []byte(change(string(manifest))), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(tools, filepath.Join(folder, "tools")); err != nil {
			t.Fatal(err)
		}
		run := exec.CommandContext(t.Context(), "bash", "-eo", "pipefail", "-c", script)
		run.Dir = folder
		out, err := run.CombinedOutput()
		return string(out), err
	}
	same := func(s string) string { return s }
	if out, err := validate(release.PluginPlatforms(), same); err != nil {
		t.Errorf("the manifest of all platforms: %v\n%s", err, out)
	}
	if _, err := validate([]gobuild.Platform{host}, same); err == nil {
		t.Error("a manifest of one platform is taken")
	}
	if out, err := validate(release.PluginPlatforms(), func(s string) string { return strings.Replace(s, "shortDescription: ", "shortDescription: '' #", 1) }); err == nil {
		t.Errorf("a manifest without a description is taken:\n%s", out)
	}
}

// published reports whether a pattern in the scripts matches the file.
func published(t *testing.T, scripts, name string) bool {
	t.Helper()
	for word := range strings.FieldsSeq(scripts) {
		pattern, ok := strings.CutPrefix(word, "dist/")
		if !ok {
			continue
		}
		if matched, err := filepath.Match(pattern, name); err == nil && matched {
			return true
		}
	}
	return false
}

// TestGoVersion holds that releases are built by one Go, and one that can build this.
func TestGoVersion(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root, ".go-version"))
	if err != nil {
		t.Fatal(err)
	}
	builder := "go" + strings.TrimSpace(string(text))
	list := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.GoVersion}}")
	list.Dir = root
	needed, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	least := "go" + strings.TrimSpace(string(needed))
	if strings.Count(builder, ".") != 2 || !goversion.IsValid(builder) || goversion.Compare(builder, least) < 0 {
		t.Errorf("releases are built with %q; a whole version from %s on is needed", builder, least)
	}
}
