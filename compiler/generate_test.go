package compiler_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

const zoneLabel = "topology.kubernetes.io/zone"

// world draws clusters, documents and manifests that have much in common, so
// that they often meet and often clash.
type world struct {
	// numbers lets labels be compared as numbers.
	numbers bool
	pools   []string
}

func (w *world) value(t *rapid.T) string {
	return rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "value")
}

func (w *world) key(t *rapid.T) string {
	return rapid.SampledFrom([]string{"k1", "k2", zoneLabel}).Draw(t, "key")
}

func (w *world) nodes(t *rapid.T) []capability.Node {
	n := rapid.IntRange(1, 6).Draw(t, "nodes")
	out := make([]capability.Node, n)
	for i := range out {
		out[i] = capability.Node{Name: fmt.Sprintf("n%d", i), Labels: map[string]string{"kubernetes.io/hostname": fmt.Sprintf("ip-%d", i)}}
		for _, k := range []string{"k1", "k2", zoneLabel} {
			if rapid.Bool().Draw(t, "has") {
				out[i].Labels[k] = w.value(t)
			}
		}
		if rapid.Bool().Draw(t, "numbered") {
			out[i].Labels["size"] = rapid.SampledFrom([]string{"1", "2", "3", "4", "many", ""}).Draw(t, "size")
		}
		for range rapid.IntRange(0, 2).Draw(t, "taints") {
			out[i].Taints = append(out[i].Taints, w.taint(t))
		}
	}
	return out
}

func (w *world) taint(t *rapid.T) corev1.Taint {
	return corev1.Taint{
		Key:    rapid.SampledFrom([]string{"t1", "t2"}).Draw(t, "taint"),
		Value:  rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, "taintValue"),
		Effect: rapid.SampledFrom([]corev1.TaintEffect{"NoSchedule", "NoExecute", "PreferNoSchedule"}).Draw(t, "effect"),
	}
}

func (w *world) values(t *rapid.T) policy.Values {
	if rapid.IntRange(0, 5).Draw(t, "any") == 0 {
		return policy.Values{"*"}
	}
	return rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), 1, 2, rapid.ID[string]).Draw(t, "values")
}

// nodeTerm draws a description of nodes; exact ones compare no numbers, because
// that has no opposite.
func (w *world) nodeTerm(t *rapid.T, exact bool) policy.NodeTerm {
	var out policy.NodeTerm
	for _, k := range []string{"k1", "k2"} {
		if rapid.IntRange(0, 2).Draw(t, "label") == 0 {
			if out.Labels == nil {
				out.Labels = map[string]policy.Values{}
			}
			out.Labels[k] = w.values(t)
		}
	}
	if w.numbers && !exact && rapid.Bool().Draw(t, "compare") {
		if out.Labels == nil {
			out.Labels = map[string]policy.Values{}
		}
		out.Labels["size"] = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{">1", ">2", "<3", "<2", "4", "many"}), 1, 2, rapid.ID[string]).Draw(t, "sizes")
	}
	if rapid.IntRange(0, 2).Draw(t, "zoned") == 0 {
		out.Zones = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), 1, 2, rapid.ID[string]).Draw(t, "zones")
	}
	if rapid.IntRange(0, 4).Draw(t, "named") == 0 {
		out.Names = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"n0", "n1", "n2", "n9"}), 1, 3, rapid.ID[string]).Draw(t, "names")
	}
	if len(w.pools) > 0 && rapid.Bool().Draw(t, "pooled") {
		out.Pools = w.somePools(t)
	}
	return out
}

func (w *world) somePools(t *rapid.T) []string {
	return rapid.SliceOfNDistinct(rapid.SampledFrom(w.pools), 1, 2, rapid.ID[string]).Draw(t, "pools")
}

func (w *world) placement(t *rapid.T) *policy.Placement {
	out := &policy.Placement{}
	w.pools = nil
	var names []string
	for i := range rapid.IntRange(0, 3).Draw(t, "poolCount") {
		p := policy.Pool{Name: fmt.Sprintf("pool%d", i), Nodes: w.nodeTerm(t, true), Positions: anywhere("pools", i)}
		if len(p.Nodes.Labels)+len(p.Nodes.Zones)+len(p.Nodes.Pools)+len(p.Nodes.Names) == 0 {
			p.Nodes.Zones = []string{"a"}
		}
		if rapid.Bool().Draw(t, "dedicated") {
			taint := w.taint(t)
			p.Dedicated = &policy.Dedicated{Taint: &policy.Taint{Key: taint.Key, Value: &taint.Value, Effect: string(taint.Effect)}}
		}
		out.Pools = append(out.Pools, p)
		names = append(names, p.Name)
		w.pools = names
	}
	for i := range rapid.IntRange(1, 3).Draw(t, "policies") {
		p := policy.Policy{Name: fmt.Sprintf("p%d", i), Level: policy.Mandatory, Nodes: &policy.Nodes{}, Positions: anywhere("policies", i)}
		if rapid.Bool().Draw(t, "require") {
			n := w.nodeTerm(t, false)
			p.Nodes.Require = &n
		}
		if rapid.IntRange(0, 2).Draw(t, "forbid") == 0 {
			n := w.nodeTerm(t, true)
			p.Nodes.Forbid = &n
		}
		if rapid.IntRange(0, 1).Draw(t, "tolerate") == 0 {
			p.Tolerate = w.tolerate(t)
		}
		out.Policies = append(out.Policies, p)
	}
	return out
}

func (w *world) tolerate(t *rapid.T) *policy.Tolerate {
	out := &policy.Tolerate{}
	if len(w.pools) > 0 && rapid.Bool().Draw(t, "toleratePools") {
		out.Pools = w.somePools(t)
	}
	if rapid.Bool().Draw(t, "tolerateTaint") {
		taint := w.taint(t)
		want := policy.Taint{Key: taint.Key}
		if rapid.Bool().Draw(t, "withValue") {
			want.Value = &taint.Value
		}
		if rapid.Bool().Draw(t, "withEffect") {
			want.Effect = string(taint.Effect)
		}
		out.Taints = map[string]policy.Taint{"x": want}
	}
	if rapid.IntRange(0, 3).Draw(t, "all") == 0 {
		out.All = true
		if len(w.pools) > 0 && rapid.Bool().Draw(t, "except") {
			out.ExceptPools = w.somePools(t)
		}
	}
	return out
}

func (w *world) requirement(t *rapid.T) corev1.NodeSelectorRequirement {
	op := rapid.SampledFrom([]corev1.NodeSelectorOperator{"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"}).Draw(t, "op")
	r := corev1.NodeSelectorRequirement{Key: w.key(t), Operator: op}
	switch op {
	case "In", "NotIn":
		r.Values = rapid.SliceOfN(rapid.SampledFrom([]string{"c", "b", "a"}), 1, 3).Draw(t, "values")
	case "Gt", "Lt":
		r.Key, r.Values = "size", []string{rapid.SampledFrom([]string{"0", "1", "2", "3"}).Draw(t, "bound")}
	default:
	}
	return r
}

// pods draws the placement that a manifest has already.
func (w *world) pods(t *rapid.T) workload.PodFields {
	var out workload.PodFields
	if rapid.IntRange(0, 3).Draw(t, "selector") == 0 {
		out.NodeSelector = map[string]string{w.key(t): w.value(t)}
	}
	for range rapid.IntRange(0, 3).Draw(t, "terms") {
		var term corev1.NodeSelectorTerm
		for range rapid.IntRange(0, 3).Draw(t, "requirements") {
			term.MatchExpressions = append(term.MatchExpressions, w.requirement(t))
		}
		if rapid.IntRange(0, 4).Draw(t, "field") == 0 {
			term.MatchFields = []corev1.NodeSelectorRequirement{{
				Key: "metadata.name", Operator: rapid.SampledFrom([]corev1.NodeSelectorOperator{"In", "NotIn"}).Draw(t, "fieldOp"),
				Values: []string{rapid.SampledFrom([]string{"n0", "n1", "n2"}).Draw(t, "name")},
			}}
		}
		if out.Affinity == nil {
			out.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{}}}
		}
		s := out.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		s.NodeSelectorTerms = append(s.NodeSelectorTerms, term)
	}
	for range rapid.IntRange(0, 2).Draw(t, "tolerations") {
		taint := w.taint(t)
		tol := corev1.Toleration{Key: taint.Key, Operator: "Exists", Effect: taint.Effect}
		if rapid.Bool().Draw(t, "equal") {
			tol.Operator, tol.Value = rapid.SampledFrom([]corev1.TolerationOperator{"Equal", ""}).Draw(t, "operator"), taint.Value
		}
		out.Tolerations = append(out.Tolerations, tol)
	}
	return out
}

func anywhere(file string, line int) policy.Positions {
	return policy.Positions{"": diag.At(diag.Pos{File: file, Line: line + 1, Column: 1})}
}
