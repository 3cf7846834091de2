package release_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-sched/kubectl-sched/internal/release"
	"github.com/kubectl-sched/kubectl-sched/internal/sandbox"
)

// machine is a home folder with kubectl and krew, as a user has them.
type machine struct {
	*testing.T
	home, bin string
	env       []string
	// limit is how long a command may take, if not patience.
	limit time.Duration
}

// krewTools are krew and its validator, in the version that is pinned in tools/krew.
var krewTools = &dist{make: func(ctx context.Context, dir string) error {
	build := exec.CommandContext(ctx, "go", "build", "-o", dir+"/", "sigs.k8s.io/krew/cmd/krew", "sigs.k8s.io/krew/cmd/validate-krew-manifest")
	build.Dir = filepath.Join(root, "tools", "krew")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build krew: %w\n%s", err, out)
	}
	return nil
}}

// newMachine links krew, also as the plugin of kubectl that it is, and upstream's kubectl,
// which the sandbox has inside.
func newMachine(t *testing.T) *machine {
	t.Helper()
	m := &machine{T: t, home: t.TempDir()}
	m.bin = filepath.Join(m.home, "bin")
	if err := os.MkdirAll(m.bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, tool := range map[string]string{"krew": "krew", "kubectl-krew": "krew", "validate-krew-manifest": "validate-krew-manifest"} {
		if err := os.Symlink(filepath.Join(krewTools.get(t), tool), filepath.Join(m.bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	kubectl, err := sandbox.Binary(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(kubectl, filepath.Join(m.bin, "kubectl")); err != nil {
		t.Fatal(err)
	}
	krewRoot := filepath.Join(m.home, ".krew")
	m.env = []string{
		"HOME=" + m.home, "KREW_ROOT=" + krewRoot, "NO_COLOR=1",
		"PATH=" + strings.Join([]string{filepath.Join(krewRoot, "bin"), m.bin, "/usr/bin", "/bin"}, string(os.PathListSeparator)),
	}
	return m
}

// run runs a command line in the home folder and returns what it printed.
func (m *machine) run(name string, arguments ...string) string {
	m.Helper()
	ctx, cancel := context.WithTimeout(m.Context(), patience)
	defer cancel()
	path := filepath.Join(m.bin, name)
	command := exec.CommandContext(ctx, path, arguments...)
	command.Dir, command.Env = m.home, m.env
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		m.Fatalf("%s %s: %v\n%s%s", name, strings.Join(arguments, " "), err, out, stderr.String())
	}
	return string(out)
}

func (m *machine) write(name, text string) string {
	m.Helper()
	path := filepath.Join(m.home, name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		m.Fatal(err)
	}
	return path
}

// TestKrew holds that krew's own validator takes the manifest, that krew installs the
// plugin by it, and that a policy then gets into a cluster by kubectl alone.
func TestKrew(t *testing.T) {
	t.Parallel()
	dir := made.get(t)
	m := newMachine(t)
	m.env = append(m.env, "KUBECONFIG="+shared.Get(t).Kubeconfig())
	manifest := filepath.Join(dir, "sched.yaml")
	m.run("validate-krew-manifest", "-skip-install", "-manifest", manifest)
	m.run("krew", "install", "--manifest="+manifest, "--archive="+filepath.Join(dir, release.ArchiveName(version, host)))
	if list := m.run("kubectl", "plugin", "list"); !strings.Contains(list, filepath.Join(".krew", "bin", "kubectl-sched")) {
		t.Errorf("kubectl knows the plugins %q", list)
	}

	t.Run("version", func(t *testing.T) {
		var v struct {
			ClientVersion struct{ GitVersion, GitCommit string }
		}
		if err := json.Unmarshal([]byte(m.run("kubectl", "sched", "version", "-o", "json")), &v); err != nil {
			t.Fatal(err)
		}
		if v.ClientVersion.GitVersion != version || v.ClientVersion.GitCommit != commit(t) {
			t.Errorf("it says that it is %+v", v.ClientVersion)
		}
	})
	t.Run("apply", func(t *testing.T) {
		const namespace = "krew-shop"
		m.run("kubectl", "create", "namespace", namespace)
		m.run("kubectl", "-n", namespace, "create", "deployment", "web", "--image=none")
		m.run("kubectl", "sched", "init", "placement")
		m.write("placement/placement.cue", "package placement\n\npolicies: web: {\n\tworkloads: namespaces: [\""+namespace+"\"]\n\tnodes: forbid: labels: \"karpenter.sh/capacity-type\": \"spot\"\n}\n")
		m.run("kubectl", "sched", "lint", "-p", "placement")
		m.run("kubectl", "sched", "apply", "-p", "placement", "--surface", "live", "--set", "shop", "-n", namespace)
		affinity := m.run("kubectl", "-n", namespace, "get", "deployment", "web", "-o", "jsonpath={.spec.template.spec.affinity}")
		if !strings.Contains(affinity, `"NotIn"`) || !strings.Contains(affinity, "karpenter.sh/capacity-type") {
			t.Errorf("the deployment has the affinity %q", affinity)
		}
	})
	t.Run("completion", func(t *testing.T) {
		m.run("kubectl", "sched", "completion", "install")
		got := m.run("kubectl", "__complete", "sched", "lin")
		if !strings.HasPrefix(got, "lint") {
			t.Errorf("kubectl completes \"sched lin\" by %q", got)
		}
		if got := m.run("kubectl", "__complete", "sched", "lint", "-o", ""); !strings.Contains(got, "sarif") {
			t.Errorf("kubectl completes \"sched lint -o\" by %q", got)
		}
	})
	t.Run("image", func(t *testing.T) {
		config := m.write("scheduler.yaml", "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles: [{schedulerName: own}]\n")
		objects := m.run("kubectl", "sched", "scheduler", "install", "--config", config, "--dry-run=client", "-o", "yaml")
		if !strings.Contains(objects, "image: ghcr.io/kubectl-sched/placement-scheduler:"+version+"\n") {
			t.Errorf("it does not install the image of its own version:\n%s", objects)
		}
	})
	t.Run("shipped", func(t *testing.T) {
		store := filepath.Join(m.home, ".krew", "store", "sched", version)
		for name, mode := range map[string]os.FileMode{"LICENSE": 0o644, "NOTICES": 0o644, "kubectl-sched.cdx.json": 0o644, "kubectl_complete-sched": 0o755, "kubectl-sched": 0o755} {
			if info, err := os.Stat(filepath.Join(store, name)); err != nil || info.Size() == 0 || info.Mode().Perm()&0o111 != mode&0o111 {
				t.Errorf("%s: %v, %v", name, info, err)
			}
		}
	})
}
