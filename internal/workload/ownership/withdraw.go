package ownership

import "slices"

// An Edited is a field that we wrote and that somebody has changed since, so
// that what was there before cannot be put back, or not all of it.
type Edited struct {
	// Path is the JSON pointer of the field in the object.
	Path string
	// Template is the name of the pod template that the field belongs to.
	Template string
	// Now is the value that is there (nil if the field is gone). What is not
	// ours in it is kept, as the user's own.
	Now any
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
	for i := range record.Fields {
		next, e := withdraw(v, &record.Fields[i])
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

func withdraw(v any, f *Field) (any, *Edited) {
	tokens := Tokens(f.Path)
	now, there := lookup(v, tokens)
	left := f.left()
	edited := &Edited{Path: f.Path, Template: f.Template, Now: now}
	switch {
	case left == nil && !there:
		return with(v, tokens, f.Before), nil
	case !there && f.Before == nil:
		return prune(v, tokens, f.Made, f.Null), nil // somebody has done it for us
	case !there || left == nil:
		return v, edited
	case left.Is(now):
		return restore(v, tokens, f, f.Before), nil
	}
	current, isList := now.([]any)
	before, hadList := f.Before.([]any)
	if !isList || left.List == nil || !hadList && f.Before != nil {
		return v, edited
	}
	list, clean := withdrawElements(elementsOf(current), left.List, elementsOf(before))
	if clean {
		edited = nil
	}
	if len(list) == 0 && f.Before == nil {
		return restore(v, tokens, f, nil), edited
	}
	return restore(v, tokens, f, list), edited
}

// restore puts a value back, or takes the field away if there is none.
func restore(v any, tokens []string, f *Field, before any) any {
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

// elements is a list with the sums of its elements, which tell them apart.
type elements struct {
	values []any
	sums   []string
}

func elementsOf(list []any) elements { return elements{list, sums(list)} }

// withdrawElements takes our elements out of a list that others have changed.
// It returns false as well if one of ours is neither there nor merely gone:
// then somebody has most likely edited it, and it is now theirs.
func withdrawElements(current elements, wrote []string, before elements) ([]any, bool) {
	added, replaced := subtract(wrote, before.sums), subtract(before.sums, wrote)
	list := current.without(added)
	lost := subtract(added, current.sums)
	foreign := subtract(subtract(current.sums, wrote), before.sums)
	clean := len(lost) == 0 || len(foreign) == 0
	for _, e := range replaced {
		// Where every element that took its place is gone, somebody has changed
		// just this place, and what is there now stands for it.
		if successors := successorsOf(e, wrote, before.sums); len(successors) > 0 && len(subtract(successors, lost)) == 0 {
			continue
		}
		list = list.insert(e, before)
	}
	return list.values, clean
}

// subtract returns a without the elements of b; each element of b takes one.
func subtract(a, b []string) []string {
	used := make([]bool, len(b))
	var out []string
	for _, e := range a {
		if !take(used, b, e) {
			out = append(out, e)
		}
	}
	return out
}

// take marks the first unused element of b that is e, if there is one.
func take(used []bool, b []string, e string) bool {
	for i, f := range b {
		if !used[i] && e == f {
			used[i] = true
			return true
		}
	}
	return false
}

// without is subtract for elements.
func (l elements) without(b []string) elements {
	used := make([]bool, len(b))
	out := elements{values: []any{}}
	for i, e := range l.sums {
		if !take(used, b, e) {
			out.values, out.sums = append(out.values, l.values[i]), append(out.sums, e)
		}
	}
	return out
}

// successorsOf returns the elements of wrote that stand where e stood in
// before: between the same elements that were left alone.
func successorsOf(e string, wrote, before []string) []string {
	added := subtract(wrote, before)
	at := slices.Index(before, e)
	from, to := 0, len(wrote)
	for i := at - 1; i >= 0; i-- {
		if j := slices.Index(wrote, before[i]); j >= 0 {
			from = j + 1
			break
		}
	}
	for i := at + 1; i < len(before); i++ {
		if j := slices.Index(wrote, before[i]); j >= from {
			to = j
			break
		}
	}
	if from > to {
		return nil
	}
	var out []string
	for _, w := range wrote[from:to] {
		if slices.Contains(added, w) {
			out = append(out, w)
		}
	}
	return out
}

// insert puts e back behind the element that it followed in before.
func (l elements) insert(e string, before elements) elements {
	from := slices.Index(before.sums, e)
	at := 0
	for i := from - 1; i >= 0; i-- {
		if j := slices.Index(l.sums, before.sums[i]); j >= 0 {
			at = j + 1
			break
		}
	}
	return elements{
		values: slices.Insert(slices.Clone(l.values), at, before.values[from]),
		sums:   slices.Insert(slices.Clone(l.sums), at, e),
	}
}
