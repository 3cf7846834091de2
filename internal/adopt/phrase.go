package adopt

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-sched/kubectl-sched/compiler/nodeexpr"
	"github.com/kubectl-sched/kubectl-sched/policy"
)

// rank is how well a phrase says a piece.
type rank int

const (
	byIntent rank = iota
	byRaw
	// unsaid leaves the piece in the manifest alone.
	unsaid
)

// phrase is one way to say a piece.
type phrase struct {
	rank rank
	// key is equal for phrases that say the same; empty for one that says nothing
	// by itself, because another says it too.
	key string
	// add puts it into a policy. It reports false, and adds nothing, if the policy
	// says something else in the place already.
	add func(*policy.Policy) bool
	// slug is for the names of policies, says for people.
	slug, says string
	// why is why no intent says it.
	why string
	// soft says that it only counts, and binds nobody.
	soft bool
}

func intent(slug, says string, soft bool, add func(*policy.Policy) bool) phrase {
	p := phrase{rank: byIntent, add: add, slug: slug, says: says, soft: soft}
	p.key = keyOf(add)
	return p
}

// keyOf is what a policy is that says nothing else.
func keyOf(add func(*policy.Policy) bool) string {
	var p policy.Policy
	add(&p)
	return asJSON(p)
}

func leave(why string) phrase { return phrase{rank: unsaid, why: why} }

// notReturned is why what was tried is not said after all.
const notReturned = "the compiler does not give it back as it was, because something else in the manifest says it, or more, already"

// phrasesFor returns the ways to say the piece, the best first.
func (w *work) phrasesFor(t *template, p *piece) []phrase {
	var out []phrase
	why := ""
	switch v := p.wanted.value.(type) {
	case selectorLabel:
		why = "compiled from nodes.require it would become node affinity; --modernize says it so"
		if _, affinity := t.t.PathOf("affinity.nodeAffinity"); !affinity {
			// Of a kind without node affinity nodes.require makes a nodeSelector.
			out = append(out, require(nodeexpr.Requirement{Key: nodeexpr.Label(v.Key), Operator: corev1.NodeSelectorOpIn, Values: []string{v.Value}})...)
		}
	case nodeexpr.Requirement:
		out = append(out, w.requireByPool(t, v)...)
		out = append(out, require(v)...)
		why = "nodes.require does not give it back as it was"
	case *corev1.NodeSelector:
		out, why = alternatives(v), aChoice
	case corev1.PreferredSchedulingTerm:
		out, why = preferred(v)
	case podTerm:
		out, why = colocation(t, p.sort == sortApart, v)
	case corev1.TopologySpreadConstraint:
		out, why = spread(t, v)
	case corev1.Toleration:
		out = append(out, w.tolerateByPool(t, v)...)
		more, reason := tolerate(v)
		out, why = append(out, more...), reason
	case priority:
		out, why = classOf(v)
	case string:
		switch p.sort {
		case sortScheduler:
			why = "which scheduler places the pods is no intent: policies with pack, balance and others choose a profile"
		case sortGate:
			why = "it is somebody else's gate, who must open it; gates of a policy are opened by the bundled scheduler"
		default:
			why = "priority says preemption together with a class"
		}
	}
	out = append(out, raw(p.wanted, why)...)
	return append(out, leave(notReturned))
}

// raw says the piece as it stands, if raw takes it.
func raw(p *piece, why string) []phrase {
	var spec corev1.PodSpec
	affinity := func() *corev1.Affinity { spec.Affinity = &corev1.Affinity{}; return spec.Affinity }
	slug := ""
	switch v := p.value.(type) {
	case selectorLabel:
		spec.NodeSelector = map[string]string{v.Key: v.Value}
		slug = "on-" + demand{key: nodeexpr.Label(v.Key), values: policy.Values{v.Value}}.name()
	case nodeexpr.Requirement:
		affinity().NodeAffinity = &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{termOf(v)}}}
		slug = "node-affinity"
	case *corev1.NodeSelector:
		affinity().NodeAffinity, slug = &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: v}, "node-affinity"
	case corev1.PreferredSchedulingTerm:
		affinity().NodeAffinity, slug = &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{v}}, "node-preference"
	case podTerm:
		v.putInto(affinity(), p.sort == sortApart)
		if slug = "together"; p.sort == sortApart {
			slug = "apart"
		}
	case corev1.TopologySpreadConstraint:
		spec.TopologySpreadConstraints, slug = []corev1.TopologySpreadConstraint{v}, "spread"
	case corev1.Toleration:
		spec.Tolerations, slug = []corev1.Toleration{v}, "tolerate"
	case priority:
		spec.PriorityClassName, slug = v.Class, "priority"
		if v.Preemption != "" {
			spec.PreemptionPolicy = new(corev1.PreemptionPolicy(v.Preemption))
		}
	case string:
		switch p.sort {
		case sortScheduler:
			spec.SchedulerName, slug = v, "scheduler"
		case sortGate:
			spec.SchedulingGates, slug = []corev1.PodSchedulingGate{{Name: v}}, "gate"
		default:
			spec.PreemptionPolicy, slug = new(corev1.PreemptionPolicy(v)), "preemption"
		}
	}
	fragment, err := fragmentOf(&spec)
	if err != nil {
		return nil
	}
	add := func(policy *policy.Policy) bool { return addRaw(policy, fragment) }
	return []phrase{{rank: byRaw, key: keyOf(add), add: add, slug: slug, says: fmt.Sprintf("raw %s: %s", p.field(), p.describe()), why: why}}
}

// fragmentOf returns what the pod spec says as plain JSON values.
func fragmentOf(spec *corev1.PodSpec) (map[string]any, error) {
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(spec)
	if err != nil {
		return nil, err
	}
	delete(out, "containers") // which every pod spec has, and a fragment has not
	return out, nil
}

// addRaw joins a fragment with the policy's raw.pod: maps unite, lists go on. It
// adds nothing if the two say different things in one place.
func addRaw(p *policy.Policy, fragment map[string]any) bool {
	have := map[string]any{}
	if p.Raw != nil {
		have = p.Raw.Pod
	}
	joined, ok := unite(have, plainCopy(fragment))
	if !ok {
		return false
	}
	p.Raw = &policy.Raw{Pod: joined.(map[string]any)}
	return true
}

func plainCopy(v any) any {
	var out any
	if err := json.Unmarshal([]byte(asJSON(v)), &out); err != nil {
		return v
	}
	return out
}

// single are the lists of a fragment that are one statement.
var single = map[string]bool{"nodeSelectorTerms": true}

func unite(a, b any) (any, bool) {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok {
			return nil, false
		}
		out := map[string]any{}
		for k, v := range x {
			out[k] = v
		}
		for k, v := range y {
			have, there := out[k]
			if !there {
				out[k] = v
				continue
			}
			if single[k] {
				return nil, false
			}
			joined, ok := unite(have, v)
			if !ok {
				return nil, false
			}
			out[k] = joined
		}
		return out, true
	case []any:
		y, ok := b.([]any)
		return append(append([]any{}, x...), y...), ok
	default:
		return a, asJSON(a) == asJSON(b)
	}
}

// termOf returns the requirement as a term of the API.
func termOf(r nodeexpr.Requirement) corev1.NodeSelectorTerm {
	api := []corev1.NodeSelectorRequirement{{Key: r.Key.Name, Operator: r.Operator, Values: r.Values}}
	if r.Key.Field {
		return corev1.NodeSelectorTerm{MatchFields: api}
	}
	return corev1.NodeSelectorTerm{MatchExpressions: api}
}
