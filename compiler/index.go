package compiler

import (
	"slices"

	"github.com/kubectl-sched/kubectl-sched/internal/workload"
)

// index finds the rules that may select a template without trying them all:
// first by namespace and kind, then, where a rule demands a literal name or
// label, by that.
type index struct {
	rules   []*rule
	facts   facts
	buckets map[bucketKey]*bucket
}

type bucketKey struct{ namespace, group, kind string }

// bucket holds the rules that can select in one namespace and of one kind.
type bucket struct {
	anchored map[anchor][]int
	rest     []int
	// uncertain holds the rules for which the namespace's labels decide and are
	// not known.
	uncertain map[int]bool
}

// anchor is one literal that a rule demands: of the name, a label or a pod
// label.
type anchor struct {
	on         byte
	key, value string
}

func newIndex(f facts, rules []*rule) *index {
	return &index{rules: rules, facts: f, buckets: map[bucketKey]*bucket{}}
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
	b := &bucket{anchored: map[anchor][]int{}, uncertain: map[int]bool{}}
	for i, r := range x.rules {
		if !r.selects.kind(k.group, k.kind) {
			continue
		}
		switch r.selects.namespace(x.facts, k.namespace) {
		case no:
			continue
		case unknown:
			b.uncertain[i] = true
		case yes:
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
	b := x.bucket(bucketKey{w.Namespace, w.Group, w.Kind})
	candidates := slices.Clone(b.rest)
	if len(b.anchored) > 0 {
		candidates = append(candidates, b.anchored[anchor{on: 'n', value: w.Name}]...)
		for k, v := range t.Labels {
			candidates = append(candidates, b.anchored[anchor{'p', k, v}]...)
		}
		for k, v := range w.Labels {
			candidates = append(candidates, b.anchored[anchor{'l', k, v}]...)
		}
	}
	slices.Sort(candidates)
	for _, i := range slices.Compact(candidates) {
		v := x.rules[i].selects.rest(x.facts, w, t)
		if b.uncertain[i] {
			v = v.and(unknown)
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
