package workload

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/internal/workload/yamldoc"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// kustomize loads whatever is a URL from the network, wherever it takes the name of a
// file: in the kustomization, and in the configurations of its built-in plugins.

// pluginLists are the fields of a kustomization that name configurations of plugins, or
// kustomizations of them, or have them inline.
var pluginLists = []string{"generators", "transformers", "validators"}

// loadedFields are those, at any depth, that kustomize loads files by.
var loadedFields = []string{"files", "envs", "env", "path", "paths", "targetFilePath", "crds", "configurations", "resources", "valuesFile", "additionalValuesFiles", "argsFromFile"}

// remote reports every place of a kustomization that kustomize would load from
// the network.
func (c *kustomizationCheck) remote(t text, root *yamldoc.Node) {
	for _, key := range slices.Concat(pluginLists, []string{"resources", "bases", "components", "crds", "configurations", "patchesStrategicMerge"}) {
		if list := root.Get(key); list != nil {
			for _, item := range list.Resolve().Values {
				c.refuse(item, t.at(item.Start, item.End))
			}
		}
	}
	for _, key := range []string{"configMapGenerator", "secretGenerator", "patches", "patchesJson6902", "replacements", "openapi"} {
		if value := root.Get(key); value != nil {
			c.loaded(value, func(n *yamldoc.Node) diag.Range { return t.at(n.Start, n.End) })
		}
	}
}

// plugins reports what the configuration of a built-in plugin would load from the
// network; at is where it is named.
func (c *kustomizationCheck) plugins(data []byte, at diag.Range) {
	if yamldoc.CheckText(data) != nil {
		return // kustomize says so
	}
	for _, doc := range yamldoc.Split(data) {
		if root, err := doc.Tree(); err == nil && root != nil {
			c.loaded(root, func(*yamldoc.Node) diag.Range { return at })
		}
	}
}

// loaded looks at the fields below that name files.
func (c *kustomizationCheck) loaded(n *yamldoc.Node, at func(*yamldoc.Node) diag.Range) {
	n = n.Resolve()
	for i, value := range n.Values {
		named := n.Kind == yamldoc.Mapping && slices.Contains(loadedFields, fmt.Sprint(n.Keys[i].Value))
		if named {
			c.refuse(value, at(value))
			for _, item := range value.Resolve().Values {
				c.refuse(item, at(item))
			}
		}
		c.loaded(value, at)
	}
}

// refuse reports a name that kustomize would load from the network.
func (c *kustomizationCheck) refuse(n *yamldoc.Node, at diag.Range) {
	n = n.Resolve()
	if s, ok := n.Value.(string); ok && n.Kind == yamldoc.Scalar && isRemote(s) {
		c.fail(at, "input/remote", fmt.Sprintf("nothing is loaded from the network; download %q and name the copy", s))
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
