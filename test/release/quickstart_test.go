package release_test

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubectl-sched/kubectl-sched/internal/release"
	"github.com/kubectl-sched/kubectl-sched/internal/sandbox"
	"github.com/kubectl-sched/kubectl-sched/internal/sandbox/sandboxtest"
	"github.com/kubectl-sched/kubectl-sched/test/page"
)

const (
	// mostCommands and mostLines are what a new user may be asked for: to the pods in
	// their places, and in one file.
	mostCommands = 12
	mostLines    = 15
)

// TestQuickstart does what docs/quickstart.md says, as it stands there, in a folder that
// holds the archive of a release and nothing else.
func TestQuickstart(t *testing.T) {
	t.Parallel()
	forward, back := quickstart(t)
	m := newMachine(t)
	client := shopInOneZone(t, m)
	folder := t.TempDir()
	for _, name := range []string{"sched.yaml", release.ArchiveName(version, host)} {
		if err := os.Link(filepath.Join(made.get(t), name), filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	before := pods(t, client)
	if len(before) != 6 || len(zones(before)) != 1 {
		t.Fatalf("the pods are at first on %v", before)
	}

	says := map[string]string{}
	var started map[string]string
	for _, c := range forward {
		verb := verbOf(c)
		says[verb] = m.shell(folder, c)
		if verb == "init" {
			started = files(t, folder)
		}
		if verb == "review" && !slices.Equal(pods(t, client), before) {
			t.Error("pods have moved before anything was applied")
		}
	}
	for path, text := range files(t, folder) {
		if n := addedLines(started[path], text); n > mostLines {
			t.Errorf("%s has %d lines that are not from init, over %d", path, n, mostLines)
		}
	}
	for _, verb := range []string{"krew", "git", "init", "catalog", "lint", "snapshot", "simulate", "review", "apply", "status"} {
		if _, ran := says[verb]; !ran {
			t.Errorf("the page does not run %s", verb)
		}
	}

	const moved = "Deployment shop/web: eu-1a 6 → eu-1a 2, eu-1b 2, eu-1c 2"
	if !strings.HasPrefix(says["review"], "restarts 1 workload (6 pods): Deployment shop/web;") || !strings.Contains(says["review"], "\n"+moved+"\n") ||
		!strings.Contains(says["review"], "\n0 new findings. ") {
		t.Errorf("the review says:\n%s", says["review"])
	}
	if !strings.HasPrefix(says["lint"], "no findings: ") {
		t.Errorf("lint says:\n%s", says["lint"])
	}
	now := pods(t, client)
	if len(slices.Compact(slices.Clone(now))) != 6 || zones(now)["eu-1a"] != 2 || zones(now)["eu-1b"] != 2 || zones(now)["eu-1c"] != 2 {
		t.Errorf("the pods are on %v", now)
	}

	for _, c := range back {
		m.shell(folder, c)
	}
	left := m.run("kubectl", "get", "deployments", "-A", "-o", "yaml", "--show-managed-fields") +
		m.run("kubectl", "get", "configmaps,priorityclasses,validatingadmissionpolicies,mutatingadmissionpolicies", "-A", "-o", "yaml")
	for _, trace := range []string{"topologySpreadConstraints", "kubectl-sched"} {
		if strings.Contains(left, trace) {
			t.Errorf("%s is left in the cluster:\n%s", trace, left)
		}
	}
}

// quickstart returns the commands of the page: those of its first block, and those of the
// way back.
func quickstart(t *testing.T) (forward, back []string) {
	t.Helper()
	for _, b := range readPage(t, "quickstart.md").Blocks {
		if b.Under == "back" {
			back = append(back, commandsOf(t, b)...)
		} else {
			forward = append(forward, commandsOf(t, b)...)
		}
	}
	count := 0
	for _, c := range forward {
		// Two in a line are two.
		count += len(strings.FieldsFunc(c, func(r rune) bool { return r == ';' || r == '&' || r == '|' }))
	}
	if count > mostCommands || count < 8 || len(back) == 0 {
		t.Fatalf("%d commands and %d back", count, len(back))
	}
	return forward, back
}

// verbOf is what a command of the page is about.
func verbOf(command string) string {
	words := strings.Fields(command)
	if words[0] == "kubectl" && words[1] == "sched" {
		return words[2]
	}
	if words[0] == "kubectl" {
		return words[1]
	}
	return words[0]
}

// shopInOneZone starts the cluster of the page: the pods were made while two of three
// zones were closed.
func shopInOneZone(t *testing.T, m *machine) kubernetes.Interface {
	t.Helper()
	sb := sandboxtest.ForTest(t, sandbox.Options{})
	if _, err := sb.Nodes(t.Context(), []sandbox.Pool{{Name: "general", Count: 6, Zones: []string{"eu-1a", "eu-1b", "eu-1c"}}}); err != nil {
		t.Fatal(err)
	}
	config, err := os.ReadFile(sb.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(m.home, ".kube"), 0o700); err != nil {
		t.Fatal(err)
	}
	m.write(filepath.Join(".kube", "config"), string(config))
	client, err := kubernetes.NewForConfig(sb.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	if err := sandboxtest.MakeNamespace(t.Context(), client, "shop", nil); err != nil {
		t.Fatal(err)
	}
	m.run("kubectl", "cordon", "--selector", "topology.kubernetes.io/zone!=eu-1a")
	m.run("kubectl", "-n", "shop", "create", "deployment", "web", "--image=registry.example.com/shop/web:1.4", "--replicas=6")
	m.run("kubectl", "-n", "shop", "rollout", "status", "deployment/web", "--timeout="+patience.String())
	m.run("kubectl", "uncordon", "--selector", "topology.kubernetes.io/zone!=eu-1a")
	return client
}

// pods returns the zone and node of each of the shop's pods that is not on its way out,
// sorted.
func pods(t *testing.T, client kubernetes.Interface) (all []string) {
	t.Helper()
	list, err := client.CoreV1().Pods("shop").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range list.Items {
		if p.DeletionTimestamp != nil {
			continue
		}
		node, err := client.CoreV1().Nodes().Get(t.Context(), p.Spec.NodeName, metav1.GetOptions{})
		if err != nil {
			t.Fatalf("pod %s: %v", p.Name, err)
		}
		all = append(all, node.Labels["topology.kubernetes.io/zone"]+" "+node.Name)
	}
	slices.Sort(all)
	return all
}

// zones counts pods by zone.
func zones(pods []string) map[string]int {
	count := map[string]int{}
	for _, p := range pods {
		zone, _, _ := strings.Cut(p, " ")
		count[zone]++
	}
	return count
}

// shell runs a command as a user types it, in a terminal of 80 columns, and returns what
// it says. What the plugin says must fit in there, but for what is said in the words of a
// file.
func (m *machine) shell(folder, command string) string {
	m.Helper()
	ctx, cancel := context.WithTimeout(m.Context(), max(patience, m.limit))
	defer cancel()
	c := page.Shell(ctx, folder, command, m.env)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	if err := c.Run(); err != nil {
		m.Fatalf("%s: %v\n%s", command, err, out.String())
	}
	m.Logf("$ %s%s", command, out.String())
	for line := range strings.Lines(out.String()) {
		if utf8.RuneCountInString(line) > 81 && strings.HasPrefix(command, "kubectl sched") {
			m.Errorf("%s: a line is wider than 80 columns: %s", command, line)
		}
	}
	return out.String()
}

// files returns the texts of the files of a folder that somebody writes or edits: no
// copies, nothing of git, and no snapshot.
func files(t *testing.T, folder string) map[string]string {
	t.Helper()
	texts := map[string]string{}
	err := filepath.WalkDir(filepath.Join(folder, "placement"), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if filepath.Base(filepath.Dir(path)) == "cue.mod" {
				return fs.SkipDir
			}
			return nil
		}
		data, err := os.ReadFile(path)
		texts[path] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

// addedLines counts the lines of a text that another has not, or not as often.
func addedLines(before, after string) (count int) {
	had := map[string]int{}
	for line := range strings.Lines(before) {
		had[line]++
	}
	for line := range strings.Lines(after) {
		if had[line]--; had[line] < 0 && strings.TrimSpace(line) != "" {
			count++
		}
	}
	return count
}
