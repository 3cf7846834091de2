package compiler_test

import (
	"flag"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulinghelper "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
	"pgregory.net/rapid"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// judged says, by the scheduler's own helpers, whether pods with the placement
// may run on the node: by its labels, and by its taints too.
func judged(t *rapid.T, p workload.PodFields, n capability.Node) (selected, taintsBorne bool) {
	selected, err := nodeaffinity.NewRequiredNodeAffinity(p.NodeSelector, p.Affinity).Match(nodeOf(n))
	if err != nil {
		t.Fatalf("the scheduler cannot read the affinity: %v", err)
	}
	_, bad := schedulinghelper.FindMatchingUntoleratedTaint(klog.Logger{}, n.Taints, p.Tolerations, func(t *corev1.Taint) bool {
		return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
	}, false)
	return selected, !bad
}

func hasRule(fs diag.Findings, rules ...string) bool {
	return slices.ContainsFunc(fs, func(f diag.Finding) bool { return slices.Contains(rules, f.Rule) })
}

// broken reports whether a finding says that the plan is not complete; those
// that judge a complete plan do not.
func broken(fs diag.Findings) bool {
	return slices.ContainsFunc(fs, func(f diag.Finding) bool {
		return f.Severity == diag.Error && f.Rule != "compile/untolerated-taint" && f.Rule != "compile/topology-missing"
	})
}

func request(p *policy.Placement, nodes []capability.Node, ws ...*workload.Workload) compiler.Request {
	return compiler.Request{
		Placement: p, Workloads: ws, Surface: policy.SurfaceRender, Now: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC),
		Capabilities: capability.Capabilities{Nodes: nodes, NodesKnown: true},
	}
}

// TestAllowedNodes holds the compiled node affinity and tolerations against the
// meaning of the language: exactly the nodes that the manifest and all policies
// allow are allowed.
func TestAllowedNodes(t *testing.T) {
	t.Parallel()
	contradictions, compared := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		w := &world{numbers: true}
		nodes := w.nodes(t)
		placement := w.placement(t)
		pods := w.pods(t)
		ref := reference{placement, nodes}
		plan, findings := compiler.Compile(request(placement, nodes, deployment(t, pods)))
		impossible := hasRule(findings, "compile/contradiction", "workload/contradiction")
		if hasRule(findings, "compile/too-many-terms") {
			return
		}
		for _, n := range nodes {
			selected, borne := judged(t, pods, n)
			for _, p := range placement.Policies {
				selected = selected && ref.selects(p, n)
			}
			if impossible {
				if selected {
					t.Fatalf("a contradiction is reported, but node %v can be meant:\n%v", n, findings)
				}
				continue
			}
			if !borne {
				borne = true
				for _, taint := range n.Taints {
					if taint.Effect == corev1.TaintEffectPreferNoSchedule {
						continue
					}
					one := capability.Node{Taints: []corev1.Taint{taint}}
					_, own := judged(t, workload.PodFields{Tolerations: pods.Tolerations}, one)
					borne = borne && (own || slices.ContainsFunc(placement.Policies, func(p policy.Policy) bool { return ref.bears(p, taint) }))
				}
			}
			after := plan.Changes[0].After
			gotSelected, gotBorne := judged(t, after, n)
			// Which taints are borne on nodes that are out of reach is nobody's concern.
			if gotSelected != selected || selected && gotBorne != borne {
				t.Fatalf("node %+v: selected %v, want %v; taints borne %v, want %v\nafter: %s\nfindings: %v", n, gotSelected, selected, gotBorne, borne, asJSON(after), findings)
			}
		}
		if impossible {
			contradictions++
		} else {
			compared++
		}
	})
	enough(t, map[string]int{"compared": compared, "contradictions": contradictions})
}

// enough holds that a property was not vacuous: at least one case in twenty was of
// each sort.
func enough(t *testing.T, counts map[string]int) {
	t.Helper()
	checks, err := strconv.Atoi(flag.Lookup("rapid.checks").Value.String())
	if err != nil {
		t.Fatal(err)
	}
	for what, n := range counts {
		if n < max(1, checks/20) {
			t.Errorf("%d %s in %d cases: the property says next to nothing", n, what, checks)
		}
	}
	t.Logf("%v", counts)
}

// TestContradictionsAreReal checks the other direction of the above: where a
// contradiction is reported, no node whatever could be meant. The nodes tried
// are all that differ in what the documents speak of.
func TestContradictionsAreReal(t *testing.T) {
	t.Parallel()
	every := everyNode()
	rapid.Check(t, func(t *rapid.T) {
		w := &world{}
		placement := w.placement(t)
		pods := w.pods(t)
		_, findings := compiler.Compile(compiler.Request{Placement: placement, Workloads: []*workload.Workload{deployment(t, pods)}})
		if hasRule(findings, "compile/too-many-terms", "policy/empty-pool") {
			return
		}
		ref := reference{placement, every}
		required := nodeaffinity.NewRequiredNodeAffinity(pods.NodeSelector, pods.Affinity)
		possible := slices.ContainsFunc(every, func(n capability.Node) bool {
			selected, err := required.Match(nodeOf(n))
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range placement.Policies {
				selected = selected && ref.selects(p, n)
			}
			return selected
		})
		// A manifest that contradicts itself is reported when a policy adds to it.
		speaks := func(n *policy.NodeTerm) bool { return n != nil && len(ref.statements(*n, every[0], true)) > 0 }
		policiesSay := slices.ContainsFunc(placement.Policies, func(p policy.Policy) bool {
			return speaks(p.Nodes.Require) || speaks(p.Nodes.Forbid) || p.Tolerate != nil && p.Tolerate.ExceptPools != nil
		})
		if reported := hasRule(findings, "compile/contradiction", "workload/contradiction"); policiesSay && reported == possible {
			t.Fatalf("contradiction reported is %v, some node possible is %v: %v", reported, possible, findings)
		}
	})
}

func everyNode() []capability.Node {
	var out []capability.Node
	values := []string{"", "a", "b", "c", "other"}
	for _, name := range []string{"n0", "n1", "n2", "n9", "other"} {
		for _, k1 := range values {
			for _, k2 := range values {
				for _, zone := range values {
					for _, size := range []string{"", "-1", "0", "1", "2", "3", "4", "many"} {
						n := capability.Node{Name: name, Labels: map[string]string{}}
						for k, v := range map[string]string{"k1": k1, "k2": k2, zoneLabel: zone, "size": size} {
							if v != "" {
								n.Labels[k] = v
							}
						}
						out = append(out, n)
					}
				}
			}
		}
	}
	return out
}

// TestPreferences holds the scores that the compiled preferences give against
// the meaning of the language.
func TestPreferences(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := &world{}
		nodes := w.nodes(t)
		placement := w.placement(t)
		for i := range placement.Policies {
			p := &placement.Policies[i]
			p.Tolerate = nil
			p.Nodes = &policy.Nodes{Prefer: w.preference(t), Disfavor: w.preference(t)}
		}
		plan, findings := compiler.Compile(request(placement, nodes, deployment(t, workload.PodFields{})))
		if broken(findings) {
			return
		}
		var terms []corev1.PreferredSchedulingTerm
		if a := plan.Changes[0].After.Affinity; a != nil {
			terms = a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution
		}
		if slices.ContainsFunc(terms, func(t corev1.PreferredSchedulingTerm) bool { return t.Weight == 100 }) {
			return // The API's limit cut a sum off.
		}
		scorer, err := nodeaffinity.NewPreferredSchedulingTerms(terms)
		if err != nil {
			t.Fatal(err)
		}
		ref := reference{placement, nodes}
		// A term that holds for every node adds the same to all and is left out.
		base := int64(0)
		for i, n := range nodes {
			want := int64(0)
			for _, p := range placement.Policies {
				want += ref.score(p, n)
			}
			got := scorer.Score(nodeOf(n))
			if i == 0 {
				base = want - got
			}
			if want-got != base {
				t.Fatalf("node %+v: score %d, want %d (all others differ by %d)\n%s", n, got, want, base, asJSON(terms))
			}
		}
	})
}

func (w *world) preference(t *rapid.T) *policy.Preference {
	switch rapid.IntRange(0, 2).Draw(t, "preference") {
	case 0:
		return nil
	case 1:
		return &policy.Preference{NodeTerm: w.nodeTerm(t, true), Weight: rapid.IntRange(1, 12).Draw(t, "weight")}
	}
	out := &policy.Preference{Weight: rapid.IntRange(3, 12).Draw(t, "weight")}
	for range rapid.IntRange(1, 3).Draw(t, "ranks") {
		n := w.nodeTerm(t, true)
		if len(n.Labels)+len(n.Zones)+len(n.Pools)+len(n.Names) == 0 {
			n.Zones = []string{"b"}
		}
		out.Ranked = append(out.Ranked, n)
	}
	return out
}

// TestSettled checks that compiling over the outcome changes nothing more, and
// that no order of the input shows.
func TestSettled(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := &world{numbers: true}
		nodes := w.nodes(t)
		placement := w.placement(t)
		for i := range placement.Policies {
			p := &placement.Policies[i]
			p.Nodes.Prefer, p.Nodes.Disfavor = w.preference(t), w.preference(t)
			w.counting(t, p)
		}
		pods := w.pods(t)
		plan, findings := compiler.Compile(request(placement, nodes, deployment(t, pods)))

		shuffled := *placement
		shuffled.Policies, shuffled.Pools = slices.Clone(placement.Policies), slices.Clone(placement.Pools)
		seed := rapid.Uint64().Draw(t, "seed")
		random := rand.New(rand.NewPCG(seed, seed))
		random.Shuffle(len(shuffled.Policies), func(i, j int) {
			shuffled.Policies[i], shuffled.Policies[j] = shuffled.Policies[j], shuffled.Policies[i]
		})
		random.Shuffle(len(shuffled.Pools), func(i, j int) {
			shuffled.Pools[i], shuffled.Pools[j] = shuffled.Pools[j], shuffled.Pools[i]
		})
		moved := slices.Clone(nodes)
		random.Shuffle(len(moved), func(i, j int) { moved[i], moved[j] = moved[j], moved[i] })
		again, findingsAgain := compiler.Compile(request(&shuffled, moved, deployment(t, pods)))
		if a, b := asJSON(planData(plan)), asJSON(planData(again)); a != b || asJSON(findings) != asJSON(findingsAgain) {
			t.Fatalf("the order of the input shows:\n%s\n%s\n%s\n%s", a, b, asJSON(findings), asJSON(findingsAgain))
		}

		if broken(findings) {
			return
		}
		after := plan.Changes[0].After
		second, _ := compiler.Compile(request(placement, nodes, deployment(t, after)))
		if effects := second.Changes[0].Effects; len(effects) > 0 {
			t.Fatalf("compiling over the outcome still changes it:\nbefore %s\nafter %s\n%s", asJSON(after), asJSON(second.Changes[0].After), asJSON(effects))
		}
	})
}

// counting draws spread, together, apart and priority.
func (w *world) counting(t *rapid.T, p *policy.Policy) {
	strength := func() policy.Strength {
		return rapid.SampledFrom([]policy.Strength{policy.Require, policy.Prefer}).Draw(t, "strength")
	}
	subject := func() policy.Subject {
		if rapid.IntRange(0, 3).Draw(t, "of") > 0 {
			return policy.Subject{Kind: policy.EachWorkload}
		}
		return policy.Subject{Kind: policy.ByLabels, Labels: map[string]policy.Values{"app": {"web"}}}
	}
	for _, key := range []string{"zone", "node"} {
		if rapid.IntRange(0, 2).Draw(t, "spread") == 0 {
			if p.Spread == nil {
				p.Spread = map[string]policy.Spread{}
			}
			s := policy.Spread{Strength: strength(), MaxSkew: rapid.IntRange(1, 3).Draw(t, "skew"), Of: subject()}
			if s.Strength == policy.Require && rapid.Bool().Draw(t, "min") {
				n := rapid.IntRange(1, 4).Draw(t, "minDomains")
				s.MinDomains = &n
			}
			p.Spread[key] = s
		}
	}
	colocation := func() map[string]policy.Colocation {
		if rapid.IntRange(0, 3).Draw(t, "colocate") > 0 {
			return nil
		}
		return map[string]policy.Colocation{"x": {
			On: rapid.SampledFrom([]string{"zone", "node"}).Draw(t, "on"), Strength: strength(),
			Weight: rapid.IntRange(1, 100).Draw(t, "weight"), Of: subject(),
		}}
	}
	p.Together, p.Apart = colocation(), colocation()
	if rapid.IntRange(0, 3).Draw(t, "priority") == 0 {
		value := int32(5)
		p.Priority = &policy.Priority{Class: "low", Value: &value}
	}
}

// planData is what a plan says, without the workloads themselves.
func planData(p *compiler.Plan) any {
	var out []any
	for _, c := range p.Changes {
		out = append(out, c.Policies, c.After, c.After.Raw, c.Effects)
	}
	return append(out, p.Objects, p.Nodes, p.Exceptions, p.Unmatched)
}
