// Package browser_test opens the page of kubectl sched review in a real Chromium and
// uses it as people do: with a mouse, with the keyboard alone, in the dark, in narrow
// and wide windows, and with names that would rather be programs.
package browser_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubectl-sched/kubectl-sched/test/browser/chrome"
)

// The pages, by the names of their files.
const (
	usualPage   = "usual.html"
	largePage   = "large.html"
	nothingPage = "nothing.html"
	hostilePage = "hostile.html"
	brokenPage  = "broken.html"
)

var (
	browser context.Context
	pages   string
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "sched-browser-")
	if err == nil {
		defer func() { _ = os.RemoveAll(dir) }()
		pages = dir
		var stop func()
		if browser, stop, err = chrome.Start(context.Background()); err == nil {
			defer stop()
			err = makePages(context.Background())
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "browser:", err)
		return 1
	}
	return m.Run()
}

// makePages has the plugin write the pages.
func makePages(ctx context.Context) error {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		return err
	}
	plugin := filepath.Join(root, "bin", "kubectl-sched")
	if _, err := os.Stat(plugin); err != nil {
		return fmt.Errorf("the plugin is not built, run make build: %w", err)
	}
	for _, c := range []struct {
		name, nodes, pods string
		pages             map[string]string // branch by page
	}{
		{"usual", "72", "560", map[string]string{usualPage: "change", nothingPage: "comments"}},
		{"large", "1000", "10000", map[string]string{largePage: "change"}},
	} {
		dir := filepath.Join(pages, c.name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
		if err := execute(ctx, root, "go", "run", "./test/reviewed/write", "-plugin", plugin, "-dir", dir, "-nodes", c.nodes, "-pods", c.pods); err != nil {
			return err
		}
		for page, branch := range c.pages {
			if err := execute(ctx, filepath.Join(dir, "repository"), plugin, "review", "--base", "main", "--head", branch, "-p", "placement", "-f", "manifests", "-R",
				"--snapshot", filepath.Join(dir, "prod.snapshot"), "-o", "html="+filepath.Join(pages, page)); err != nil {
				return err
			}
		}
	}
	return hostile(ctx, plugin)
}

// evil is a name that would be a program, if a page let it.
const evil = `</script><img src=x onerror=window.ran=1><script>window.ran=1</script>`

// hostile writes the pages of changes with names like that: of nodes, zones, a
// workload and files, and of a policy, which is no name of one.
func hostile(ctx context.Context, plugin string) error {
	repository := filepath.Join(pages, "hostile")
	node := func(name, gen string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: Node\nmetadata:\n  name: %q\n  labels: {topology.kubernetes.io/zone: %q, gen: %q}\nstatus: {allocatable: {cpu: \"8\", memory: 16Gi, pods: \"110\"}}\n", name, evil, gen)
	}
	placement := func(policy, gen string) string {
		return fmt.Sprintf("package placement\n\npools: %q: nodes: labels: gen: %q\npolicies: %q: {\n\tworkloads: namespaces: [\"shop\"]\n\tnodes: require: labels: gen: %q\n}\n", "first", "1", policy, gen)
	}
	files := map[string]string{
		"placement/placement.cue":                                  placement("web", "1"),
		"manifests/" + strings.ReplaceAll(evil, "/", "") + ".yaml": fmt.Sprintf("apiVersion: apps/v1\nkind: Deployment\nmetadata: {namespace: shop, name: %q}\nspec:\n  replicas: 3\n  selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n    spec:\n      containers: [{name: c, image: web, resources: {requests: {cpu: \"1\"}}}]\n", evil),
		"cluster.yaml": node("a"+evil, "1") + "---\n" + node("b"+evil, "2"),
	}
	for name, text := range files {
		path := filepath.Join(repository, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"}, {"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "-m", "base"}} {
		if err := execute(ctx, repository, "git", args...); err != nil {
			return err
		}
	}
	for page, text := range map[string]string{hostilePage: placement("web", "2"), brokenPage: placement(evil, "2")} {
		if err := os.WriteFile(filepath.Join(repository, "placement", "placement.cue"), []byte(text), 0o600); err != nil {
			return err
		}
		err := execute(ctx, repository, plugin, "review", "--base", "main", "-p", "placement", "-f", "manifests", "--snapshot", "cluster.yaml", "-o", "html="+filepath.Join(pages, page))
		var exit *exec.ExitError
		if err != nil && (page != brokenPage || !errors.As(err, &exit) || exit.ExitCode() != 2) {
			return err
		}
	}
	return nil
}

func execute(ctx context.Context, dir, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", filepath.Base(program), strings.Join(args, " "), err, said.Bytes())
	}
	return nil
}

// open opens a page for a test, which fails unless the page stays quiet.
func open(t *testing.T, name string, o chrome.Options) *chrome.Page {
	t.Helper()
	if o.Width == 0 {
		o.Width, o.Height = 1280, 900
	}
	p, stop, err := chrome.Open(browser, filepath.Join(pages, name), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Quiet(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		stop()
	})
	return p
}

// value is what an expression of the page's is.
func value[T any](t *testing.T, p *chrome.Page, expression string) T {
	t.Helper()
	v, err := chrome.Value[T](p, expression)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
