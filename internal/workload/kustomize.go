package workload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/kubectl-sched/kubectl-sched/internal/workload/yamldoc"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// kustomizationNames are the names under which kustomize looks for its file.
var kustomizationNames = []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}

func isKustomization(name string) bool {
	return slices.Contains(kustomizationNames, filepath.Base(name))
}

// maxBuilt is how many objects and folders a kustomization may come to. Folders that
// include others twice double what is built with each layer, and kustomize takes as long
// as the square of that.
const maxBuilt = 5000

// kustomize builds a kustomization and adds what it renders as one file.
func (g *gatherer) kustomize(ctx context.Context, folder string) {
	c := &kustomizationCheck{ctx: ctx, g: g, done: map[string]int{}}
	before := len(g.findings)
	n := c.folder(folder, diag.Range{Start: diag.Pos{File: folder}})
	if len(g.findings) > before {
		return
	}
	if n > maxBuilt {
		g.fail(folder, "input/limit", "the kustomization comes to more than %d objects and folders, each counted as often as it is included; name its parts one by one, or give what it builds with -f", maxBuilt)
		return
	}
	disk := limitedDisk{filesys.MakeFsOnDisk(), g.max}
	data, err := orEnded(ctx, func() ([]byte, error) {
		rendered, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(disk, folder)
		if err != nil {
			return nil, err
		}
		return rendered.AsYaml()
	})
	switch {
	case ctx.Err() != nil:
		return // Read says so
	case err != nil:
		at := placeOf(folder, err.Error())
		g.fail(at.File, "input/kustomize", "the kustomization cannot be built: %s", withoutGo(err.Error()))
		return
	}
	g.files = append(g.files, &File{Name: folder, Data: data, rendered: true})
}

// limitedDisk is a disk that does not hand out files beyond a size.
type limitedDisk struct {
	filesys.FileSystem
	max int64
}

// ReadFile implements filesys.FileSystem.
func (d limitedDisk) ReadFile(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err == nil && irregular(info.Mode()) != "" {
		return nil, fmt.Errorf("%s is %s, not a file", name, irregular(info.Mode()))
	}
	if err == nil && info.Size() > d.max {
		return nil, fmt.Errorf("%s has more than %s; allow more with --max-file-size", name, size(d.max))
	}
	return d.FileSystem.ReadFile(name)
}

// kustomizationCheck walks a kustomization before it is built: what kustomize
// would fetch from the network, and cycles, are reported with their place.
type kustomizationCheck struct {
	ctx context.Context //nolint:containedctx // it is that of the one walk
	g   *gatherer
	// stack are the folders that lead to the present one, with their names as
	// the user wrote them; done says of those that were checked what they come to.
	stack []string
	done  map[string]int
}

// folder checks one kustomization; from is where it is named. It returns how many
// objects and folders it comes to, or some number above maxBuilt.
func (c *kustomizationCheck) folder(folder string, from diag.Range) int {
	resolved, err := filepath.EvalSymlinks(folder)
	if err == nil {
		resolved, err = filepath.Abs(resolved)
	}
	if err != nil {
		c.fail(from, "input/not-found", fmt.Sprintf("there is no folder %q", folder))
		return 0
	}
	if i := slices.Index(c.stack, resolved); i >= 0 {
		c.fail(from, "input/kustomize-cycle", fmt.Sprintf("the kustomization includes itself: %s", strings.Join(append(names(c.stack[i:]), names([]string{resolved})...), " -> ")))
		return 0
	}
	if n, done := c.done[resolved]; done {
		return n
	}
	c.done[resolved] = 0 // until it is known
	c.stack = append(c.stack, resolved)
	defer func() { c.stack = c.stack[:len(c.stack)-1] }()
	for _, name := range kustomizationNames {
		path := filepath.Join(folder, name)
		if _, err := os.Stat(path); err == nil {
			c.done[resolved] = min(1+c.file(folder, path), maxBuilt+1)
			return c.done[resolved]
		}
	}
	c.fail(from, "input/kustomize", fmt.Sprintf("the folder %q has no kustomization.yaml", folder))
	return 0
}

// names shortens folders to their last two elements.
func names(folders []string) []string {
	out := make([]string, len(folders))
	for i, f := range folders {
		out[i] = filepath.Join(filepath.Base(filepath.Dir(f)), filepath.Base(f))
	}
	return out
}

func (c *kustomizationCheck) fail(at diag.Range, rule, message string) {
	c.g.findings = append(c.g.findings, diag.Finding{Rule: rule, Severity: diag.Error, Range: at, Message: message})
}

// file checks what one kustomization.yaml names, and returns how many objects and
// folders that is.
func (c *kustomizationCheck) file(folder, path string) (built int) {
	inner := &gatherer{max: c.g.max}
	inner.file(c.ctx, path, false)
	c.g.findings = append(c.g.findings, inner.findings...)
	if len(inner.files) == 0 {
		return 0
	}
	f := inner.files[0]
	if p := yamldoc.CheckText(f.Data); p != nil {
		c.g.findings = append(c.g.findings, f.finding(p, "input/not-text"))
		return 0
	}
	doc := yamldoc.Split(f.Data)[0]
	root, err := doc.Tree()
	if err != nil {
		problem := &yamldoc.Problem{Message: err.Error()}
		errors.As(err, &problem)
		c.g.findings = append(c.g.findings, f.finding(problem, "input/invalid-yaml"))
		return 0
	}
	if root == nil {
		return 0
	}
	t := text{f, doc}
	c.fields(t, root)
	c.remote(t, root)
	for _, key := range slices.Concat([]string{"resources", "bases", "components"}, pluginLists) {
		list := root.Get(key)
		if list == nil {
			continue
		}
		for _, item := range list.Resolve().Values {
			name, _ := item.Resolve().Value.(string)
			target := filepath.Join(folder, name)
			at := t.at(item.Start, item.End)
			if name == "" || isRemote(name) {
				continue
			}
			plugins := slices.Contains(pluginLists, key)
			if plugins && strings.Contains(name, "\n") {
				c.plugins([]byte(name), at)
				continue
			}
			if filepath.IsAbs(name) {
				target = name
			}
			info, err := os.Stat(target)
			switch {
			case err != nil:
				c.fail(at, "input/not-found", fmt.Sprintf("there is no file or folder %q", name))
			case info.IsDir():
				built += c.folder(target, at)
			case irregular(info.Mode()) != "":
				c.fail(at, "input/unreadable", fmt.Sprintf("%q is %s, not a file", name, irregular(info.Mode())))
			default:
				data := c.content(target)
				if plugins {
					c.plugins(data, at)
				}
				built += 1 + bytes.Count(data, []byte("\n---"))
			}
		}
	}
	return built
}

// content is the text of a file that is named; nothing where kustomize will say that it
// cannot be read.
func (c *kustomizationCheck) content(file string) []byte {
	info, err := os.Stat(file)
	if err != nil || info.Size() > c.g.max {
		return nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	return data
}
