package compiler

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// topology returns the node label that an intent's topology name stands for, or
// reports that the cluster has no such topology.
func (d *draft) topology(r *rule, name string, path ...string) (string, bool) {
	f := d.c.facts
	key := f.topologyKey(name)
	if key != name || strings.Contains(name, "/") {
		return key, true
	}
	for _, n := range f.Nodes {
		if _, ok := n.Labels[name]; ok {
			return name, true
		}
	}
	names := sortedKeys(builtinTopology)
	if f.cluster != nil {
		names = append(names, sortedKeys(f.cluster.Topology)...)
		slices.Sort(names)
	}
	elsewhere := ""
	for _, c := range d.c.Placement.Clusters {
		if _, ok := c.Topology[name]; ok {
			elsewhere = c.Name
		}
	}
	message := fmt.Sprintf("there is no topology %q; ", name)
	near, isNear := diag.Nearest(name, names)
	switch {
	case elsewhere != "" && f.cluster != nil:
		message += fmt.Sprintf("give cluster %q one, as cluster %q has, or restrict the policy with when", f.cluster.Name, elsewhere)
	case elsewhere != "":
		message += fmt.Sprintf("cluster %q has one: name it with --cluster", elsewhere)
	case isNear:
		message += fmt.Sprintf("did you mean %q?", near)
	case f.NodesKnown:
		message += fmt.Sprintf("no node has such a label, and the names are %s", quoted(names))
	default:
		// A node label without a prefix: nothing is known against it.
		return name, true
	}
	d.c.reportOnce("topology"+r.Name+name, finding{rule: "policy/unknown-topology", policy: r.Name, at: r.author.at(path...), message: message})
	return "", false
}

// checkTopology looks for nodes that could take the pods and lack the label
// that a constraint of ours tells domains by.
func (d *draft) checkTopology() {
	if !d.c.facts.NodesKnown || d.failed {
		return
	}
	for _, s := range d.spreads {
		d.checkTopologyKey(s.key, s.require, s.origins[0], "spread")
	}
	for _, a := range d.affinities {
		d.checkTopologyKey(a.term.TopologyKey, a.required && !a.apart, a.origin, a.intent())
	}
}

func (d *draft) checkTopologyKey(key string, require bool, o Origin, intent string) {
	set := d.eligibleNodes()
	lacking := set.without(key)
	if len(lacking) == 0 {
		return
	}
	f := finding{rule: "compile/topology-missing", severity: warning, policy: o.Policy, at: o.Range}
	switch {
	case require && len(lacking) == len(set.nodes):
		f.severity = diag.Error
		f.message = fmt.Sprintf("none of the nodes that could take the pods has the label %q, so all pods would stay Pending; label the nodes, or name the key that they have", key)
	case require:
		f.message = fmt.Sprintf("the label %q is missing on %s, which therefore never gets a pod; add it, or require nodes that have it", key, nodesNamed(lacking))
	case intent == "spread":
		f.message = fmt.Sprintf("the label %q is missing on %s: pods there are not counted, and the spread's score leaves it out; add the label", key, nodesNamed(lacking))
	default:
		f.message = fmt.Sprintf("the label %q is missing on %s, which therefore belongs to no domain, and %s has no effect there; add the label", key, nodesNamed(lacking), intent)
	}
	if f.severity == diag.Error {
		d.report(f)
		return
	}
	// The nodes are the same for all that a policy selects.
	d.c.reportOnce(fmt.Sprint(o, f.message), f)
}
