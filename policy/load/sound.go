package load

import (
	"fmt"
	"slices"

	"cuelang.org/go/cue"

	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// labels are how findings name the object that they speak of.
type labels struct{ policy, subject string }

// labelsOf returns the labels of the object of that name.
func labelsOf(s section, name string) labels {
	switch s {
	case policiesSection:
		return labels{policy: name}
	case testsSection:
		return labels{subject: fmt.Sprintf("test %q", name)} // a sentence, most often
	default:
		return labels{subject: s.singular() + " " + name}
	}
}

// overridesOf returns the policies that a faulty policy overrides, as far as it
// can be read, and whether that can be told.
func overridesOf(v cue.Value) (names []string, known bool) {
	list := v.LookupPath(cue.MakePath(cue.Str("overrides")))
	if !list.Exists() {
		return nil, true
	}
	known = list.Decode(&names) == nil
	return names, known
}

// sound returns what can be judged of a document in spite of its errors: the
// pools and policies that have none, need no pool that has, and are overridden
// by no policy that has. So one run finds what compiling finds, too. It is nil
// if the errors are in clusters or kinds, or speak of no object: then anything
// may be different once they are mended.
func (v *validator) sound(findings diag.Findings) *policy.Placement {
	faulty := map[labels]bool{}
	for _, f := range findings {
		if f.Severity == diag.Error {
			faulty[labels{f.Policy, f.Subject}] = true
		}
	}
	for s, names := range v.broken {
		for _, name := range names {
			faulty[labelsOf(s, name)] = true
		}
	}
	if faulty[labels{}] || v.faultyBeneath(faulty) {
		return nil
	}
	overriders := v.overriders()
	for before := -1; before < len(faulty); {
		before = len(faulty)
		for _, p := range v.Pools {
			v.spoil(faulty, labelsOf(poolsSection, p.Name), nil)
		}
		for _, p := range v.Policies {
			v.spoil(faulty, labelsOf(policiesSection, p.Name), overriders[p.Name])
		}
	}
	sound := *v.Placement
	sound.Pools = slices.DeleteFunc(slices.Clone(v.Pools), func(p policy.Pool) bool { return faulty[labelsOf(poolsSection, p.Name)] })
	sound.Policies = slices.DeleteFunc(slices.Clone(v.Policies), func(p policy.Policy) bool { return faulty[labelsOf(policiesSection, p.Name)] })
	return &sound
}

// faultyBeneath reports whether a cluster or kind is faulty, which everything else
// stands on.
func (v *validator) faultyBeneath(faulty map[labels]bool) bool {
	return len(v.broken[clustersSection])+len(v.broken[kindsSection]) > 0 ||
		slices.ContainsFunc(v.Clusters, func(c policy.Cluster) bool { return faulty[labelsOf(clustersSection, c.Name)] }) ||
		slices.ContainsFunc(v.Kinds, func(k policy.Kind) bool { return faulty[labelsOf(kindsSection, k.Name)] })
}

// overriders returns the policies that override each default; also every faulty one
// whose overrides cannot be told.
func (v *validator) overriders() map[string][]string {
	by := map[string][]string{}
	for _, p := range v.Policies {
		for _, name := range p.Overrides {
			by[name] = append(by[name], p.Name)
		}
	}
	for name, overrides := range v.overrides {
		for _, overridden := range overrides {
			by[overridden] = append(by[overridden], name)
		}
	}
	for _, p := range v.Policies {
		switch {
		case p.Level != policy.Default:
			delete(by, p.Name)
		case v.overridesUnknown:
			by[p.Name] = append(by[p.Name], v.broken[policiesSection]...)
		}
	}
	return by
}

// spoil makes an object faulty that speaks of a faulty pool, or that a faulty policy
// overrides.
func (v *validator) spoil(faulty map[labels]bool, object labels, overriders []string) {
	if slices.ContainsFunc(v.pools[object], func(pool string) bool { return faulty[labelsOf(poolsSection, pool)] }) ||
		slices.ContainsFunc(overriders, func(by string) bool { return faulty[labelsOf(policiesSection, by)] }) {
		faulty[object] = true
	}
}
