package yamledit

import (
	"maps"
	"slices"

	"github.com/kubectl-sched/kubectl-sched/internal/workload/plain"
	"github.com/kubectl-sched/kubectl-sched/internal/workload/yamldoc"
)

// place is a node and what it hangs on, which decides how it can be replaced
// as a whole.
type place struct {
	node *yamldoc.Node
	// key is the key of a mapping's value, nil for other nodes.
	key *yamldoc.Node
	// dash is the offset of a block sequence element's "-", where inDash.
	dash   int
	inDash bool
	// inFlow says that the node stands within brackets.
	inFlow bool
}

// gone marks an anchored node that the edits take away.
type gone struct{}

// diff makes the text of a place mean the value target instead of old.
func (w *writer) diff(p place, old, target any) error {
	n := p.node
	if n.Kind == yamldoc.Alias {
		return w.alias(p, old, target)
	}
	if plain.Equal(old, target) {
		return w.keep(p)
	}
	if n.Anchor != "" {
		w.anchors[n] = target
	}
	switch t := target.(type) {
	case map[string]any:
		if m, ok := old.(map[string]any); ok && n.Kind == yamldoc.Mapping && len(t) > 0 && !w.expands(p) {
			if ok, err := w.mapping(p, m, t); ok || err != nil {
				return err
			}
		}
	case []any:
		if list, ok := old.([]any); ok && n.Kind == yamldoc.Sequence && len(t) > 0 && !w.expands(p) {
			if ok, err := w.sequence(p, list, t); ok || err != nil {
				return err
			}
		}
	}
	w.forget(n)
	if n.Anchor != "" && n.Kind == yamldoc.Scalar && !isBlock(target) && !n.Tagged {
		w.anchors[n] = target // the anchor stays where it is
	}
	return w.replaceValue(p, target)
}

// expands reports whether the place is an empty collection written "{}" or
// "[]" that gives way to lines of its own.
func (w *writer) expands(p place) bool {
	n := p.node
	if len(n.Values) > 0 || n.Start != n.Body || string(w.src[n.Start:n.End]) != "{}" && string(w.src[n.Start:n.End]) != "[]" {
		return false
	}
	if w.style.json {
		return w.style.pretty
	}
	return !p.inFlow && p.key != nil && w.colon(p.key)+1 == n.Start && w.src[n.Start-1] == ' '
}

// alias keeps an alias that means the right thing after the edits, and writes
// out any other.
func (w *writer) alias(p place, old, target any) error {
	now := old
	if changed, ok := w.anchors[p.node.Target]; ok {
		now = changed
	} else if w.within(p.node.Target) {
		now = gone{}
	}
	if _, lost := now.(gone); !lost && plain.Equal(now, target) {
		return nil
	}
	return w.replaceValue(p, target)
}

// within reports whether an anchored node holds another that changes; that one
// has itself been seen to change then, so only what is gone matters.
func (w *writer) within(n *yamldoc.Node) bool {
	_, lost := w.anchors[n].(gone)
	return lost
}

// forget marks the anchors within a node that is to be replaced.
func (w *writer) forget(n *yamldoc.Node) {
	if n.Anchor != "" {
		w.anchors[n] = gone{}
	}
	for _, k := range n.Keys {
		w.forget(k)
	}
	for _, v := range n.Values {
		w.forget(v)
	}
}

// keep looks through a node that stays as it is for aliases that do not.
func (w *writer) keep(p place) error {
	if len(w.anchors) == 0 {
		return nil
	}
	return w.children(p, func(c place) error {
		if c.node.Kind == yamldoc.Alias {
			v := value(c.node)
			return w.alias(c, v, v)
		}
		return w.keep(c)
	})
}

// children calls f for each value of a collection.
func (w *writer) children(p place, f func(place) error) error {
	for i := range p.node.Values {
		c, err := w.child(p, i)
		if err != nil {
			return err
		}
		if err := f(c); err != nil {
			return err
		}
	}
	return nil
}

// child returns the place of a collection's value.
func (w *writer) child(p place, i int) (place, error) {
	n := p.node
	c := place{node: n.Values[i], inFlow: p.inFlow || n.Flow}
	switch {
	case n.Kind == yamldoc.Mapping:
		c.key = n.Keys[i]
	case !c.inFlow:
		at := n.Body
		if i > 0 {
			at = w.blanks(n.Values[i-1].End)
		}
		if at >= len(w.src) || w.src[at] != '-' {
			return c, w.errorAt(n.Values[i].Start, "the dash of this element cannot be found; simplify the layout by hand")
		}
		c.dash, c.inDash = at, true
	}
	return c, nil
}

// value is what a node means, its aliases and merges followed.
func value(n *yamldoc.Node) any {
	n = n.Resolve()
	switch n.Kind {
	case yamldoc.Sequence:
		list := make([]any, len(n.Values))
		for i, v := range n.Values {
			list[i] = value(v)
		}
		return list
	case yamldoc.Mapping:
		m := map[string]any{}
		for i, k := range n.Keys {
			if k.Merge {
				merge(m, n.Values[i])
			}
		}
		for i, k := range n.Keys {
			if key, ok := yamldoc.KeyOf(k); ok {
				m[key] = value(n.Values[i])
			}
		}
		return m
	default:
		return n.Value
	}
}

// merge adds what "<<: n" brings; what comes first wins.
func merge(m map[string]any, n *yamldoc.Node) {
	sources := []any{value(n)}
	if list, ok := sources[0].([]any); ok {
		sources = list
	}
	for _, s := range sources {
		source, _ := s.(map[string]any)
		for k, v := range source {
			if _, ok := m[k]; !ok {
				m[k] = v
			}
		}
	}
}

// mapping turns one mapping into another, entry by entry. It returns false
// where no entry could stay, so that the whole must be replaced.
func (w *writer) mapping(p place, old, target map[string]any) (bool, error) {
	n := p.node
	own := map[string]bool{}
	merges := false
	for _, k := range n.Keys {
		if key, ok := yamldoc.KeyOf(k); ok {
			own[key] = true
		}
		merges = merges || k.Merge
	}
	// A key that a merge brings can be overridden, but not taken away.
	expand := false
	if merges {
		for k := range old {
			if _, stays := target[k]; !stays && (!own[k] || w.brings(n, k)) {
				expand = true
			}
		}
	}
	var entries []entry
	kept := 0
	for i, k := range n.Keys {
		e := entry{index: i}
		if k.Merge {
			e.remove = expand
		} else if key, ok := yamldoc.KeyOf(k); ok {
			value, stays := target[key]
			if stays && merges && !expand && !plain.Equal(old[key], value) {
				// What overrode a merge goes when the merge says the same.
				brought, ok := w.merged(n, key)
				stays = !ok || !plain.Equal(brought, value)
			}
			e.key, e.remove = key, !stays
		}
		if !e.remove {
			kept++
		}
		entries = append(entries, e)
	}
	var add []string
	for _, k := range slices.Sorted(maps.Keys(target)) {
		if v, was := old[k]; !own[k] && (expand || !was || !plain.Equal(v, target[k])) {
			add = append(add, k)
		}
	}
	if kept == 0 && len(n.Keys) > 0 || n.Bare {
		return false, nil
	}
	for _, e := range entries {
		c, err := w.child(p, e.index)
		if err != nil {
			return false, err
		}
		switch {
		case e.remove:
			w.forget(c.node)
		case n.Keys[e.index].Merge:
			if err := w.mergeValue(c); err != nil {
				return false, err
			}
		default:
			if err := w.diff(c, old[e.key], target[e.key]); err != nil {
				return false, err
			}
		}
	}
	if n.Flow {
		w.flowEntries(n, entries, add, target)
		return true, nil
	}
	return true, w.blockEntries(n, entries, add, target)
}

// mergeValue keeps what a merge key brings as it is.
func (w *writer) mergeValue(c place) error {
	if c.node.Kind == yamldoc.Alias {
		v := value(c.node)
		return w.alias(c, v, v)
	}
	return w.keep(c)
}

// merged returns what the merge keys of the mapping bring for a key.
func (w *writer) merged(n *yamldoc.Node, key string) (any, bool) {
	m := map[string]any{}
	for i, k := range n.Keys {
		if k.Merge {
			merge(m, n.Values[i])
		}
	}
	v, ok := m[key]
	return v, ok
}

func (w *writer) brings(n *yamldoc.Node, key string) bool {
	_, ok := w.merged(n, key)
	return ok
}

// entry is one entry of a mapping or element of a sequence that is there.
type entry struct {
	index  int
	key    string
	remove bool
}

// sequence turns one sequence into another, as mapping does.
func (w *writer) sequence(p place, old, target []any) (bool, error) {
	n := p.node
	steps := align(old, target)
	kept := 0
	for _, s := range steps {
		if s.old >= 0 && s.new >= 0 {
			kept++
		}
	}
	if kept == 0 && len(n.Values) > 0 {
		return false, nil
	}
	for _, s := range steps {
		if s.old < 0 {
			continue
		}
		c, err := w.child(p, s.old)
		if err != nil {
			return false, err
		}
		if s.new < 0 {
			w.forget(c.node)
			continue
		}
		if err := w.diff(c, old[s.old], target[s.new]); err != nil {
			return false, err
		}
	}
	if n.Flow {
		w.flowElements(n, steps, target)
		return true, nil
	}
	return true, w.blockElements(p, steps, target)
}
