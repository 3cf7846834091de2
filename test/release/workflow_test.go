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

// TestWorkflow holds of the workflow what can be held without running it: nobody can
// change an action under it, the job that builds may write nothing, and what it
// publishes is what is made, under the names by which it is installed.
func TestWorkflow(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root, ".github", "workflows", "release.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var w workflow
	if err := yaml.Unmarshal(text, &w); err != nil {
		t.Fatal(err)
	}
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
