package policytest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/internal/lint"
	"github.com/kubectl-sched/kubectl-sched/internal/preview"
	"github.com/kubectl-sched/kubectl-sched/internal/simulate"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// judge compares what came of a test with what it expects.
type judge struct {
	*run
	compiled compilation
	names    names
	// subjects are the workloads of the expectations, by the names there.
	subjects map[string]simulate.Ref
	outcome  *preview.Result
	nodes    map[string]*corev1.Node // of the outcome
}

// resolve finds everything that the expectations speak of: what speaks of nothing
// would hold, or fail, for the wrong reason.
func (j *judge) resolve() {
	j.subjects = map[string]simulate.Ref{}
	for _, said := range slices.Sorted(maps.Keys(j.test.Expect.Workloads)) {
		at := []string{"expect", "workloads", said}
		o := j.test.Expect.Workloads[said]
		if ref, ok := j.one(j.names, at, said); ok {
			j.subjects[said] = ref
		}
		for i, pool := range o.Pools {
			j.pool(at, []string{"pools", fmt.Sprint(i)}, pool)
		}
		if o.NeedsNodes != nil {
			j.pool(at, []string{"needsNodes", "pool"}, o.NeedsNodes.Pool)
		}
		if o.Pending != nil && o.Pending.Policy != "" && !j.isPolicy(o.Pending.Policy) {
			j.noPolicy(append(at, "pending", "policy"), o.Pending.Policy)
		}
		if o.Compiled != nil && o.Compiled.Policies != nil {
			for i, name := range *o.Compiled.Policies {
				if !j.isPolicy(name) {
					j.noPolicy(append(slices.Clone(at), "compiled", "policies", fmt.Sprint(i)), name)
				}
			}
		}
		for i, node := range o.Nodes {
			if !strings.Contains(node, "-new-") {
				j.nodeNamed(append(slices.Clone(at), "nodes", fmt.Sprint(i)), node)
			}
		}
		for i, zone := range o.Zones {
			j.domain(append(slices.Clone(at), "zones", fmt.Sprint(i)), "zone", zone)
		}
		for _, topology := range slices.Sorted(maps.Keys(o.PerDomain)) {
			for _, domain := range slices.Sorted(maps.Keys(o.PerDomain[topology])) {
				j.domain(append(slices.Clone(at), "perDomain", topology, domain), topology, domain)
			}
		}
		for _, topology := range slices.Sorted(maps.Keys(o.MaxSkew)) {
			j.topology(append(slices.Clone(at), "maxSkew", topology), topology)
		}
		for field, others := range map[string]map[string]string{"apart": o.Apart, "together": o.Together} {
			for _, other := range slices.Sorted(maps.Keys(others)) {
				below := append(slices.Clone(at), field, other)
				j.targets(below, other)
				j.topology(below, others[other])
			}
		}
	}
	rules := map[string]bool{}
	for _, rule := range lint.Documented() {
		rules[rule.ID] = true
	}
	for i, f := range j.test.Expect.Findings {
		if !rules[f.Rule] {
			near := ""
			if like, ok := diag.Nearest(f.Rule, slices.Sorted(maps.Keys(rules))); ok {
				near = fmt.Sprintf("; did you mean %q?", like)
			}
			j.bad(ruleUnknown, []string{"expect", "findings", fmt.Sprint(i), "rule"}, "there is no rule %q%s", f.Rule, near)
		}
	}
}

func (j *judge) isPolicy(name string) bool {
	return slices.ContainsFunc(j.Placement.Policies, func(p policy.Policy) bool { return p.Name == name })
}

func (j *judge) noPolicy(at []string, name string) {
	var known []string
	for _, p := range j.Placement.Policies {
		known = append(known, p.Name)
	}
	j.bad(ruleUnknown, at, "there is no policy %q%s", name, suggest(name, known))
}

func (j *judge) pool(at, below []string, pool string) {
	if names := j.poolNames(); !slices.Contains(names, pool) {
		j.bad(ruleUnknown, slices.Concat(at, below), "no node of the test is in a pool or group %q%s", pool, suggest(pool, names))
	}
}

// key is the node label of a topology.
func (j *judge) key(topology string) string {
	if j.cluster != nil && j.cluster.Topology[topology] != "" {
		return j.cluster.Topology[topology]
	}
	return cmp.Or(shortKeys[topology], topology)
}

// topology notes a topology that no node has.
func (j *judge) topology(at []string, topology string) bool {
	key := j.key(topology)
	if slices.ContainsFunc(j.snapshot.Nodes, func(n *corev1.Node) bool { return n.Labels[key] != "" }) {
		return true
	}
	j.bad(ruleUnknown, at, "no node of the test has a label for the topology %q; use zone, region, node, one of the cluster's, or a node label", topology)
	return false
}

// domain notes a domain that no node is in.
func (j *judge) domain(at []string, topology, domain string) {
	if !j.topology(at, topology) {
		return
	}
	known := map[string]bool{}
	for _, n := range j.snapshot.Nodes {
		if value := n.Labels[j.key(topology)]; value != "" {
			known[value] = true
		}
	}
	if !known[domain] {
		j.bad(ruleUnknown, at, "no node of the test is in %s %q%s", topology, domain, suggest(domain, slices.Sorted(maps.Keys(known))))
	}
}

// targets are the workloads or running pods of that name.
func (j *judge) targets(at []string, said string) map[simulate.Ref]bool {
	if refs := j.running[said]; refs != nil {
		set := map[simulate.Ref]bool{}
		for _, ref := range refs {
			set[ref] = true
		}
		return set
	}
	found := j.names.workload(said)
	if len(found) == 1 {
		return map[simulate.Ref]bool{found[0]: true}
	}
	if len(found) > 1 {
		j.bad(ruleUnknown, at, "%q may be %s or %s; write it as namespace/kind/name", said, found[0], found[1])
		return nil
	}
	known := append(j.names.known(), slices.Sorted(maps.Keys(j.running))...)
	j.bad(ruleUnknown, at, "there is no workload %q in the test%s", said, suggest(said, known))
	return nil
}

// findings judges what was found in compiling and by lint.
func (j *judge) findings() {
	e := j.test.Expect
	expected := func(f diag.Finding) bool {
		return slices.ContainsFunc(e.Findings, func(x policy.TestFinding) bool { return is(f, x) })
	}
	for i, x := range e.Findings {
		j.result.Expectations++
		if slices.ContainsFunc(j.compiled.findings, func(f diag.Finding) bool { return is(f, x) }) {
			continue
		}
		at := []string{"expect", "findings", fmt.Sprint(i)}
		var related []diag.Related
		for _, f := range j.compiled.findings {
			if f.Rule == x.Rule {
				related = append(related, j.seen(f))
			}
		}
		switch {
		case len(related) > 0:
			j.fail(at, related, "%s is found, but not as expected", x.Rule)
		case len(j.compiled.findings) > 0:
			j.fail(at, nil, "%s is not found; found are %s", x.Rule, rulesOf(j.compiled.findings))
		default:
			j.fail(at, nil, "%s is not found, and nothing else is", x.Rule)
		}
	}
	if e.NoFindings {
		j.result.Expectations++
		for _, f := range j.compiled.findings {
			if f.Severity != diag.Info {
				j.fail([]string{"expect", "noFindings"}, []diag.Related{j.seen(f)}, "no finding is expected, and there is %s", f.Rule)
			}
		}
		return
	}
	for _, f := range j.compiled.errors {
		if !expected(f) {
			j.fail([]string{"expect"}, []diag.Related{j.seen(f)}, "the policies cannot be carried out: %s", f.Message)
		}
	}
}

// is reports whether the finding is one that is described.
func is(f diag.Finding, x policy.TestFinding) bool {
	return f.Rule == x.Rule && (x.Severity == "" || string(f.Severity) == x.Severity) &&
		strings.Contains(f.Subject, x.Subject) && strings.Contains(f.Message, x.Text)
}

// seen shows a finding beside an expectation.
func (j *judge) seen(f diag.Finding) diag.Related {
	placed := j.placed(f)
	f.Range = diag.Range{}
	return diag.Related{Range: placed.Range, Message: fmt.Sprintf("%s: %s [%s]", f.Severity, f.String(), f.Rule)}
}

// rulesOf lists the rules of findings.
func rulesOf(findings diag.Findings) string {
	var rules []string
	for _, f := range findings {
		rules = append(rules, f.Rule)
	}
	slices.Sort(rules)
	return strings.Join(slices.Compact(rules), ", ")
}

// notSimulated says of each expectation about pods that it cannot be judged, since
// nothing would be applied.
func (j *judge) notSimulated() {
	for _, said := range slices.Sorted(maps.Keys(j.subjects)) {
		j.bad(ruleError, []string{"expect", "workloads", said}, "what becomes of %s cannot be judged: compiling has errors, so that nothing would be applied", j.subjects[said])
	}
}

// workloads judges what became of each workload.
func (j *judge) workloads() {
	for _, said := range slices.Sorted(maps.Keys(j.subjects)) {
		s := &subject{judge: j, ref: j.subjects[said], at: []string{"expect", "workloads", said}, expect: j.test.Expect.Workloads[said]}
		for _, p := range j.outcome.Pods {
			if p.Workload == s.ref && p.Verdict != simulate.Gone {
				s.pods = append(s.pods, p)
			}
		}
		s.judgeAll()
	}
}

// origins relates the policies' lines that made a plugin decide as it did.
func (s *subject) origins(plugins ...string) []diag.Related {
	var origins []compiler.Origin
	for _, plugin := range plugins {
		origins = append(origins, preview.Origins(s.compiled.plan, s.ref, plugin)...)
	}
	return fromLines(origins)
}
