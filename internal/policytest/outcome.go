package policytest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-sched/kubectl-sched/internal/preview"
	"github.com/kubectl-sched/kubectl-sched/internal/simulate"
	"github.com/kubectl-sched/kubectl-sched/policy"
)

// subject is one workload of which something is expected.
type subject struct {
	*judge
	ref    simulate.Ref
	at     []string
	expect policy.TestOutcome
	pods   []simulate.Pod
}

// The plugins of the scheduler whose fields policies write, by what an expectation is
// about.
var (
	byNodes  = []string{"NodeAffinity", "TaintToleration"}
	bySpread = []string{"PodTopologySpread"}
	byPods   = []string{"InterPodAffinity"}
)

func (s *subject) path(more ...string) []string { return slices.Concat(s.at, more) }

// judged counts an expectation.
func (s *subject) judged() { s.result.Expectations++ }

// judgeAll judges everything that is expected of the workload.
func (s *subject) judgeAll() {
	s.judgeCompiled()
	e := s.expect
	where := s.saysWhere()
	if (where || e.Placed != nil || e.Pending != nil || e.NeedsNodes != nil || e.Gang != "") && len(s.pods) == 0 && (e.Placed == nil || e.Placed.All || where) {
		s.judged()
		s.fail(s.at, nil, "%s has no pods, so that nothing can be said of them", s.ref)
		return
	}
	s.judgePlaced(where)
	s.judgePending()
	s.judgeNeeds()
	s.judgeGang()
	if !where {
		return
	}
	if len(s.placedPods()) == 0 {
		s.judged()
		s.fail(s.at, s.causes(), "%s", s.unlike(fmt.Sprintf("pods of %s are expected on nodes, and none is on one", s.ref)))
		return
	}
	s.judgeNodes()
	s.judgePerDomain()
	s.judgeSkew()
	s.judgeApart()
	s.judgeTogether()
}

// saysWhere reports whether something is expected of the nodes that pods are on.
func (s *subject) saysWhere() bool {
	e := s.expect
	return len(e.Zones)+len(e.Pools)+len(e.Nodes)+len(e.NodeLabels)+len(e.PerDomain)+len(e.MaxSkew)+len(e.Apart)+len(e.Together) > 0
}

// placedPods are the pods that are on nodes of the cluster.
func (s *subject) placedPods() []simulate.Pod { return placedOf(s.pods) }

func placedOf(pods []simulate.Pod) []simulate.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(p simulate.Pod) bool { return p.Verdict != simulate.Placed })
}

// judgePlaced judges how many pods are on nodes: all, where nothing is said but where
// they are.
func (s *subject) judgePlaced(where bool) {
	e := s.expect
	at := s.path("placed")
	want := e.Placed
	if want == nil {
		if !where || e.Pending != nil || e.NeedsNodes != nil || e.Gang == "waits" {
			return
		}
		want, at = &policy.TestCount{All: true}, s.at
	}
	s.judged()
	if placed := len(s.placedPods()); placed != want.Of(len(s.pods)) {
		s.fail(at, s.causes(), "%s", s.unlike(fmt.Sprintf("%s of %s must be on nodes, and %s", pods(want.Of(len(s.pods))), s.ref, are(placed))))
	}
}

// judgeNodes judges the nodes that pods are on.
func (s *subject) judgeNodes() {
	e := s.expect
	check := func(path []string, what string, fits func(*corev1.Node) (string, bool)) {
		s.judged()
		var wrong []string
		for _, p := range s.placedPods() {
			if has, ok := fits(s.node(p.After)); !ok {
				wrong = append(wrong, fmt.Sprintf("%s is on %s (%s)", p.Pod.Name, p.After, has))
			}
		}
		if len(wrong) > 0 {
			s.fail(path, s.origins(byNodes...), "pods of %s must be %s: %s", s.ref, what, listed(wrong))
		}
	}
	among := func(list []string, of func(*corev1.Node) string) func(*corev1.Node) (string, bool) {
		return func(n *corev1.Node) (string, bool) {
			has := of(n)
			return orNothing(has), slices.Contains(list, has)
		}
	}
	if len(e.Zones) > 0 {
		check(s.path("zones"), "in zones "+strings.Join(e.Zones, ", "), among(e.Zones, func(n *corev1.Node) string { return n.Labels[corev1.LabelTopologyZone] }))
	}
	if len(e.Pools) > 0 {
		check(s.path("pools"), "in pools "+strings.Join(e.Pools, ", "), among(e.Pools, s.poolOf))
	}
	if len(e.Nodes) > 0 {
		check(s.path("nodes"), "on nodes "+strings.Join(e.Nodes, ", "), among(e.Nodes, func(n *corev1.Node) string { return n.Name }))
	}
	for _, key := range slices.Sorted(maps.Keys(e.NodeLabels)) {
		check(s.path("nodeLabels", key), fmt.Sprintf("on nodes with %s=%s", key, strings.Join(e.NodeLabels[key], "|")),
			among(e.NodeLabels[key], func(n *corev1.Node) string { return n.Labels[key] }))
	}
}

func orNothing(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

// node returns a node of the outcome.
func (s *subject) node(name string) *corev1.Node {
	if n := s.nodes[name]; n != nil {
		return n
	}
	return &corev1.Node{} // lost, and with it the pod
}

// poolOf is the pool of the node; one that the scenario added is in that of the node
// which it is like.
func (s *subject) poolOf(n *corev1.Node) string {
	if pool := s.pools.Of(n); pool != "" {
		return pool
	}
	like, _, added := strings.Cut(n.Name, "-new-")
	if !added {
		return ""
	}
	if s.templates[like] != nil {
		return like
	}
	return s.pools[like]
}

// perDomain counts the placed pods in the domains of a topology.
func (s *subject) perDomain(topology string) map[string]int {
	counts := map[string]int{}
	for _, p := range s.placedPods() {
		counts[s.node(p.After).Labels[s.key(topology)]]++
	}
	return counts
}

func (s *subject) judgePerDomain() {
	for _, topology := range slices.Sorted(maps.Keys(s.expect.PerDomain)) {
		s.judged()
		want, has := maps.Clone(s.expect.PerDomain[topology]), s.perDomain(topology)
		maps.DeleteFunc(want, func(_ string, n int) bool { return n == 0 })
		if !maps.Equal(want, has) {
			s.fail(s.path("perDomain", topology), s.origins(slices.Concat(bySpread, byNodes)...), "pods of %s must be %s, and are %s", s.ref, counted(want), counted(has))
		}
	}
}

// judgeSkew judges by how many pods the domains differ. Those count whose nodes the
// pods may run on, by their own node affinity and tolerations.
func (s *subject) judgeSkew() {
	for _, topology := range slices.Sorted(maps.Keys(s.expect.MaxSkew)) {
		s.judged()
		counts := s.perDomain(topology)
		pod := s.placedPods()[0].Pod
		for _, n := range s.outcome.Nodes {
			if domain := n.Labels[s.key(topology)]; domain != "" && preview.MayRun(pod, n) {
				counts[domain] += 0
			}
		}
		least, most := -1, 0
		for _, n := range counts {
			most = max(most, n)
			if least < 0 || n < least {
				least = n
			}
		}
		if skew := most - least; skew > s.expect.MaxSkew[topology] {
			s.fail(s.path("maxSkew", topology), s.origins(bySpread...), "pods of %s may differ by %d between the domains of %s, and differ by %d: %s", s.ref, s.expect.MaxSkew[topology], topology, skew, counted(counts))
		}
	}
}

// others are the placed pods of another workload.
func (s *subject) others(said string) []simulate.Pod {
	refs := s.targets(nil, said)
	var found []simulate.Pod
	for _, p := range s.outcome.Pods {
		if refs[p.Workload] {
			found = append(found, p)
		}
	}
	return placedOf(found)
}

// neighbour returns the pod's domain, and which of the others is the first in it; -1
// if none is.
func (s *subject) neighbour(p simulate.Pod, others []simulate.Pod, topology string) (domain string, i int) {
	key := s.key(topology)
	domain = s.node(p.After).Labels[key]
	return domain, slices.IndexFunc(others, func(o simulate.Pod) bool {
		return o.Pod.Name != p.Pod.Name && domain != "" && s.node(o.After).Labels[key] == domain
	})
}

func (s *subject) judgeApart() {
	for _, said := range slices.Sorted(maps.Keys(s.expect.Apart)) {
		s.judged()
		topology := s.expect.Apart[said]
		at := s.path("apart", said)
		others := s.others(said)
		if len(others) == 0 {
			s.fail(at, nil, "no pod of %s is on a node, so that nothing is kept apart from it", said)
			continue
		}
		var wrong []string
		for _, p := range s.placedPods() {
			if domain, i := s.neighbour(p, others, topology); i >= 0 {
				wrong = append(wrong, fmt.Sprintf("%s and %s are both in %s", p.Pod.Name, others[i].Pod.Name, domain))
			}
		}
		if len(wrong) > 0 {
			s.fail(at, s.origins(byPods...), "pods of %s must share no %s with %s: %s", s.ref, topology, said, listed(wrong))
		}
	}
}

func (s *subject) judgeTogether() {
	for _, said := range slices.Sorted(maps.Keys(s.expect.Together)) {
		s.judged()
		topology := s.expect.Together[said]
		at := s.path("together", said)
		others := s.others(said)
		var wrong []string
		for _, p := range s.placedPods() {
			if domain, i := s.neighbour(p, others, topology); i < 0 {
				wrong = append(wrong, fmt.Sprintf("%s is in %s", p.Pod.Name, orNothing(domain)))
			}
		}
		if len(wrong) > 0 {
			s.fail(at, s.origins(byPods...), "pods of %s must each share their %s with %s: %s", s.ref, topology, said, listed(wrong))
		}
	}
}
