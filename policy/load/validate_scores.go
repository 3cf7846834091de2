package load

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubectl-sched/kubectl-sched/policy"
)

// scores checks the intents about how nodes are scored.
func (s subject) scores(p *policy.Policy) {
	if p.Pack != nil && p.Balance != nil {
		f := s.bad("policy/pack-and-balance", []string{"balance"}, "pack fills nodes up and balance spares the full ones; keep one of them")
		relate(f, s.positions.At("pack"), "the other")
	}
	if p.Pack != nil {
		s.resources([]string{"pack", "resources"}, p.Pack.Resources)
	}
	if p.Balance != nil {
		s.resources([]string{"balance", "resources"}, p.Balance.Resources)
	}
}

// resources checks the names of resources.
func (s subject) resources(at []string, weights map[string]int) {
	if _, given := s.positions[policy.Pointer(at...)]; given && len(weights) == 0 {
		s.bad("policy/no-resources", at, "no resource counts, so that all nodes score alike; name one, or leave resources out for cpu and memory")
	}
	for _, name := range slices.Sorted(maps.Keys(weights)) {
		if len(validation.IsQualifiedName(name)) > 0 {
			s.bad("policy/bad-name", join(at, name), "%q is no name of a resource; write one such as \"cpu\" or \"nvidia.com/gpu\"", name)
		}
	}
}

// mustWin checks that what must win is a preference.
func (s subject) mustWin(at []string, mustWin bool, strength policy.Strength) {
	if mustWin && strength != policy.Prefer {
		s.bad("policy/must-win-without-prefer", join(at, "mustWin"), "what is required holds whatever the scores are, so mustWin is for strength \"prefer\" alone; leave it out, or prefer")
	}
}

// raw checks the fragments that no intent can say.
func (s subject) raw(r *policy.Raw) {
	if r == nil {
		return
	}
	_, pod := s.positions[policy.Pointer("raw", "pod")]
	_, profile := s.positions[policy.Pointer("raw", "profile")]
	switch {
	case pod && len(r.Pod) == 0:
		s.bad("policy/bad-raw", []string{"raw", "pod"}, "the fragment is empty; write fields of a pod spec, or leave raw out")
	case profile && len(r.Profile) == 0:
		s.bad("policy/bad-raw", []string{"raw", "profile"}, "the fragment is empty; write fields of a profile, or leave it out")
	case len(r.Pod)+len(r.Profile) == 0:
		s.bad("policy/bad-raw", []string{"raw"}, "there is no fragment; give pod or profile, or leave raw out")
	}
}

// schedulers checks what a cluster's document says of its schedulers.
func (s subject) schedulers(c *policy.Cluster) {
	bundled := ""
	served := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(c.Schedulers)) {
		sched, at := c.Schedulers[name], []string{"schedulers", name}
		if sched.Bundled && bundled != "" {
			f := s.bad("policy/two-bundled", join(at, "bundled"), "%q and %q would both be the bundled scheduler, which is one for each cluster and serves all profiles; keep one", bundled, name)
			relate(f, s.positions.At("schedulers", bundled), bundled)
		}
		if sched.Bundled {
			bundled = name
		}
		for i, profile := range sched.Profiles {
			here := join(at, "profiles", nth(i))
			if other, twice := served[profile]; twice {
				f := s.bad("policy/two-schedulers", here, "profile %q is served by %q already, and two schedulers that take the same pods race for them; name each profile once", profile, other)
				relate(f, s.positions.At("schedulers", other), other)
			}
			served[profile] = name
		}
	}
}
