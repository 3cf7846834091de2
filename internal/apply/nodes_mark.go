package apply

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// The annotations on a node that hold which of its taints and labels are ours: a
// JSON map from the label of a set to them. Taints are one list to the API
// server, with no owner for each, and a label's owner is only whoever wrote it
// last, so we keep the books ourselves.
const (
	taintsAnnotation = "kubectl-sched.github.io/taints"
	labelsAnnotation = "kubectl-sched.github.io/labels"
)

// Mark is what a pool puts on its nodes: a taint, or a label.
type Mark struct {
	// Taint is the taint; of a label it has no key.
	Taint corev1.Taint `json:"taint,omitzero"`
	// Label is the key of the label, Value its value.
	Label string `json:"label,omitempty"`
	Value string `json:"value,omitempty"`
}

// String names the mark: "taint pool=gpu:NoSchedule", "label class=gpu".
func (m Mark) String() string {
	if m.Label != "" {
		return "label " + m.Label + "=" + m.Value
	}
	return "taint " + m.Taint.ToString()
}

// key is what no two marks of a node share.
func (m Mark) key() string {
	if m.Label != "" {
		return "label " + m.Label
	}
	return "taint " + m.Taint.Key + ":" + string(m.Taint.Effect)
}

// is reports whether two marks are the same, but for the age of a taint.
func (m Mark) is(o Mark) bool {
	return m.key() == o.key() && m.Value == o.Value && m.Taint.Value == o.Taint.Value
}

// field is where a node has the mark, as the API server names it.
func (m Mark) field() string {
	if m.Label != "" {
		return ".metadata.labels[" + m.Label + "]"
	}
	return ".spec.taints"
}

// on returns the mark that the node has in the place of this one.
func (m Mark) on(node *corev1.Node) (Mark, bool) {
	if m.Label != "" {
		value, ok := node.Labels[m.Label]
		return Mark{Label: m.Label, Value: value}, ok
	}
	i := slices.IndexFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&m.Taint) })
	if i < 0 {
		return Mark{}, false
	}
	return Mark{Taint: node.Spec.Taints[i]}, true
}

// put puts the mark on the node, in the place of what is there.
func (m Mark) put(node *corev1.Node) {
	if m.Label != "" {
		if node.Labels == nil {
			node.Labels = map[string]string{}
		}
		node.Labels[m.Label] = m.Value
		return
	}
	m.remove(node)
	node.Spec.Taints = append(node.Spec.Taints, m.Taint)
}

// remove takes what is in the mark's place off the node.
func (m Mark) remove(node *corev1.Node) {
	if m.Label != "" {
		delete(node.Labels, m.Label)
		return
	}
	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&m.Taint) })
}

// holding is a mark of ours on a node, and what was in its place before us.
type holding struct {
	mark   Mark
	before *Mark
}

// books are what is ours on one node, by the label of the set.
type books map[string][]holding

// of returns what is the set's in the place of the mark.
func (b books) of(set Set, m Mark) *holding {
	for i := range b[set.Label()] {
		if h := &b[set.Label()][i]; h.mark.key() == m.key() {
			return h
		}
	}
	return nil
}

// enter notes a mark as the set's.
func (b books) enter(set Set, m Mark, before *Mark) {
	if h := b.of(set, m); h != nil {
		// What was there before us stays what it was.
		h.mark = m
		return
	}
	b[set.Label()] = append(b[set.Label()], holding{m, before})
}

// strike takes a mark out of the set's.
func (b books) strike(set Set, m Mark) {
	rest := slices.DeleteFunc(b[set.Label()], func(h holding) bool { return h.mark.key() == m.key() })
	if b[set.Label()] = rest; len(rest) == 0 {
		delete(b, set.Label())
	}
}

// bookedTaint and bookedLabel are how the annotations have a holding.
type bookedTaint struct {
	corev1.Taint
	Before *corev1.Taint `json:"before,omitempty"`
}

type bookedLabel struct {
	Value  string  `json:"value"`
	Before *string `json:"before,omitempty"`
}

// booksOf reads the annotations. One that cannot be read counts as empty: then
// nothing is ours, and nothing is taken away.
func booksOf(node *corev1.Node) books {
	b := books{}
	var taints map[string][]bookedTaint
	if json.Unmarshal([]byte(node.Annotations[taintsAnnotation]), &taints) == nil {
		for set, list := range taints {
			for _, t := range list {
				h := holding{mark: Mark{Taint: t.Taint}}
				if t.Before != nil {
					h.before = &Mark{Taint: *t.Before}
				}
				b[set] = append(b[set], h)
			}
		}
	}
	var labels map[string]map[string]bookedLabel
	if json.Unmarshal([]byte(node.Annotations[labelsAnnotation]), &labels) == nil {
		for set, byKey := range labels {
			for _, key := range slices.Sorted(maps.Keys(byKey)) {
				h := holding{mark: Mark{Label: key, Value: byKey[key].Value}}
				if before := byKey[key].Before; before != nil {
					h.before = &Mark{Label: key, Value: *before}
				}
				b[set] = append(b[set], h)
			}
		}
	}
	return b
}

// keep writes the books into the node's annotations.
func (b books) keep(node *corev1.Node) error {
	taints, labels := map[string][]bookedTaint{}, map[string]map[string]bookedLabel{}
	for set, list := range b {
		for _, h := range list {
			if h.mark.Label == "" {
				t := bookedTaint{Taint: h.mark.Taint}
				if h.before != nil {
					t.Before = &h.before.Taint
				}
				taints[set] = append(taints[set], t)
				continue
			}
			if labels[set] == nil {
				labels[set] = map[string]bookedLabel{}
			}
			l := bookedLabel{Value: h.mark.Value}
			if h.before != nil {
				l.Before = &h.before.Value
			}
			labels[set][h.mark.Label] = l
		}
	}
	for annotation, value := range map[string]any{taintsAnnotation: taints, labelsAnnotation: labels} {
		if annotation == taintsAnnotation && len(taints) == 0 || annotation == labelsAnnotation && len(labels) == 0 {
			delete(node.Annotations, annotation)
			continue
		}
		text, err := json.Marshal(value)
		if err != nil {
			return fmt.Errorf("node %s: encode what is ours on it: %w", node.Name, err)
		}
		if node.Annotations == nil {
			node.Annotations = map[string]string{}
		}
		node.Annotations[annotation] = string(text)
	}
	return nil
}
