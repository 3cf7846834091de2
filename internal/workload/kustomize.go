package workload

import (
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

// kustomize builds a kustomization and adds what it renders as one file.
func (g *gatherer) kustomize(ctx context.Context, folder string) {
	c := &kustomizationCheck{ctx: ctx, g: g, done: map[string]bool{}}
	before := len(g.findings)
	c.folder(folder, diag.Range{Start: diag.Pos{File: folder}})
	if len(g.findings) > before {
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
	// the user wrote them; done are those that were checked.
	stack []string
	done  map[string]bool
}

// folder checks one kustomization; from is where it is named.
func (c *kustomizationCheck) folder(folder string, from diag.Range) {
	resolved, err := filepath.EvalSymlinks(folder)
	if err == nil {
		resolved, err = filepath.Abs(resolved)
	}
	if err != nil {
		c.fail(from, "input/not-found", fmt.Sprintf("there is no folder %q", folder))
		return
	}
	if i := slices.Index(c.stack, resolved); i >= 0 {
		c.fail(from, "input/kustomize-cycle", fmt.Sprintf("the kustomization includes itself: %s", strings.Join(append(names(c.stack[i:]), names([]string{resolved})...), " -> ")))
		return
	}
	if c.done[resolved] {
		return
	}
	c.done[resolved] = true
	c.stack = append(c.stack, resolved)
	defer func() { c.stack = c.stack[:len(c.stack)-1] }()
	for _, name := range kustomizationNames {
		path := filepath.Join(folder, name)
		if _, err := os.Stat(path); err == nil {
			c.file(folder, path)
			return
		}
	}
	c.fail(from, "input/kustomize", fmt.Sprintf("the folder %q has no kustomization.yaml", folder))
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

// file checks what one kustomization.yaml names.
func (c *kustomizationCheck) file(folder, path string) {
	inner := &gatherer{max: c.g.max}
	inner.file(c.ctx, path, false)
	c.g.findings = append(c.g.findings, inner.findings...)
	if len(inner.files) == 0 {
		return
	}
	f := inner.files[0]
	if p := yamldoc.CheckText(f.Data); p != nil {
		c.g.findings = append(c.g.findings, f.finding(p, "input/not-text"))
		return
	}
	doc := yamldoc.Split(f.Data)[0]
	root, err := doc.Tree()
	if err != nil {
		problem := &yamldoc.Problem{Message: err.Error()}
		errors.As(err, &problem)
		c.g.findings = append(c.g.findings, f.finding(problem, "input/invalid-yaml"))
		return
	}
	if root == nil {
		return
	}
	t := text{f, doc}
	c.fields(t, root)
	c.remote(t, root)
	for _, key := range []string{"resources", "bases", "components"} {
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
			if filepath.IsAbs(name) {
				target = name
			}
			info, err := os.Stat(target)
			switch {
			case err != nil:
				c.fail(at, "input/not-found", fmt.Sprintf("there is no file or folder %q", name))
			case info.IsDir():
				c.folder(target, at)
			case irregular(info.Mode()) != "":
				c.fail(at, "input/unreadable", fmt.Sprintf("%q is %s, not a file", name, irregular(info.Mode())))
			}
		}
	}
}

// remote reports every place of a kustomization that kustomize would load from
// the network.
func (c *kustomizationCheck) remote(t text, root *yamldoc.Node) {
	report := func(n *yamldoc.Node) {
		n = n.Resolve()
		if s, ok := n.Value.(string); ok && n.Kind == yamldoc.Scalar && isRemote(s) {
			c.fail(t.at(n.Start, n.End), "input/remote", fmt.Sprintf("nothing is loaded from the network; download %q and name the copy", s))
		}
	}
	for _, key := range []string{"resources", "bases", "components", "crds", "configurations", "generators", "transformers", "validators", "patchesStrategicMerge"} {
		if list := root.Get(key); list != nil {
			for _, item := range list.Resolve().Values {
				report(item)
			}
		}
	}
	for _, key := range []string{"patches", "patchesJson6902", "replacements"} {
		if list := root.Get(key); list != nil {
			for _, item := range list.Resolve().Values {
				if path := item.Resolve().Get("path"); path != nil {
					report(path)
				}
			}
		}
	}
	if api := root.Get("openapi"); api != nil {
		if path := api.Resolve().Get("path"); path != nil {
			report(path)
		}
	}
}

// isRemote reports whether kustomize would take a name for a URL or a git
// repository.
func isRemote(name string) bool {
	if strings.Contains(name, "\n") {
		return false // an inline patch
	}
	for _, mark := range []string{"://", "git@", "git::", "github.com/", "github.com:", "?ref="} {
		if strings.Contains(name, mark) {
			return true
		}
	}
	return false
}
