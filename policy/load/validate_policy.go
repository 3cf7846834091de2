package load

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-sched/kubectl-sched/policy"
)

// builtinTopology are the topology names that every cluster has.
var builtinTopology = map[string]bool{"zone": true, "region": true, "node": true}

// topologyLabels are the node labels of the built-in topology names.
var topologyLabels = map[string]string{
	"zone":   "topology.kubernetes.io/zone",
	"region": "topology.kubernetes.io/region",
	"node":   "kubernetes.io/hostname",
}

// dateLayout is how a day is written.
const dateLayout = "2006-01-02"

func (v *validator) policy(p *policy.Policy) {
	s := subject{v, p.Name, "", p.Positions}
	s.workloads([]string{"workloads"}, &p.Workloads)
	for _, name := range slices.Sorted(maps.Keys(p.Except)) {
		e, path := p.Except[name], []string{"except", name}
		s.workloads(join(path, "workloads"), &e.Workloads)
		if strings.TrimSpace(e.Reason) == "" {
			s.bad("policy/no-reason", join(path, "reason"), "the exception gives no reason")
		}
		if _, err := time.Parse(dateLayout, e.Expires); err != nil {
			s.bad("policy/bad-date", join(path, "expires"), "%q is no day of the calendar; write one such as \"2027-01-31\"", e.Expires)
		}
	}
	if p.Nodes == nil && len(p.Spread) == 0 && len(p.Together) == 0 && len(p.Apart) == 0 && p.Tolerate == nil && p.Priority == nil && p.Pack == nil && p.Balance == nil && p.Raw == nil {
		s.bad("policy/no-intent", nil, "the policy says nothing about where the pods run; give it nodes, spread, together, apart, tolerate, priority, pack, balance or raw")
	}
	s.nodes(p.Nodes)
	s.spread(p)
	s.colocations("together", p, p.Together)
	s.colocations("apart", p, p.Apart)
	s.tolerate(p.Tolerate)
	s.priority(p.Priority)
	s.scores(p)
	s.raw(p.Raw)
}

// workloads checks a selection.
func (s subject) workloads(at []string, w *policy.Workloads) {
	if emptyWorkloads(w) {
		s.bad("policy/empty-selector", at, "nothing is selected; give at least one field, and for every workload namespaces: [\"*\"]")
	}
	s.workloadFields(at, w)
	if w.Not == nil {
		return
	}
	not := join(at, "not")
	if emptyWorkloads(w.Not) {
		s.bad("policy/empty-selector", not, "\"not\" without a field spares nothing; give it one, or leave it out")
	}
	if at := join(not, "templates"); len(w.Not.Templates) > 0 {
		s.bad("policy/templates", at, "templates picks among an object's pod templates, and \"not\" is about whole objects; list the templates that are meant, outside of \"not\"")
	}
	if w.Not.Not != nil {
		s.bad("policy/double-not", join(not, "not"), "\"not\" inside \"not\" is hard to read; put its fields beside the outer one")
	}
	s.workloadFields(not, w.Not)
}

func (s subject) workloadFields(at []string, w *policy.Workloads) {
	s.namespaces(join(at, "namespaces"), w.Namespaces)
	s.selectorLabels(join(at, "namespaceLabels"), w.NamespaceLabels)
	s.kinds(join(at, "kinds"), w.Kinds)
	s.objectNames(join(at, "names"), w.Names)
	s.selectorLabels(join(at, "labels"), w.Labels)
	if w.Pods != nil {
		if len(w.Pods.Labels) == 0 {
			s.bad("policy/empty-selector", join(at, "pods", "labels"), "no label is given; give one, or leave pods out")
		}
		s.selectorLabels(join(at, "pods", "labels"), w.Pods.Labels)
	}
	for i, name := range w.Templates {
		s.glob(join(at, "templates", nth(i)), name)
	}
}

func emptyWorkloads(w *policy.Workloads) bool {
	return len(w.Namespaces)+len(w.NamespaceLabels)+len(w.Kinds)+len(w.Names)+len(w.Labels)+len(w.Templates) == 0 &&
		w.Pods == nil && w.Not == nil
}

// nodes checks the nodes intent.
func (s subject) nodes(n *policy.Nodes) {
	if n == nil {
		return
	}
	at := []string{"nodes"}
	if n.Require == nil && n.Forbid == nil && n.Prefer == nil && n.Disfavor == nil {
		s.bad("policy/no-intent", at, "nodes says nothing; give it require, forbid, prefer or disfavor")
	}
	term := func(path []string, t policy.NodeTerm) {
		if emptyTerm(t) {
			s.bad("policy/empty-nodes", path, "no nodes are described; give at least one of pools, labels, zones, regions, arch, os and names")
		}
		s.nodeTerm(path, t)
	}
	if n.Require != nil {
		term(join(at, "require"), *n.Require)
	}
	if n.Forbid != nil {
		term(join(at, "forbid"), *n.Forbid)
	}
	preference := func(path []string, p *policy.Preference) {
		switch {
		case p == nil:
		case len(p.Ranked) == 0:
			term(path, p.NodeTerm)
		default:
			if !emptyTerm(p.NodeTerm) {
				s.bad("policy/ranked", path, "ranked and other descriptions of nodes cannot stand together; put them into the ranking")
			}
			for i, t := range p.Ranked {
				term(join(path, "ranked", nth(i)), t)
			}
		}
	}
	preference(join(at, "prefer"), n.Prefer)
	preference(join(at, "disfavor"), n.Disfavor)
}

// spread checks the spread intents.
func (s subject) spread(p *policy.Policy) {
	names := map[string]string{} // node label → the entry's name
	for _, name := range slices.Sorted(maps.Keys(p.Spread)) {
		entry, at := p.Spread[name], []string{"spread", name}
		s.subjectOf(join(at, "of"), entry.Of)
		s.mustWin(at, entry.MustWin, entry.Strength)
		if entry.MinDomains != nil && entry.Strength != policy.Require {
			s.bad("policy/min-domains-without-require", join(at, "minDomains"), "minDomains counts for strength \"require\" alone; require the spread, or leave minDomains out")
		}
		for _, label := range s.topology(at, p, name) {
			if first, ok := names[label]; ok && first != name {
				f := s.bad("policy/same-topology", at, "%q and %q are the same node label, %q; keep one", first, name, label)
				relate(f, s.positions.At("spread", first), fmt.Sprintf("%q", first))
				break
			}
			names[label] = name
		}
	}
}

// colocations checks the together or apart intents.
func (s subject) colocations(intent string, p *policy.Policy, colocations map[string]policy.Colocation) {
	for _, name := range slices.Sorted(maps.Keys(colocations)) {
		c, at := colocations[name], []string{intent, name}
		s.topology(join(at, "on"), p, c.On)
		s.subjectOf(join(at, "of"), c.Of)
		s.mustWin(at, c.MustWin, c.Strength)
		if _, given := s.positions[policy.Pointer(intent, name, "weight")]; given && c.Strength == policy.Require {
			s.bad("policy/weight-without-prefer", join(at, "weight"), "weight counts for strength \"prefer\" alone; prefer it, or leave weight out")
		}
	}
}

// topology checks a topology's name, and returns the node labels that it stands
// for in the clusters where the policy holds.
func (s subject) topology(at []string, p *policy.Policy, name string) (labels []string) {
	if label, ok := topologyLabels[name]; ok {
		return []string{label}
	}
	var lacking *policy.Cluster
	known := slices.Collect(maps.Keys(builtinTopology))
	for i := range s.v.Clusters {
		c := &s.v.Clusters[i]
		if !matchesCluster(p.When, c) {
			continue
		}
		known = append(known, slices.Collect(maps.Keys(c.Topology))...)
		switch label, ok := c.Topology[name]; {
		case !ok && lacking == nil:
			lacking = c
		case ok && !slices.Contains(labels, label):
			labels = append(labels, label)
		}
	}
	switch {
	case len(labels) > 0 && lacking == nil:
	case len(labels) > 0:
		f := s.bad("policy/unknown-topology", at, "cluster %q has no topology %q, and the policy holds there; add it to the cluster, or restrict the policy with when", lacking.Name, name)
		relate(f, lacking.Positions.At("topology"), fmt.Sprintf("cluster %q", lacking.Name))
	case strings.ContainsAny(name, "/."):
		s.labelKey(at, name)
		labels = append(labels, name)
	case len(s.v.broken[clustersSection]) > 0: // it may be defined there
	default:
		slices.Sort(known)
		s.bad("policy/unknown-topology", at, "there is no topology %q%s, or a node label with a domain such as \"example.com/rack\"", name, strings.TrimSuffix(suggest(name, slices.Compact(known)), "?"))
	}
	return labels
}

// subjectOf checks whom a spread, together or apart counts.
func (s subject) subjectOf(at []string, of policy.Subject) {
	if of.Kind != policy.ByLabels {
		return
	}
	if len(of.Labels) == 0 {
		s.bad("policy/empty-selector", join(at, "labels"), "no label is given, so no pod is counted; give one")
	}
	s.selectorLabels(join(at, "labels"), of.Labels)
	s.namespaces(join(at, "namespaces"), of.Namespaces)
}

// tolerate checks the tolerate intent.
func (s subject) tolerate(t *policy.Tolerate) {
	if t == nil {
		return
	}
	at := []string{"tolerate"}
	if len(t.Pools)+len(t.Taints)+len(t.ExceptPools) == 0 && !t.All {
		s.bad("policy/no-intent", at, "nothing is tolerated; give pools, taints or all")
	}
	if t.All && len(t.Pools)+len(t.Taints) > 0 {
		s.bad("policy/tolerate-all", join(at, "all"), "all tolerates every taint, so pools and taints beside it say nothing; leave them out, or all")
	}
	if len(t.ExceptPools) > 0 && !t.All {
		s.bad("policy/tolerate-all", join(at, "exceptPools"), "exceptPools takes pools out of all; add all: true")
	}
	for i, name := range t.Pools {
		here := join(at, "pools", nth(i))
		if p := s.poolName(here, name); p != nil && !s.v.tainted(p, nil) {
			f := s.bad("policy/not-dedicated", here, "pool %q is not dedicated, so there is no taint to tolerate; add dedicated: {} to the pool, or leave it out here", name)
			relate(f, p.Positions.At(), fmt.Sprintf("pool %q", name))
		}
	}
	for i, name := range t.ExceptPools {
		s.poolName(join(at, "exceptPools", nth(i)), name)
	}
	for _, name := range slices.Sorted(maps.Keys(t.Taints)) {
		taint, here := t.Taints[name], join(at, "taints", name)
		s.labelKey(join(here, "key"), taint.Key)
		if taint.Value != nil {
			s.labelValue(join(here, "value"), *taint.Value)
		}
		if taint.Seconds != nil && taint.Effect != "NoExecute" {
			s.bad("policy/seconds-without-noexecute", join(here, "seconds"), "seconds count for taints that evict, so they need effect: \"NoExecute\"")
		}
	}
}

// tainted reports whether a pool, or one that it is part of, has a taint.
func (v *validator) tainted(p *policy.Pool, seen []string) bool {
	if p.Dedicated != nil {
		return true
	}
	return slices.ContainsFunc(p.Nodes.Pools, func(name string) bool {
		in := v.Pool(name)
		return in != nil && !slices.Contains(seen, name) && v.tainted(in, append(seen, name))
	})
}

// systemPrefix begins the names of the priority classes that Kubernetes keeps.
const systemPrefix = "system-"

// priority checks the priority intent.
func (s subject) priority(p *policy.Priority) {
	if p == nil {
		return
	}
	if strings.HasPrefix(p.Class, systemPrefix) && p.Value != nil {
		s.bad("policy/system-class", []string{"priority", "class"}, "class %q cannot be made, since names that begin with \"system-\" belong to Kubernetes; choose another name, or leave value out to use the class as it is", p.Class)
	}
	if p.Value == nil && p.Description != "" {
		s.bad("policy/priority", []string{"priority", "description"}, "a description is for a class that we make, and that takes a value; add value, or leave the description out")
	}
}
