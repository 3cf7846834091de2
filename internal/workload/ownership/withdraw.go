package ownership

import "github.com/kubectl-sched/kubectl-sched/internal/workload/plain"

// An Edited is a field that we wrote and that somebody has changed since, so
// that what was there before cannot be put back, or not all of it.
type Edited struct {
	// Path is the JSON pointer of the field in the object.
	Path string
	// Template is the name of the pod template that the field belongs to.
	Template string
	// Wrote is the value that we left, and Now the one that is there (nil if the
	// field is gone). What is not ours in Now is kept, as the user's own.
	Wrote, Now any
}

// Withdraw returns the object as it would be without us. The object itself is
// not changed; the result shares the parts that stay the same, and is the
// object itself where there is no record. The annotation is taken away.
//
// Where the value is still the one that we wrote, what was there before comes
// back. In a list that others changed too, our elements go and those that ours
// replaced come back, and everything that others added stays. Any other value
// that somebody has edited is kept and reported.
func Withdraw(object map[string]any, record *Record) (map[string]any, []Edited) {
	if record == nil {
		return object, nil
	}
	var v any = object
	var edited []Edited
	for _, f := range record.Fields {
		next, e := withdraw(v, f)
		if v = next; e != nil {
			edited = append(edited, *e)
		}
	}
	if _, ok := lookup(v, annotationTokens()); ok {
		v = prune(without(v, annotationTokens()), annotationTokens(), record.Made, record.Null)
	}
	base, ok := v.(map[string]any)
	if !ok {
		return object, edited
	}
	return base, edited
}

func withdraw(v any, f Field) (any, *Edited) {
	tokens := Tokens(f.Path)
	now, there := lookup(v, tokens)
	edited := &Edited{Path: f.Path, Template: f.Template, Wrote: f.Wrote, Now: now}
	switch {
	case f.Wrote == nil && !there:
		return with(v, tokens, f.Before), nil
	case !there && f.Before == nil:
		return prune(v, tokens, f.Made, f.Null), nil // somebody has done it for us
	case !there || f.Wrote == nil:
		return v, edited
	case plain.Equal(now, f.Wrote):
		return restore(v, tokens, f, f.Before), nil
	}
	current, isList := now.([]any)
	wrote, wasList := f.Wrote.([]any)
	before, hadList := f.Before.([]any)
	if !isList || !wasList || !hadList && f.Before != nil {
		return v, edited
	}
	list, clean := withdrawElements(current, wrote, before)
	if clean {
		edited = nil
	}
	if len(list) == 0 && f.Before == nil {
		return restore(v, tokens, f, nil), edited
	}
	return restore(v, tokens, f, list), edited
}

// restore puts a value back, or takes the field away if there is none.
func restore(v any, tokens []string, f Field, before any) any {
	if before != nil {
		return with(v, tokens, before)
	}
	if f.Made == 0 && f.Null {
		return with(v, tokens, nil)
	}
	return prune(without(v, tokens), tokens, f.Made, f.Null)
}

// prune takes away those of the made parents that are empty again.
func prune(v any, tokens []string, made int, null bool) any {
	for n := 1; n <= made && n < len(tokens); n++ {
		parent := tokens[:len(tokens)-n]
		m, ok := lookup(v, parent)
		if empty, isMap := m.(map[string]any); !ok || !isMap || len(empty) > 0 {
			return v
		}
		if n == made && null {
			return with(v, parent, nil)
		}
		v = without(v, parent)
	}
	return v
}

// withdrawElements takes our elements out of a list that others have changed.
// It returns false as well if one of ours is neither there nor merely gone:
// then somebody has most likely edited it, and it is now theirs.
func withdrawElements(current, wrote, before []any) ([]any, bool) {
	added, replaced := subtract(wrote, before), subtract(before, wrote)
	list := subtract(current, added)
	lost := subtract(added, current)
	foreign := subtract(subtract(current, wrote), before)
	clean := len(lost) == 0 || len(foreign) == 0
	for _, e := range replaced {
		// Where every element that took its place is gone, somebody has changed
		// just this place, and what is there now stands for it.
		if successors := successorsOf(e, wrote, before); len(successors) > 0 && len(subtract(successors, lost)) == 0 {
			continue
		}
		list = insert(list, e, before)
	}
	return list, clean
}

// subtract returns a without the elements of b; each element of b takes one.
func subtract(a, b []any) []any {
	used := make([]bool, len(b))
	var out []any
next:
	for _, e := range a {
		for i, f := range b {
			if !used[i] && plain.Equal(e, f) {
				used[i] = true
				continue next
			}
		}
		out = append(out, e)
	}
	return out
}

// successorsOf returns the elements of wrote that stand where e stood in
// before: between the same elements that were left alone.
func successorsOf(e any, wrote, before []any) []any {
	added := subtract(wrote, before)
	at := index(before, e)
	from, to := 0, len(wrote)
	for i := at - 1; i >= 0; i-- {
		if j := index(wrote, before[i]); j >= 0 {
			from = j + 1
			break
		}
	}
	for i := at + 1; i < len(before); i++ {
		if j := index(wrote, before[i]); j >= from {
			to = j
			break
		}
	}
	if from > to {
		return nil
	}
	var out []any
	for _, w := range wrote[from:to] {
		if index(added, w) >= 0 {
			out = append(out, w)
		}
	}
	return out
}

// insert puts e back behind the element that it followed in before.
func insert(list []any, e any, before []any) []any {
	at := 0
	for i := index(before, e) - 1; i >= 0; i-- {
		if j := index(list, before[i]); j >= 0 {
			at = j + 1
			break
		}
	}
	out := make([]any, 0, len(list)+1)
	out = append(out, list[:at]...)
	out = append(out, e)
	return append(out, list[at:]...)
}

func index(list []any, e any) int {
	for i, f := range list {
		if plain.Equal(e, f) {
			return i
		}
	}
	return -1
}
