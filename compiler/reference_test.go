package compiler_test

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
	"github.com/kubectl-sched/kubectl-sched/policy"
)

// reference is what the language means, said without node affinity: it asks of
// one node at a time whether it is what a policy describes. It shares no code
// with the compiler.
type reference struct {
	placement *policy.Placement
	nodes     []capability.Node
}

func (r reference) inPool(name string, n capability.Node) bool {
	return r.meetsAll(r.placement.Pool(name).Nodes, n)
}

// has says whether the label of a node is any of the values.
func has(labels map[string]string, key string, values []string) bool {
	got, there := labels[key]
	return slices.ContainsFunc(values, func(want string) bool {
		switch {
		case !there:
			return false
		case want == "*":
			return true
		case strings.HasPrefix(want, ">"), strings.HasPrefix(want, "<"):
			bound, _ := strconv.Atoi(want[1:])
			n, err := strconv.Atoi(got)
			return err == nil && (want[0] == '>' && n > bound || want[0] == '<' && n < bound)
		}
		return got == want
	})
}

// statements says of each thing that a NodeTerm states by itself whether the
// node meets it; the pools are one choice, or one each.
func (r reference) statements(t policy.NodeTerm, n capability.Node, eachPool bool) []bool {
	var out []bool
	if len(t.Pools) > 0 {
		some := false
		for _, p := range t.Pools {
			in := r.inPool(p, n)
			some = some || in
			if eachPool {
				out = append(out, in)
			}
		}
		if !eachPool {
			out = append(out, some)
		}
	}
	for k, v := range t.Labels {
		out = append(out, has(n.Labels, k, v))
	}
	for key, values := range map[string][]string{
		"topology.kubernetes.io/zone": t.Zones, "topology.kubernetes.io/region": t.Regions,
		"kubernetes.io/arch": t.Arch, "kubernetes.io/os": t.OS,
	} {
		if len(values) > 0 {
			out = append(out, has(n.Labels, key, values))
		}
	}
	if len(t.Names) > 0 {
		out = append(out, slices.Contains(t.Names, n.Name))
	}
	return out
}

func (r reference) meetsAll(t policy.NodeTerm, n capability.Node) bool {
	return !slices.Contains(r.statements(t, n, false), false)
}

func (r reference) meetsAny(t policy.NodeTerm, n capability.Node) bool {
	return slices.Contains(r.statements(t, n, true), true)
}

// selects says whether the policy lets its pods onto the node, taints aside.
func (r reference) selects(p policy.Policy, n capability.Node) bool {
	if p.Nodes != nil {
		if p.Nodes.Require != nil && !r.meetsAll(*p.Nodes.Require, n) || p.Nodes.Forbid != nil && r.meetsAny(*p.Nodes.Forbid, n) {
			return false
		}
	}
	if p.Tolerate != nil {
		for _, name := range p.Tolerate.ExceptPools {
			if r.inPool(name, n) {
				return false
			}
		}
	}
	return true
}

// needs lists the pools that a required term sends pods to, those within whose
// description others stand included.
func (r reference) needs(names []string) []string {
	var out []string
	for _, name := range names {
		out = append(append(out, name), r.needs(r.placement.Pool(name).Nodes.Pools)...)
	}
	return out
}

func (r reference) isPoolTaint(name string, t corev1.Taint) bool {
	p := r.placement.Pool(name)
	return p.Dedicated != nil && p.Dedicated.Taint.Key == t.Key && *p.Dedicated.Taint.Value == t.Value && p.Dedicated.Taint.Effect == string(t.Effect)
}

// bears says whether the policy tolerates the taint.
func (r reference) bears(p policy.Policy, t corev1.Taint) bool {
	var pools []string
	if p.Nodes != nil && p.Nodes.Require != nil {
		pools = r.needs(p.Nodes.Require.Pools)
	}
	if p.Tolerate != nil {
		pools = append(pools, r.needs(p.Tolerate.Pools)...)
		for _, want := range p.Tolerate.Taints {
			if want.Key == t.Key && (want.Value == nil || *want.Value == t.Value) && (want.Effect == "" || want.Effect == string(t.Effect)) {
				return true
			}
		}
		if p.Tolerate.All && !slices.ContainsFunc(p.Tolerate.ExceptPools, func(name string) bool { return r.isPoolTaint(name, t) }) {
			return true
		}
	}
	return slices.ContainsFunc(pools, func(name string) bool { return r.isPoolTaint(name, t) })
}

// score is what the policy's preferences give to the node.
func (r reference) score(p policy.Policy, n capability.Node) int64 {
	if p.Nodes == nil {
		return 0
	}
	total := 0
	if pref := p.Nodes.Prefer; pref != nil {
		if len(r.statements(pref.NodeTerm, n, false)) > 0 && r.meetsAll(pref.NodeTerm, n) {
			total += pref.Weight
		}
		if best := r.rank(pref.Ranked, n); best < len(pref.Ranked) {
			total += pref.Weight * (len(pref.Ranked) - best) / len(pref.Ranked)
		}
	}
	if pref := p.Nodes.Disfavor; pref != nil {
		for _, met := range r.statements(pref.NodeTerm, n, true) {
			if !met {
				total += pref.Weight
			}
		}
		if len(pref.Ranked) > 0 {
			total += pref.Weight * r.rank(pref.Ranked, n) / len(pref.Ranked)
		}
	}
	return int64(total)
}

func (r reference) rank(ranked []policy.NodeTerm, n capability.Node) int {
	for i, t := range ranked {
		if r.meetsAll(t, n) {
			return i
		}
	}
	return len(ranked)
}

func nodeOf(n capability.Node) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: n.Labels}, Spec: corev1.NodeSpec{Taints: n.Taints}}
}
