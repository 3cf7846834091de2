package load

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/policy"
)

// layers checks which policies override which, and where they hold.
func (v *validator) layers() {
	byName := map[string]*policy.Policy{}
	var names []string
	for i := range v.Policies {
		byName[v.Policies[i].Name] = &v.Policies[i]
		names = append(names, v.Policies[i].Name)
	}
	for i := range v.Policies {
		p := &v.Policies[i]
		s := subject{v, p.Name, "", p.Positions}
		s.when(p)
		if len(p.Overrides) > 0 && strings.TrimSpace(p.Reason) == "" {
			s.bad("policy/no-reason", []string{"overrides"}, "the policy overrides another and gives no reason; add reason")
		}
		if len(p.Overrides) == 0 && p.Reason != "" {
			s.bad("policy/no-override", []string{"reason"}, "reason is why a policy overrides others, and this one overrides none; add overrides, or write a comment")
		}
		for j, name := range p.Overrides {
			at := []string{"overrides", nth(j)}
			other := byName[name]
			switch {
			case name == p.Name:
				s.bad("policy/override-cycle", at, "the policy overrides itself")
			case other == nil && slices.Contains(v.broken[policiesSection], name):
			case other == nil:
				others := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == p.Name })
				s.bad("policy/unknown-policy", at, "there is no policy %q%s", name, suggest(name, others))
			case other.Level != policy.Default:
				f := s.bad("policy/override-mandatory", at, "policy %q is mandatory and cannot be overridden; make it level: \"default\", or ask its owner for an exception", name)
				relate(f, cmp.Or(other.Positions[policy.Pointer("level")], other.Positions.At()), fmt.Sprintf("policy %q", name))
			case slices.Index(p.Overrides, name) < j:
				s.bad("policy/no-override", at, "%q is listed twice", name)
			}
		}
	}
	v.overrideCycles(byName)
}

// overrideCycles reports policies that override each other.
func (v *validator) overrideCycles(byName map[string]*policy.Policy) {
	const visiting, done = 1, 2
	state := map[string]int{}
	var visit func(p *policy.Policy)
	visit = func(p *policy.Policy) {
		state[p.Name] = visiting
		for i, name := range p.Overrides {
			next := byName[name]
			switch {
			case next == nil || next == p:
			case state[name] == visiting:
				f := subject{v, p.Name, "", p.Positions}.bad("policy/override-cycle", []string{"overrides", nth(i)},
					"the policy overrides %q, which overrides it, directly or through others; take one of them out", name)
				relate(f, next.Positions.At("overrides"), fmt.Sprintf("the overrides of policy %q", name))
			case state[name] == 0:
				visit(next)
			}
		}
		state[p.Name] = done
	}
	for i := range v.Policies {
		if state[v.Policies[i].Name] == 0 {
			visit(&v.Policies[i])
		}
	}
}

// when checks that there is a cluster where a policy holds.
func (s subject) when(p *policy.Policy) {
	if len(p.When) == 0 || len(s.v.broken[clustersSection]) > 0 {
		return
	}
	at := []string{"when"}
	for _, key := range slices.Sorted(maps.Keys(p.When)) {
		for i, value := range p.When[key] {
			here := join(at, key, nth(i))
			if isComparison(value) {
				s.bad("policy/comparison", here, "%q compares numbers, which can be done on nodes alone; list the values", value)
				return
			}
			if !s.glob(here, value) {
				return
			}
		}
	}
	if len(s.v.Clusters) == 0 {
		s.bad("policy/unknown-cluster", at, "when picks clusters by their labels, and no cluster is defined; define clusters, or leave when out")
		return
	}
	if slices.ContainsFunc(s.v.Clusters, func(c policy.Cluster) bool { return matchesCluster(p.When, &c) }) {
		return
	}
	// Say which part of it no cluster meets, if it is one.
	for _, key := range slices.Sorted(maps.Keys(p.When)) {
		var keys, values []string
		for _, c := range s.v.Clusters {
			keys = append(keys, slices.Collect(maps.Keys(c.Labels))...)
			if value, ok := c.Labels[key]; ok {
				values = append(values, value)
			}
		}
		one := map[string]policy.Values{key: p.When[key]}
		switch {
		case len(values) == 0:
			s.bad("policy/unknown-cluster", join(at, key), "no cluster has a label %q%s", key, suggest(key, distinct(keys)))
			return
		case !slices.ContainsFunc(s.v.Clusters, func(c policy.Cluster) bool { return matchesCluster(one, &c) }):
			s.bad("policy/unknown-cluster", join(at, key), "no cluster has %s: %s%s", key, quotedList(p.When[key]), suggest(p.When[key][0], distinct(values)))
			return
		}
	}
	s.bad("policy/unknown-cluster", at, "no single cluster has all of these labels; the clusters are %s", quotedList(clusterNames(s.v.Clusters)))
}

func clusterNames(clusters []policy.Cluster) (names []string) {
	for _, c := range clusters {
		names = append(names, c.Name)
	}
	return names
}

// distinct sorts and drops repetitions.
func distinct(words []string) []string {
	slices.Sort(words)
	return slices.Compact(words)
}

// matchesCluster reports whether a policy's when picks a cluster.
func matchesCluster(when map[string]policy.Values, c *policy.Cluster) bool {
	for key, values := range when {
		label, ok := c.Labels[key]
		if !ok || !slices.ContainsFunc(values, func(v string) bool { return matches(v, label) }) {
			return false
		}
	}
	return true
}

// matches reports whether a literal or pattern matches a label's value.
func matches(pattern, value string) bool {
	ok, err := path.Match(pattern, value)
	return pattern == "*" || err == nil && ok
}

// priorityClasses checks that a class is made in one way only.
func (v *validator) priorityClasses() {
	made := map[string]*policy.Policy{}
	for i := range v.Policies {
		p := &v.Policies[i]
		if p.Priority == nil || p.Priority.Value == nil {
			continue
		}
		first, ok := made[p.Priority.Class]
		if !ok {
			made[p.Priority.Class] = p
			continue
		}
		a, b := first.Priority, p.Priority
		var field string
		switch {
		case *a.Value != *b.Value:
			field = "value"
		case a.Preemption != b.Preemption:
			field = "preemption"
		case a.Description != b.Description && a.Description != "" && b.Description != "":
			field = "description"
		default:
			continue
		}
		if !overlap(first, p, v.Clusters) {
			continue
		}
		f := subject{v, p.Name, "", p.Positions}.bad("policy/priority-class", []string{"priority", field},
			"priority class %q has another %s in policy %q; a class is made once, so let one policy make it and the other name it", b.Class, field, first.Name)
		relate(f, first.Positions.At("priority", field), fmt.Sprintf("policy %q", first.Name))
	}
}

// overlap reports whether two policies hold in a common cluster.
func overlap(a, b *policy.Policy, clusters []policy.Cluster) bool {
	return len(clusters) == 0 || slices.ContainsFunc(clusters, func(c policy.Cluster) bool {
		return matchesCluster(a.When, &c) && matchesCluster(b.When, &c)
	})
}
