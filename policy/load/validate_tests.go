package load

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/kubectl-sched/kubectl-sched/policy"
)

// test checks what can be said of a test without running it: above all that it can
// fail.
func (v *validator) test(t *policy.Test) {
	s := subject{v, "", fmt.Sprintf("test %q", t.Name), t.Positions}
	if t.Now != "" {
		if _, err := time.Parse(time.DateOnly, t.Now); err != nil {
			s.bad("policy/bad-date", []string{"now"}, "%q is no date", t.Now)
		}
	}
	if t.Cluster != "" && v.Cluster(t.Cluster) == nil {
		names := slices.Clone(v.broken[clustersSection])
		for _, c := range v.Clusters {
			names = append(names, c.Name)
		}
		if !slices.Contains(names, t.Cluster) {
			s.bad("policy/unknown-cluster", []string{"cluster"}, "there is no cluster %q%s", t.Cluster, suggest(t.Cluster, names))
		}
	}
	for i, step := range t.After {
		if n := step.Fields(); n != 1 {
			s.bad("policy/test-step", []string{"after", nth(i)}, "a step is one thing, and this has %d; write one of drain, lose, scale, rollout, addNodes and replay", n)
		}
	}
	s.expects(t)
}

// expects holds that a test checks something, and so does each of its parts.
func (s subject) expects(t *policy.Test) {
	e := t.Expect
	if len(e.Workloads) == 0 && len(e.Findings) == 0 && !e.NoFindings {
		s.bad("policy/empty-test", []string{"expect"}, "the test expects nothing, so that it cannot fail; say what must become of a workload, or which findings there are")
	}
	if e.NoFindings && len(e.Findings) > 0 {
		s.bad("policy/empty-test", []string{"expect", "noFindings"}, "the test expects findings and none at once; keep one")
	}
	for _, name := range slices.Sorted(maps.Keys(e.Workloads)) {
		outcome := e.Workloads[name]
		at := []string{"expect", "workloads", name}
		if !outcome.Checks() {
			s.bad("policy/empty-test", at, "nothing is expected of %q; say what must become of it, such as placed: \"all\"", name)
		}
		for topology, counts := range outcome.PerDomain {
			if len(counts) == 0 {
				s.bad("policy/empty-test", join(at, "perDomain", topology), "no domain is counted; write one, such as \"eu-1a\": 2")
			}
		}
	}
}
