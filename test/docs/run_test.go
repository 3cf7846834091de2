package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/kubectl-sched/kubectl-sched/internal/sandbox"
	"github.com/kubectl-sched/kubectl-sched/internal/sandbox/sandboxtest"
	"github.com/kubectl-sched/kubectl-sched/test/page"
)

// house is what the pages speak of: policies, manifests, a snapshot, nodes.
const house = "testdata/house"

// The commands of each page are run in the order of the page, in a folder of its own
// with a copy of the house. Every one must end with 0, or as the page's remark says.
func TestExamples(t *testing.T) {
	t.Parallel()
	run := 0
	for _, p := range pages(t) {
		if _, ok := elsewhere[p.path]; ok || strings.HasPrefix(string(p.Source), generated) {
			continue
		}
		var acts []act
		for _, b := range p.Blocks {
			a, err := p.act(b)
			if err != nil {
				t.Errorf("%s:%d: %v", p.path, b.Line, err)
			}
			acts = append(acts, a...)
		}
		commands := 0
		for _, a := range acts {
			if a.shown {
				commands++
			}
		}
		if commands == 0 {
			continue
		}
		run += commands
		t.Run(p.path, func(t *testing.T) {
			t.Parallel()
			follow(t, acts)
		})
	}
	if run < 30 {
		t.Errorf("%d commands only", run)
	}
}

// act is what is done for a block.
type act struct {
	where string
	// cluster says that there must be one.
	cluster bool
	// file is the name of a file that the text is, empty if it is a script.
	file, text string
	// code is the exit code that a script must have.
	code int
	// shown says that the script is a command of the page.
	shown bool
}

// act returns what is to be done for a block.
func (p at) act(b page.Block) (acts []act, err error) {
	where := fmt.Sprintf("%s:%d", p.path, b.Line)
	remarks, err := said(b)
	if err != nil {
		return nil, err
	}
	if _, ok := get(remarks, "cluster"); ok {
		acts = append(acts, act{where: where, cluster: true})
	}
	for _, r := range remarks {
		if r.word == "before:" {
			acts = append(acts, act{where: where + " (before)", text: r.rest})
		}
	}
	if name, ok := get(remarks, "file"); ok {
		text := b.Text
		if b.Language == "cue" && !strings.Contains(text, "package ") {
			text = "package shop\n" + text
		}
		return append(acts, act{where: where, file: name, text: text}), nil
	}
	_, not := get(remarks, "not run:")
	_, other := get(remarks, "run by")
	if not || other {
		return acts, nil
	}
	var list []string
	switch {
	case isShell(b):
		list = commands(b)
	case b.Language == "yaml":
		list = jobScripts(b.Text)
	}
	codes := map[string]int{}
	for _, r := range remarks {
		if r.word == "exits" {
			code, command, _ := strings.Cut(r.rest, " ")
			if codes[command], err = strconv.Atoi(code); err != nil {
				return nil, err
			}
			if !slices.ContainsFunc(list, func(c string) bool { return strings.HasPrefix(c, command) }) {
				return nil, fmt.Errorf("no command begins with %q", command)
			}
		}
	}
	for _, command := range list {
		a := act{where: where, text: command, shown: true}
		for prefix, code := range codes {
			if strings.HasPrefix(command, prefix) {
				a.code = code
			}
		}
		acts = append(acts, a)
	}
	return acts, nil
}

// commands are the commands of a block: what stands behind "$ ", or else every line.
func commands(b page.Block) (list []string) {
	if !strings.HasPrefix(b.Text, "$ ") {
		b.Text = "$ " + strings.ReplaceAll(strings.TrimRight(b.Text, "\n"), "\n", "\n$ ") + "\n"
		b.Text = strings.ReplaceAll(b.Text, "\\\n$ ", "\\\n")
	}
	for _, c := range b.Commands() {
		if text := strings.TrimSpace(c.Text); text != "" {
			list = append(list, text)
		}
	}
	return list
}

// follow does what a page says.
func follow(t *testing.T, acts []act) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(house)); err != nil {
		t.Fatal(err)
	}
	kubeconfig := noCluster
	if slices.ContainsFunc(acts, func(a act) bool { return a.cluster }) {
		kubeconfig = startCluster(t)
	}
	for _, a := range acts {
		switch {
		case a.file != "":
			if err := (page.Block{Title: a.file, Text: a.text}).Put(dir); err != nil {
				t.Fatal(err)
			}
		case a.text != "":
			if out, code := shell(t, dir, kubeconfig, "set -euo pipefail\n"+a.text); code != a.code {
				t.Fatalf("%s: exit code %d, not %d:\n%s\n%s", a.where, code, a.code, a.text, out)
			}
		}
	}
}

// startCluster starts a control plane with the nodes of the house and the namespaces
// that pages speak of, and returns the kubeconfig.
func startCluster(t *testing.T) string {
	t.Helper()
	sb := sandboxtest.ForTest(t, sandbox.Options{})
	file := filepath.Join(house, "nodes.yaml")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pools, err := sandbox.ParsePools(file, data)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sb.Nodes(t.Context(), pools); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"shop", "ml"} {
		if err := sandboxtest.MakeNamespace(t.Context(), sb.Client(), name, nil); err != nil {
			t.Fatal(err)
		}
	}
	return sb.Kubeconfig()
}
