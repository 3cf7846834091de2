package load

import (
	"slices"

	"cuelang.org/go/cue"

	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// labels are how findings name the object that they speak of.
type labels struct{ policy, subject string }

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
	if len(v.broken[clustersSection])+len(v.broken[kindsSection]) > 0 || faulty[labels{}] {
		return nil
	}
	named := func(s section, name string) labels {
		policyName, subject := (&object{section: s, name: name}).labels()
		return labels{policyName, subject}
	}
	for _, c := range v.Clusters {
		if faulty[named(clustersSection, c.Name)] {
			return nil
		}
	}
	for _, k := range v.Kinds {
		if faulty[named(kindsSection, k.Name)] {
			return nil
		}
	}
	for _, name := range v.broken[poolsSection] {
		faulty[named(poolsSection, name)] = true
	}
	for _, name := range v.broken[policiesSection] {
		faulty[named(policiesSection, name)] = true
	}
	// Overrides can be told of policies alone, but of those whose own cannot.
	overriders := map[string][]string{}
	for _, p := range v.Policies {
		for _, name := range p.Overrides {
			overriders[name] = append(overriders[name], p.Name)
		}
	}
	for by, names := range v.overrides {
		for _, name := range names {
			overriders[name] = append(overriders[name], by)
		}
	}
	spoilt := func(self labels, overridable bool, name string) bool {
		if faulty[self] || slices.ContainsFunc(v.pools[self], func(pool string) bool { return faulty[named(poolsSection, pool)] }) {
			return true
		}
		return overridable && (v.overridesUnknown || slices.ContainsFunc(overriders[name], func(by string) bool { return faulty[named(policiesSection, by)] }))
	}
	for changed := true; changed; {
		changed = false
		spread := func(self labels, overridable bool, name string) {
			if !faulty[self] && spoilt(self, overridable, name) {
				faulty[self], changed = true, true
			}
		}
		for _, p := range v.Pools {
			spread(named(poolsSection, p.Name), false, p.Name)
		}
		for _, p := range v.Policies {
			spread(named(policiesSection, p.Name), p.Level == policy.Default, p.Name)
		}
	}
	sound := *v.Placement
	sound.Pools = slices.DeleteFunc(slices.Clone(v.Pools), func(p policy.Pool) bool { return faulty[named(poolsSection, p.Name)] })
	sound.Policies = slices.DeleteFunc(slices.Clone(v.Policies), func(p policy.Policy) bool { return faulty[named(policiesSection, p.Name)] })
	return &sound
}
