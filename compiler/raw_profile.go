package compiler

import (
	"fmt"
	"slices"

	"github.com/kubectl-sched/kubectl-sched/compiler/profile"
)

// prepareRawProfile notes what a fragment of a profile asks for, and reports what
// is wrong with it: all that is wrong with any configuration of a scheduler, what
// only has no effect as well.
func (c *compilation) prepareRawProfile(r *rule) {
	if len(r.Raw.Profile) == 0 {
		return
	}
	path := []string{"raw", "profile"}
	problems := profile.CheckFragment(r.Raw.Profile)
	for _, p := range problems {
		c.report(finding{rule: p.Rule, policy: r.Name, at: r.author.at(slices.Concat(path, p.Path)...), message: p.Message})
	}
	if len(problems) == 0 {
		r.need(profile.Fragment(r.Raw.Profile, "raw says itself what the profile has", r.author.wishOrigin(path...)))
	}
}

// checkProfiles looks at the profiles that fragments have a part in, as a whole.
func (c *compilation) checkProfiles() {
	for _, u := range c.plan.Profiles {
		for _, w := range u.Need.Wishes() {
			if w.Feature == profile.FeatureRaw {
				c.checkProfile(u.Profile, w.Origin)
				break
			}
		}
	}
}

func (c *compilation) checkProfile(p profile.Profile, o profile.Origin) {
	problems, err := p.Check()
	if err != nil {
		problems = []profile.Problem{{Rule: "scheduler/invalid", Message: err.Error()}}
	}
	for _, problem := range problems {
		c.report(finding{
			rule: problem.Rule, policy: o.Policy, at: o.Range,
			message: fmt.Sprintf("in profile %q, to which this fragment belongs: %s", p.Name, problem.Message),
		})
	}
}
