package adopt

import (
	"encoding/json"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-sched/kubectl-sched/compiler/nodeexpr"
	"github.com/kubectl-sched/kubectl-sched/compiler/nodelabel"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// sort is what a piece is a piece of.
type sort string

// The sorts of pieces, by the field of the pod spec that they stand in.
const (
	sortSelector   sort = "nodeSelector"
	sortRequired   sort = "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
	sortTerms      sort = "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
	sortPreferred  sort = "affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution"
	sortTogether   sort = "affinity.podAffinity"
	sortApart      sort = "affinity.podAntiAffinity"
	sortSpread     sort = "topologySpreadConstraints"
	sortToleration sort = "tolerations"
	sortPriority   sort = "priorityClassName"
	sortPreemption sort = "preemptionPolicy"
	sortScheduler  sort = "schedulerName"
	sortGate       sort = "schedulingGates"
)

// in reports whether pieces of the sort stand in the field, as effects name it.
func (s sort) in(field string) bool {
	return strings.HasPrefix(string(s), field) || strings.HasPrefix(field, string(s))
}

// piece is the least of a template's placement that is said by itself: a label of
// a nodeSelector, a requirement, a term, a toleration.
type piece struct {
	sort sort
	// value is the API's: selectorLabel, nodeexpr.Requirement, nodeexpr.Expr,
	// corev1.PreferredSchedulingTerm, podTerm, TopologySpreadConstraint, Toleration,
	// priority, or a string.
	value any
	// key is equal for pieces that say the same.
	key string
	// want is what shall come back: the key, or under Modernize what is in its
	// place. wanted is the piece with that key.
	want   string
	wanted *piece
	// change says what Modernize makes of it; empty for nothing.
	change string
	// at is where it was found.
	at diag.Range

	// phrases are the ways to say it, the best first; the choice is an index.
	phrases []phrase
	choice  int
}

// selectorLabel is a label of a nodeSelector.
type selectorLabel struct {
	Key, Value string
}

// podTerm is a term of pod affinity or anti-affinity.
type podTerm struct {
	Required bool
	Weight   int32
	Term     corev1.PodAffinityTerm
}

// priority is the class with the preemption policy beside it.
type priority struct {
	Class, Preemption string
}

func newPiece(s sort, value any) *piece {
	p := &piece{sort: s, value: value}
	p.key = string(s) + " " + asJSON(canonical(value))
	p.want, p.wanted = p.key, p
	return p
}

func asJSON(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return err.Error() // The API's types always have a JSON form.
	}
	return string(data)
}

// pieces takes placement apart.
func pieces(p workload.PodFields) []*piece {
	var out []*piece
	add := func(s sort, value any) { out = append(out, newPiece(s, value)) }
	for _, k := range sortedKeys(p.NodeSelector) {
		add(sortSelector, selectorLabel{k, p.NodeSelector[k]})
	}
	if a := p.Affinity; a != nil {
		if a.NodeAffinity != nil {
			out = append(out, requiredPieces(a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution)...)
			for _, t := range a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
				add(sortPreferred, t)
			}
		}
		pods := func(s sort, required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
			for _, t := range required {
				add(s, podTerm{Required: true, Term: t})
			}
			for _, t := range preferred {
				add(s, podTerm{Weight: t.Weight, Term: t.PodAffinityTerm})
			}
		}
		if t := a.PodAffinity; t != nil {
			pods(sortTogether, t.RequiredDuringSchedulingIgnoredDuringExecution, t.PreferredDuringSchedulingIgnoredDuringExecution)
		}
		if t := a.PodAntiAffinity; t != nil {
			pods(sortApart, t.RequiredDuringSchedulingIgnoredDuringExecution, t.PreferredDuringSchedulingIgnoredDuringExecution)
		}
	}
	for _, c := range p.TopologySpreadConstraints {
		add(sortSpread, c)
	}
	for _, t := range p.Tolerations {
		add(sortToleration, t)
	}
	preemption := ""
	if p.PreemptionPolicy != nil {
		preemption = string(*p.PreemptionPolicy)
	}
	switch {
	case p.PriorityClassName != "":
		add(sortPriority, priority{p.PriorityClassName, preemption})
	case preemption != "":
		add(sortPreemption, preemption)
	}
	if p.SchedulerName != "" && p.SchedulerName != corev1.DefaultSchedulerName {
		add(sortScheduler, p.SchedulerName)
	}
	for _, g := range p.SchedulingGates {
		add(sortGate, g.Name)
	}
	return out
}

// requiredPieces takes required node affinity apart: a single term, simplified as
// the compiler does it, into its requirements; a choice of several stays whole.
func requiredPieces(s *corev1.NodeSelector) []*piece {
	if s == nil {
		return nil
	}
	e, err := nodeexpr.FromSelector(s)
	if err != nil {
		return []*piece{newPiece(sortTerms, s)}
	}
	if e.IsTrue() {
		return nil
	}
	terms := e.Terms()
	if len(terms) != 1 {
		return []*piece{newPiece(sortTerms, &corev1.NodeSelector{NodeSelectorTerms: terms})}
	}
	var out []*piece
	for _, r := range nodeexpr.Requirements(terms[0]) {
		out = append(out, newPiece(sortRequired, r))
	}
	return out
}

// read takes the template's placement apart, and finds out what is no matter of a
// policy.
func (t *template) read(modernize bool) {
	t.pieces = pieces(t.t.Pods)
	t.setAside()
	for _, p := range t.pieces {
		p.at = t.placeOf(p)
		if modernize {
			p.modernize()
		}
	}
}

// placeOf returns where the template has the piece, or the field that it is in.
func (t *template) placeOf(p *piece) diag.Range {
	field, below := workload.Field(p.sort), []any{}
	switch p.sort {
	case sortSelector:
		below = append(below, p.value.(selectorLabel).Key)
	case sortRequired, sortTerms:
		field, below = workload.NodeAffinity, []any{"requiredDuringSchedulingIgnoredDuringExecution"}
	case sortPreferred:
		field, below = workload.NodeAffinity, []any{"preferredDuringSchedulingIgnoredDuringExecution"}
	default:
	}
	path, ok := t.t.PathOf(field, below...)
	if !ok {
		return t.w.Source.At()
	}
	return t.w.Source.At(path...)
}

// field is the field of the pod spec that the piece stands in, for people.
func (p *piece) field() string {
	switch p.sort {
	case sortRequired, sortTerms:
		return "affinity.nodeAffinity (required)"
	case sortPreferred:
		return "affinity.nodeAffinity (preferred)"
	default:
		return string(p.sort)
	}
}

// modernize replaces what went out of use in what is wanted back.
func (p *piece) modernize() {
	now := func(key string) string {
		if r := nodelabel.Replacement(key); r != "" {
			return r
		}
		return key
	}
	var wanted *piece
	change := ""
	replaced := func(old string) string { return "\"" + old + "\" is out of use; the policy says \"" + now(old) + "\"" }
	switch v := p.value.(type) {
	case selectorLabel:
		wanted = newPiece(sortRequired, nodeexpr.Requirement{Key: nodeexpr.Label(now(v.Key)), Operator: corev1.NodeSelectorOpIn, Values: []string{v.Value}})
		change = "nodeSelector becomes nodes.require, which compiles to required node affinity: the same nodes"
		if now(v.Key) != v.Key {
			change += "; " + replaced(v.Key)
		}
	case nodeexpr.Requirement:
		if old := v.Key.Name; !v.Key.Field && now(old) != old {
			v.Key = nodeexpr.Label(now(old))
			wanted, change = newPiece(p.sort, v), replaced(old)
		}
	case corev1.TopologySpreadConstraint:
		if old := v.TopologyKey; now(old) != old {
			v.TopologyKey = now(old)
			wanted, change = newPiece(p.sort, v), replaced(old)
		}
	case podTerm:
		if old := v.Term.TopologyKey; now(old) != old {
			v.Term.TopologyKey = now(old)
			wanted, change = newPiece(p.sort, v), replaced(old)
		}
	case corev1.Toleration:
		if old := v.Key; now(old) != old {
			v.Key = now(old)
			wanted, change = newPiece(p.sort, v), replaced(old)
		}
	case corev1.PreferredSchedulingTerm:
		v = *v.DeepCopy()
		for i := range v.Preference.MatchExpressions {
			if e := &v.Preference.MatchExpressions[i]; now(e.Key) != e.Key {
				change, e.Key = replaced(e.Key), now(e.Key)
			}
		}
		if change != "" {
			wanted = newPiece(p.sort, v)
		}
	}
	if wanted != nil {
		p.want, p.wanted, p.change = wanted.key, wanted, change
	}
}
