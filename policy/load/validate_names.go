package load

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubectl-sched/kubectl-sched/policy"
)

// isGlob reports whether a name is a pattern, as path.Match has it.
func isGlob(s string) bool { return strings.ContainsAny(s, `*?[\`) }

// isComparison reports whether a value compares numbers: ">8", "<8".
func isComparison(s string) bool { return strings.HasPrefix(s, ">") || strings.HasPrefix(s, "<") }

// glob checks a name that may be a pattern. It reports whether it is fine.
func (s subject) glob(at []string, pattern string) bool {
	if pattern == "" {
		s.bad("policy/bad-name", at, "a name cannot be empty")
		return false
	}
	if _, err := path.Match(pattern, ""); err != nil {
		s.bad("policy/bad-glob", at, "%q is no pattern: a \"[\" or \"\\\\\" in it is not closed", pattern)
		return false
	}
	return true
}

// namespaces checks names of namespaces, or patterns of them.
func (s subject) namespaces(at []string, names []string) {
	for i, name := range names {
		here := join(at, nth(i))
		if s.glob(here, name) && !isGlob(name) && len(validation.IsDNS1123Label(name)) > 0 {
			s.bad("policy/bad-name", here, "%q cannot be a namespace: its name %s", name, nameRule)
		}
	}
}

// objectNames checks names of objects, or patterns of them.
func (s subject) objectNames(at []string, names []string) {
	for i, name := range names {
		here := join(at, nth(i))
		if s.glob(here, name) && !isGlob(name) && len(validation.IsDNS1123Subdomain(name)) > 0 {
			s.bad("policy/bad-name", here, "%q cannot be an object's name: it must be lower-case letters, digits, \"-\" and \".\"", name)
		}
	}
}

// kindName is a kind with or without its group.
var kindName = regexp.MustCompile(`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Z][A-Za-z0-9]*$`)

// kinds checks names of kinds, or patterns of them.
func (s subject) kinds(at []string, names []string) {
	for i, name := range names {
		here := join(at, nth(i))
		if !s.glob(here, name) || isGlob(name) || kindName.MatchString(name) {
			continue
		}
		if parts := strings.Split(name, "/"); len(parts) == 3 {
			s.bad("policy/bad-kind", here, "%q names a version, and policies hold for all; write %q", name, parts[0]+"/"+parts[2])
			continue
		}
		s.bad("policy/bad-kind", here, "%q is no kind%s", name, kindHint(name))
	}
}

// commonKinds are those that a mistyped kind may have been meant to be.
var commonKinds = []string{"apps/Deployment", "apps/StatefulSet", "apps/DaemonSet", "apps/ReplicaSet", "batch/Job", "batch/CronJob", "Pod", "ReplicationController"}

func kindHint(name string) string {
	short := strings.ToLower(name[strings.LastIndexByte(name, '/')+1:])
	for _, k := range commonKinds {
		kind := strings.ToLower(k[strings.LastIndexByte(k, '/')+1:])
		if short == kind || short == kind+"s" {
			return fmt.Sprintf("; did you mean %q?", k)
		}
	}
	return "; write \"Kind\" or \"group/Kind\", such as \"apps/Deployment\""
}

// labelKey checks the key of a label or taint.
func (s subject) labelKey(at []string, key string) {
	if problems := validation.IsQualifiedName(key); len(problems) > 0 {
		s.bad("policy/bad-label", at, "%q cannot be the key of a label or taint; write a name, or \"domain/name\", of letters, digits, \"-\", \"_\" and \".\", the name at most 63 long", key)
	}
}

// labelValue checks the value of a label or taint.
func (s subject) labelValue(at []string, value string) {
	if problems := validation.IsValidLabelValue(value); len(problems) > 0 {
		s.bad("policy/bad-label", at, "%q cannot be the value of a label; it may have letters, digits, \"-\", \"_\" and \".\", begin and end with a letter or digit, and be at most 63 long", value)
	}
}

// selectorLabels checks labels that select objects.
func (s subject) selectorLabels(at []string, labels map[string]policy.Values) {
	s.eachValue(at, labels, func(here []string, value string) {
		switch {
		case isComparison(value):
			s.bad("policy/comparison", here, "%q compares numbers, which can be done on nodes alone; list the values", value)
		case isGlob(value):
			s.glob(here, value)
		default:
			s.labelValue(here, value)
		}
	})
}

// nodeLabels checks labels that describe nodes.
func (s subject) nodeLabels(at []string, labels map[string]policy.Values) {
	s.eachValue(at, labels, s.nodeValue)
}

// nodeValue checks one value of a node's label.
func (s subject) nodeValue(here []string, value string) {
	switch {
	case value == "*":
	case isComparison(value):
		if _, err := strconv.ParseInt(value[1:], 10, 64); err != nil {
			s.bad("policy/comparison", here, "%q compares with no whole number; write %q or %q, and for \"at least 8\" \">7\"", value, ">8", "<8")
		}
	case isGlob(value):
		s.bad("policy/bad-glob", here, "%q is a pattern, and nodes can be told by exact values alone; list the values, or give the nodes a label of their own", value)
	default:
		s.labelValue(here, value)
	}
}

// eachValue calls check for every value, after checking the keys.
func (s subject) eachValue(at []string, labels map[string]policy.Values, check func(here []string, value string)) {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		s.labelKey(join(at, key), key)
		for i, value := range labels[key] {
			// A value that is written as one string has no element of its own,
			// and At falls back to the label.
			check(join(at, key, nth(i)), value)
		}
	}
}

// nodeTerm checks a description of nodes.
func (s subject) nodeTerm(at []string, t policy.NodeTerm) {
	for i, name := range t.Pools {
		s.poolName(join(at, "pools", nth(i)), name)
	}
	s.nodeLabels(join(at, "labels"), t.Labels)
	for field, values := range map[string][]string{"zones": t.Zones, "regions": t.Regions, "arch": t.Arch, "os": t.OS} {
		for i, value := range values {
			here := join(at, field, nth(i))
			if isComparison(value) {
				s.bad("policy/comparison", here, "%q compares numbers, and %s are names", value, field)
				continue
			}
			s.nodeValue(here, value)
		}
	}
	for i, name := range t.Names {
		here := join(at, "names", nth(i))
		if isGlob(name) {
			s.bad("policy/bad-glob", here, "%q is a pattern, and nodes can be named by their exact names alone; list the names, or give the nodes a label", name)
		} else if len(validation.IsDNS1123Subdomain(name)) > 0 {
			s.bad("policy/bad-name", here, "%q cannot be a node's name: it must be lower-case letters, digits, \"-\" and \".\"", name)
		}
	}
}

// poolName checks that a pool exists, and returns it or nil.
func (s subject) poolName(at []string, name string) *policy.Pool {
	self := labels{s.policy, s.name}
	s.v.pools[self] = append(s.v.pools[self], name)
	if p := s.v.Pool(name); p != nil {
		return p
	}
	if slices.Contains(s.v.broken[poolsSection], name) {
		return nil // has findings of its own
	}
	var known []string
	for _, p := range s.v.Pools {
		known = append(known, p.Name)
	}
	if len(known) == 0 {
		s.bad("policy/unknown-pool", at, "there is no pool %q, nor any other; define it in pools, or give the folder that does", name)
		return nil
	}
	s.bad("policy/unknown-pool", at, "there is no pool %q%s", name, suggest(name, known))
	return nil
}

// emptyTerm reports whether a description of nodes says nothing.
func emptyTerm(t policy.NodeTerm) bool {
	return len(t.Pools)+len(t.Labels)+len(t.Zones)+len(t.Regions)+len(t.Arch)+len(t.OS)+len(t.Names) == 0
}
