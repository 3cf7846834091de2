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
	nodes := d.eligibleNodes()
	var lacking []string
	for _, n := range nodes {
		if _, ok := n.Labels[key]; !ok {
			lacking = append(lacking, n.Name)
		}
	}
	if len(lacking) == 0 {
		return
	}
	slices.Sort(lacking)
	f := finding{rule: "compile/topology-missing", severity: warning, policy: o.Policy, at: o.Range}
	switch {
	case require && len(lacking) == len(nodes):
		f.severity = diag.Error
		f.message = fmt.Sprintf("none of the nodes that could take the pods has the label %q, so all pods would stay Pending; label the nodes, or name the key that they have", key)
	case require:
		f.message = fmt.Sprintf("nodes %s lack the label %q and so never get a pod; label them, or require nodes that have it", quoted(lacking), key)
	case intent == "spread":
		f.message = fmt.Sprintf("nodes %s lack the label %q: pods there are not counted, and the spread's score ignores these nodes; label them", quoted(lacking), key)
	default:
		f.message = fmt.Sprintf("nodes %s lack the label %q and so belong to no domain, where %s has no effect; label them", quoted(lacking), key, intent)
	}
	d.report(f)
}
