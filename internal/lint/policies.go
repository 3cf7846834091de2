package lint

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-sched/kubectl-sched/compiler/nodelabel"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

func policyRules() []Rule {
	return []Rule{
		{
			ID: "policy/unguarded-pool", Severity: diag.Info, Needs: Files, run: unguardedPools,
			Doc: "A dedicated pool that says who may use it, and has no guard, keeps nobody off who tolerates its taint by hand: the grants bind policies alone.",
			Fix: "Add guard: \"warn\", and \"deny\" once nobody is warned.",
		},
		{
			ID: "policy/pool-without-daemonsets", Severity: diag.Warning, Needs: Files, run: poolWithoutDaemonSets,
			Doc: "The taint of a dedicated pool keeps off DaemonSets that are meant for every node, such as those for logs, network or volumes. Where the nodes of the cluster are known, compile/daemonset-skips and workload/daemonset-skips say it with their names.",
			Fix: "Let a policy tolerate the pool, or all taints (tolerate: all).",
		},
		{
			ID: "policy/overlap", Severity: diag.Info, Needs: Files, run: overlappingPolicies,
			Doc: "Two policies select the same workload and spread it over the same topology. The stricter one holds, and the other has no effect there.",
			Fix: "Narrow one of the selectors, or say the spread in one policy.",
		},
		{
			ID: "policy/gang-timeout", Severity: diag.Warning, Needs: Files, run: policyGangTimeout,
			Doc: "A node that is made on demand takes some minutes. A gang that gives up sooner releases its places before the nodes are there, and starts over, without end.",
			Fix: "Wait at least as long as a node takes to come up.",
		},
		{
			ID: "policy/deprecated-label", Severity: diag.Warning, Needs: Files, run: deprecatedInPolicies,
			Doc: "A pool or policy tells nodes by a label that they are no longer given.",
			Fix: "Write the label that took its place.",
		},
	}
}

func (j *judgement) pools() []policy.Pool {
	if j.Request.Placement == nil {
		return nil
	}
	return j.Request.Placement.Pools
}

func (j *judgement) policies() []policy.Policy {
	if j.Request.Placement == nil {
		return nil
	}
	return j.Request.Placement.Policies
}

// dedicatedTaint is the taint that keeps others off the pool; nil for none.
func dedicatedTaint(p policy.Pool) *corev1.Taint {
	if p.Dedicated == nil || p.Dedicated.Taint == nil {
		return nil
	}
	t := p.Dedicated.Taint
	out := &corev1.Taint{Key: t.Key, Effect: corev1.TaintEffect(t.Effect)}
	if t.Value != nil {
		out.Value = *t.Value
	}
	return out
}

func unguardedPools(j *judgement) {
	for _, p := range j.pools() {
		if d := p.Dedicated; d != nil && d.Grants != nil && (d.Guard == "" || d.Guard == policy.GuardOff) {
			j.report(diag.Finding{Subject: "pool " + p.Name, Range: p.Positions.At("dedicated", "grants"), Message: "without a guard the grants bind policies alone, and any pod that tolerates the taint gets in; add guard: \"warn\", and \"deny\" later"})
		}
	}
}

func poolWithoutDaemonSets(j *judgement) {
	if j.caps().NodesKnown {
		return
	}
	for _, p := range j.pools() {
		taint := dedicatedTaint(p)
		if taint == nil || taint.Effect == corev1.TaintEffectPreferNoSchedule {
			continue
		}
		for _, t := range j.templates {
			if !t.isDaemonSet() || !forAnyNode(t.pods) || borne(t.pods.Tolerations, *taint) || t.sparedOn(p.Name) {
				continue
			}
			j.report(diag.Finding{
				Subject: t.subject(), Range: p.Positions.At("dedicated"), Message: fmt.Sprintf("the DaemonSet is for every node, and does not tolerate %s of pool %q; let a policy tolerate the pool", taint.ToString(), p.Name),
				Related: []diag.Related{{Range: t.w.Source.At("metadata", "name"), Message: "the DaemonSet"}},
			})
		}
	}
}

// sparedOn reports whether a policy that is for the template keeps it off the pool on
// purpose.
func (t *template) sparedOn(pool string) bool {
	if t.change == nil {
		return false
	}
	return slices.ContainsFunc(t.policies(), func(p policy.Policy) bool {
		off := p.Tolerate != nil && slices.Contains(p.Tolerate.ExceptPools, pool) || p.Nodes != nil && p.Nodes.Forbid != nil && slices.Contains(p.Nodes.Forbid.Pools, pool)
		return off && slices.Contains(t.change.Policies, p.Name)
	})
}

// forAnyNode reports whether the pods' node affinity asks for nothing but the usual
// machine, or to keep away from some.
func forAnyNode(pods workload.PodFields) bool {
	machine := func(key string, values ...string) bool {
		return key == corev1.LabelOSStable && slices.Contains(values, "linux") || key == corev1.LabelArchStable
	}
	for key, value := range pods.NodeSelector {
		if !machine(key, value) {
			return false
		}
	}
	for _, term := range nodeTerms(pods) {
		for _, e := range term.MatchExpressions {
			if asksFor(e) && !machine(e.Key, e.Values...) {
				return false
			}
		}
		if len(term.MatchFields) > 0 {
			return false
		}
	}
	return true
}

// asksFor reports whether a node must have the label for the requirement.
func asksFor(e corev1.NodeSelectorRequirement) bool {
	return e.Operator != corev1.NodeSelectorOpNotIn && e.Operator != corev1.NodeSelectorOpDoesNotExist
}

// overlappingPolicies speaks of each pair once, at the line that has no effect.
func overlappingPolicies(j *judgement) {
	if j.Plan == nil {
		return
	}
	byName := map[string]*policy.Policy{}
	policies := j.policies()
	for i := range policies {
		byName[policies[i].Name] = &policies[i]
	}
	said := map[string]bool{}
	for _, change := range j.Plan.Changes {
		strictest := map[string]*policy.Policy{}
		for _, name := range change.Policies {
			p := byName[name]
			if p == nil {
				continue
			}
			for _, topology := range sortedKeys(p.Spread) {
				best := strictest[topology]
				if best == nil {
					strictest[topology] = p
					continue
				}
				strict, loose := best, p
				if stricter(p.Spread[topology], best.Spread[topology]) {
					strict, loose = p, best
				}
				strictest[topology] = strict
				key := fmt.Sprint(strict.Name, loose.Name, topology)
				if loose.Level == policy.Default && strict.Level != policy.Default {
					continue // what a default is for
				}
				if said[key] || strict.Spread[topology].Of.Kind != loose.Spread[topology].Of.Kind || strict.Spread[topology].Of.Kind == policy.ByLabels {
					continue
				}
				said[key] = true
				j.report(diag.Finding{
					Policy: loose.Name, Subject: change.Workload.Ref(), Range: loose.Positions.At("spread", topology),
					Message: fmt.Sprintf("policy %q spreads it over %s too, and that holds; narrow one of the selectors, or say it once", strict.Name, topology),
					Related: []diag.Related{{Range: strict.Positions.At("spread", topology), Message: "the spread that holds"}},
				})
			}
		}
	}
}

// stricter orders spreads as the compiler joins them.
func stricter(a, b policy.Spread) bool {
	if a.Strength != b.Strength {
		return a.Strength == policy.Require
	}
	return a.MaxSkew < b.MaxSkew
}

func policyGangTimeout(j *judgement) {
	who := j.nodesBy
	for _, p := range j.policies() {
		if p.Gang == nil || who == "" {
			continue
		}
		if d, err := time.ParseDuration(p.Gang.Timeout); err == nil && d < scaleUp {
			j.report(diag.Finding{Policy: p.Name, Range: p.Positions.At("gang", "timeout"), Message: fmt.Sprintf("the gang gives up after %s, and a node that is made for it (%s) takes %s or more: it would start over without end; write \"%s\" at least", d, who, scaleUp, "3m")})
		}
	}
}

func deprecatedInPolicies(j *judgement) {
	check := func(ps policy.Positions, name string, n *policy.NodeTerm, path ...string) {
		if n == nil {
			return
		}
		for _, key := range sortedKeys(n.Labels) {
			if now := nodelabel.Replacement(key); now != "" && len(n.Labels[now]) == 0 {
				at := ps.At(append(slices.Clone(path), "labels", key)...)
				j.report(diag.Finding{
					Policy: name, Range: at,
					Message: fmt.Sprintf("%q is out of use, and new clusters do not have it; write %q", key, now), Fix: rename(at, key, now),
				})
			}
		}
	}
	for _, p := range j.pools() {
		check(p.Positions, "", &p.Nodes, "nodes")
		if t := dedicatedTaint(p); t != nil && nodelabel.Replacement(t.Key) != "" {
			j.report(diag.Finding{Subject: "pool " + p.Name, Range: p.Positions.At("dedicated", "taint", "key"), Message: fmt.Sprintf("%q is out of use, and new clusters do not have it; write %q", t.Key, nodelabel.Replacement(t.Key))})
		}
	}
	for _, p := range j.policies() {
		if p.Nodes == nil {
			continue
		}
		check(p.Positions, p.Name, p.Nodes.Require, "nodes", "require")
		check(p.Positions, p.Name, p.Nodes.Forbid, "nodes", "forbid")
		for field, pref := range map[string]*policy.Preference{"prefer": p.Nodes.Prefer, "disfavor": p.Nodes.Disfavor} {
			if pref != nil {
				check(p.Positions, p.Name, &pref.NodeTerm, "nodes", field)
			}
		}
	}
}
