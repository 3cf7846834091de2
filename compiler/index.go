package compiler

import (
	"slices"

	"github.com/kubectl-sched/kubectl-sched/internal/workload"
)

// index finds the rules that may select a template without trying them all: those that
// name the namespace or demand a literal (of the name or a label), and the few others.
type index struct {
	rules   []*rule
	facts   facts
	buckets map[bucketKey]*bucket
	// named has the rules that name their namespaces, by these.
	named map[string][]int
	// anchored has those of the others that demand a literal, and anywhere the rest.
	anchored map[anchor][]int
	anywhere []int
}

type bucketKey struct{ namespace, group, kind string }

// bucket holds the rules that can select in one namespace and of one kind.
type bucket struct {
	anchored map[anchor][]int
	rest     []int
}

// anchor is one literal that a rule demands: of the name, a label or a pod
// label.
type anchor struct {
	on         byte
	key, value string
}

func newIndex(f facts, rules []*rule) *index {
	x := &index{rules: rules, facts: f, buckets: map[bucketKey]*bucket{}, named: map[string][]int{}, anchored: map[anchor][]int{}}
	for i, r := range rules {
		switch literal := r.selects.namespaces != nil && allLiteral(r.selects.namespaces); {
		case literal:
			for _, p := range r.selects.namespaces {
				x.named[p.text] = append(x.named[p.text], i)
			}
		case r.anchors == nil:
			x.anywhere = append(x.anywhere, i)
		default:
			for _, a := range r.anchors {
				x.anchored[a] = append(x.anchored[a], i)
			}
		}
	}
	return x
}

// anchors returns literals of which the selection demands one, or nil.
func (s *selection) anchors() []anchor {
	literals := func(on byte, key string, ps []pattern) []anchor {
		if len(ps) == 0 || !allLiteral(ps) {
			return nil
		}
		out := make([]anchor, len(ps))
		for i, p := range ps {
			out[i] = anchor{on, key, p.text}
		}
		return out
	}
	if a := literals('n', "", s.names); a != nil {
		return a
	}
	for _, l := range s.podLabels {
		if a := literals('p', l.key, l.values); a != nil {
			return a
		}
	}
	for _, l := range s.labels {
		if a := literals('l', l.key, l.values); a != nil {
			return a
		}
	}
	return nil
}

func (x *index) bucket(k bucketKey) *bucket {
	if b, ok := x.buckets[k]; ok {
		return b
	}
	b := &bucket{anchored: map[anchor][]int{}}
	possible := slices.Concat(x.named[k.namespace], x.anywhere)
	slices.Sort(possible)
	for _, i := range slices.Compact(possible) {
		r := x.rules[i]
		if x.within(r, k) == no {
			continue
		}
		if r.anchors == nil {
			b.rest = append(b.rest, i)
		}
		for _, a := range r.anchors {
			b.anchored[a] = append(b.anchored[a], i)
		}
	}
	x.buckets[k] = b
	return b
}

// matching returns the rules that select the template, in their order, and
// those for which that depends on a namespace whose labels are not known.
func (x *index) matching(w *workload.Workload, t *workload.Template) (selected, uncertain []*rule) {
	k := bucketKey{w.Namespace, w.Group, w.Kind}
	b := x.bucket(k)
	candidates := slices.Clone(b.rest)
	find := func(a anchor) {
		candidates = append(candidates, b.anchored[a]...)
		candidates = append(candidates, x.anchored[a]...)
	}
	find(anchor{on: 'n', value: w.Name})
	for key, v := range t.Labels {
		find(anchor{'p', key, v})
	}
	for key, v := range w.Labels {
		find(anchor{'l', key, v})
	}
	slices.Sort(candidates)
	for _, i := range slices.Compact(candidates) {
		v := x.within(x.rules[i], k)
		if v != no { // the rest takes longer to tell
			v = v.and(x.rules[i].selects.rest(x.facts, w, t))
		}
		switch v {
		case yes:
			selected = append(selected, x.rules[i])
		case unknown:
			uncertain = append(uncertain, x.rules[i])
		case no:
		}
	}
	return selected, uncertain
}

// within says whether the rule selects in the namespace and of the kind.
func (x *index) within(r *rule, k bucketKey) verdict {
	if !r.selects.kind(k.group, k.kind) {
		return no
	}
	return r.selects.namespace(x.facts, k.namespace)
}
