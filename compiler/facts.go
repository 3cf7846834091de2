package compiler

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
	"github.com/kubectl-sched/kubectl-sched/compiler/nodeexpr"
	"github.com/kubectl-sched/kubectl-sched/policy"
)

// facts are what is known of the cluster, with the document's own view of it.
type facts struct {
	capability.Capabilities
	// cluster is the cluster in the document; nil if none is named.
	cluster *policy.Cluster
}

// builtinTopology are the topology names that every cluster has.
var builtinTopology = map[string]string{
	"zone":   corev1.LabelTopologyZone,
	"region": corev1.LabelTopologyRegion,
	"node":   corev1.LabelHostname,
}

// supports reports whether the cluster has what came with the minor version; a
// cluster of unknown version is taken for one of the version built against.
func (f facts) supports(minor int) bool { return f.Minor == 0 || f.Minor >= minor }

// domainsOf returns the values that the topology key is known to have: on the
// given nodes, or else what the document lists for the cluster. The result is
// nil if nothing is known.
func (f facts) domainsOf(key string, eligible []*capability.Node) []string {
	if f.NodesKnown {
		values := map[string]bool{}
		for _, n := range eligible {
			if v, ok := n.Labels[key]; ok {
				values[v] = true
			}
		}
		return append([]string{}, sortedKeys(values)...)
	}
	if f.cluster == nil {
		return nil
	}
	for _, name := range sortedKeys(f.cluster.Domains) {
		if f.topologyKey(name) == key {
			return slices.Sorted(slices.Values(f.cluster.Domains[name]))
		}
	}
	return nil
}

// topologyKey returns the node label that a topology name stands for: itself,
// if it is not a name.
func (f facts) topologyKey(name string) string {
	if f.cluster != nil {
		if key, ok := f.cluster.Topology[name]; ok {
			return key
		}
	}
	if key, ok := builtinTopology[name]; ok {
		return key
	}
	return name
}

// transient reports whether a taint says how a node fares at the moment, and
// not what it is for: the node controllers set and remove those.
func transient(key string) bool {
	return strings.HasPrefix(key, "node.kubernetes.io/") || strings.HasPrefix(key, "node.cloudprovider.kubernetes.io/")
}

// repels reports whether the taint keeps pods off that do not tolerate it.
func repels(t corev1.Taint) bool {
	return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
}

// eligible returns the nodes that meet the expression and whose lasting taints
// the tolerations bear.
func (f facts) eligible(e nodeexpr.Expr, tolerations []corev1.Toleration) []*capability.Node {
	var out []*capability.Node
	for i := range f.Nodes {
		n := &f.Nodes[i]
		if e.Matches(n.Labels, n.Name) && len(untolerated(n.Taints, tolerations)) == 0 {
			out = append(out, n)
		}
	}
	return out
}

// untolerated returns the lasting taints that keep a pod with the tolerations off.
func untolerated(taints []corev1.Taint, tolerations []corev1.Toleration) []corev1.Taint {
	var out []corev1.Taint
	for _, t := range taints {
		if repels(t) && !transient(t.Key) && !tolerates(tolerations, t) {
			out = append(out, t)
		}
	}
	return out
}
