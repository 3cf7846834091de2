package ownership

import (
	"cmp"
	"slices"

	"github.com/kubectl-sched/kubectl-sched/internal/workload/plain"
)

// A Write is one field that is to be ours: what there was without us, and what
// there will be.
type Write struct {
	// Path is the JSON pointer of the field in the object.
	Path string
	// Template is the name of the pod template that the field belongs to, for
	// kinds that have several; empty otherwise.
	Template string
	// Container is the name of the container that the field belongs to; empty for
	// a field of the pod.
	Container string
	// Before is the value without us; nil if the field was not there.
	Before any
	// After is the value that we leave; nil if we take the field away.
	After any
}

// Build returns the record of the given writes to an object, or nil if none
// changes anything. Writes whose Before equals After are left out. The object
// is the one without us, from which Build learns what has to be made.
func Build(object map[string]any, writes []Write) *Record {
	r := &Record{}
	for _, w := range writes {
		if plain.Equal(w.Before, w.After) {
			continue
		}
		f := Field{Path: w.Path, Template: w.Template, Container: w.Container, Before: w.Before, Wrote: w.After}
		if w.Before == nil {
			f.Made, f.Null = missing(object, Tokens(w.Path))
		}
		r.Fields = append(r.Fields, f)
	}
	if len(r.Fields) == 0 {
		return nil
	}
	slices.SortFunc(r.Fields, func(a, b Field) int { return cmp.Compare(a.Path, b.Path) })
	r.Made, r.Null = missing(object, annotationTokens())
	return r
}

// missing counts the parents of a field that the object does not have, and says
// whether the first thing that is missing is there as null.
func missing(object map[string]any, tokens []string) (made int, null bool) {
	for n := range len(tokens) {
		v, ok := lookup(object, tokens[:n+1])
		if !ok || v == nil {
			return len(tokens) - n - 1, ok
		}
	}
	return 0, false
}

func annotationTokens() []string { return []string{"metadata", "annotations", Annotation} }

// Apply returns the object with the writes made, and with the record's text as
// its annotation. The object itself is not changed.
func Apply(object map[string]any, writes []Write, text string) map[string]any {
	var v any = object
	for _, w := range writes {
		switch tokens := Tokens(w.Path); {
		case plain.Equal(w.Before, w.After):
		case w.After == nil:
			v = without(v, tokens)
		default:
			v = with(v, tokens, w.After)
		}
	}
	out, ok := with(v, annotationTokens(), text).(map[string]any)
	if !ok {
		return object
	}
	return out
}
