package compiler

import (
	"time"

	"github.com/kubectl-sched/kubectl-sched/compiler/profile"
	"github.com/kubectl-sched/kubectl-sched/policy"
)

// rule is a policy that holds in the cluster, with everything prepared that
// does not depend on the workload.
type rule struct {
	*policy.Policy
	author  author
	selects *selection
	anchors []anchor
	except  []exception
	// replaces are the default policies that it overrides.
	replaces []*rule
	// matched says that it selected some workload.
	matched bool

	nodes    nodeRule
	tolerate tolerateRule
	raw      *rawRule
	// needs are what it asks of the profile that schedules the pods.
	needs []profile.Wish
}

type exception struct {
	name string
	policy.Exception
	selects *selection
	expired bool
}

// prepareRules returns the policies that hold in the cluster, by name.
func (c *compilation) prepareRules() {
	byName := map[string]*rule{}
	for i := range c.Placement.Policies {
		p := &c.Placement.Policies[i]
		r := &rule{Policy: p, author: author{policy: p.Name, positions: p.Positions}}
		c.prepareExceptions(r)
		if !c.holds(r) {
			continue
		}
		r.selects = newSelection(p.Workloads, false)
		r.anchors = r.selects.anchors()
		byName[p.Name] = r
	}
	for _, name := range sortedKeys(byName) {
		c.rules = append(c.rules, byName[name])
	}
	c.prepareOverrides(byName)
	for _, r := range c.rules {
		c.prepareNodes(r)
		c.prepareTolerate(r)
		c.prepareRaw(r)
		c.prepareScores(r)
		c.prepareMustWin(r)
	}
}

// holds reports whether the policy holds in the cluster at hand.
func (c *compilation) holds(r *rule) bool {
	if len(r.When) == 0 {
		return true
	}
	if c.facts.cluster == nil {
		if c.facts.Cluster == "" && len(c.Placement.Clusters) > 0 {
			c.report(finding{
				rule: "compile/when-unknown", severity: warning, policy: r.Name, at: r.author.at("when"),
				message: "no cluster is named, so the policy is left out; name one with --cluster",
			})
		}
		return false
	}
	return matchLabels(labelPatterns(r.When), c.facts.cluster.Labels)
}

// endOfDay returns the first moment at which an exception has expired.
func endOfDay(day string) (time.Time, error) {
	t, err := time.Parse(time.DateOnly, day)
	return t.AddDate(0, 0, 1), err
}
