package nodeexpr

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// constraint is what a term demands of one key. Its zero value demands that
// the key is there. It is kept normal: in excludes notIn, gt and lt.
type constraint struct {
	// absent says that a node without the key meets it.
	absent bool
	// never says that no node with the key meets it.
	never bool
	// in, if not nil, are the only values that meet it; sorted.
	in []string
	// notIn are values that do not meet it; sorted.
	notIn []string
	// gt and lt bound the value, which then must be an integer.
	gt, lt *int64
}

func sorted(values []string) []string {
	out := slices.Clone(values)
	slices.Sort(out)
	return slices.Compact(out)
}

func inSet(values []string) constraint {
	if len(values) == 0 {
		return constraint{never: true}
	}
	return constraint{in: sorted(values)}
}

func notInSet(values []string) constraint {
	return constraint{absent: true, notIn: sorted(values)}
}

func (c constraint) isFalse() bool { return c.never && !c.absent }

func (c constraint) isTrue() bool {
	return c.absent && !c.never && c.in == nil && len(c.notIn) == 0 && c.gt == nil && c.lt == nil
}

func (c constraint) and(o constraint) constraint {
	out := constraint{absent: c.absent && o.absent, never: c.never || o.never}
	if out.never {
		return out
	}
	out.gt, out.lt = tighter(c.gt, o.gt, 1), tighter(c.lt, o.lt, -1)
	out.notIn = union(c.notIn, o.notIn)
	switch {
	case c.in != nil && o.in != nil:
		out.in = filter(c.in, func(v string) bool { return slices.Contains(o.in, v) })
	case c.in != nil:
		out.in = c.in
	case o.in != nil:
		out.in = o.in
	}
	return out.normal()
}

// normal moves what the bounds and the exclusions say into the set, where
// there is one, and notices what nothing can meet.
func (c constraint) normal() constraint {
	if c.in != nil {
		allowed := constraint{notIn: c.notIn, gt: c.gt, lt: c.lt}
		c.in = filter(c.in, func(v string) bool { return allowed.holds(v, true) })
		c.notIn, c.gt, c.lt = nil, nil, nil
		if len(c.in) == 0 {
			return constraint{absent: c.absent, never: true}
		}
		return c
	}
	// No integer lies between neighbours; the comparison cannot overflow.
	if c.gt != nil && c.lt != nil && (*c.lt <= *c.gt || *c.lt-1 == *c.gt) {
		return constraint{absent: c.absent, never: true}
	}
	if c.gt != nil || c.lt != nil {
		bounds := constraint{gt: c.gt, lt: c.lt}
		c.notIn = filter(c.notIn, func(v string) bool { return bounds.holds(v, true) })
	}
	return c
}

// holds reports whether a value meets c; ok says whether the key is there. As
// in the API, a comparison never holds for what is no integer.
func (c constraint) holds(value string, ok bool) bool {
	if !ok {
		return c.absent
	}
	if c.never || c.in != nil && !slices.Contains(c.in, value) || slices.Contains(c.notIn, value) {
		return false
	}
	if c.gt == nil && c.lt == nil {
		return true
	}
	n, err := strconv.ParseInt(value, 10, 64)
	return err == nil && (c.gt == nil || n > *c.gt) && (c.lt == nil || n < *c.lt)
}

func (c constraint) equal(o constraint) bool {
	return c.absent == o.absent && c.never == o.never && (c.in == nil) == (o.in == nil) &&
		slices.Equal(c.in, o.in) && slices.Equal(c.notIn, o.notIn) && sameBound(c.gt, o.gt) && sameBound(c.lt, o.lt)
}

// describe writes c for people, with the key's name.
func (c constraint) describe(key string) string {
	var parts []string
	switch {
	case c.never:
		return "no " + key
	case len(c.in) == 1:
		return key + " = " + c.in[0]
	case c.in != nil:
		return fmt.Sprintf("%s in (%s)", key, strings.Join(c.in, ", "))
	}
	switch {
	case c.absent:
	case c.gt == nil && c.lt == nil && len(c.notIn) == 0:
		return key + " is there"
	case c.gt == nil && c.lt == nil:
		parts = append(parts, key+" is there")
	}
	if len(c.notIn) > 0 {
		parts = append(parts, fmt.Sprintf("%s not in (%s)", key, strings.Join(c.notIn, ", ")))
	}
	if c.gt != nil {
		parts = append(parts, fmt.Sprintf("%s > %d", key, *c.gt))
	}
	if c.lt != nil {
		parts = append(parts, fmt.Sprintf("%s < %d", key, *c.lt))
	}
	return strings.Join(parts, " and ")
}

// tighter returns the larger of two bounds for sign 1, the smaller for -1; nil
// is no bound.
func tighter(a, b *int64, sign int) *int64 {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	case (*a > *b) == (sign > 0):
		return a
	}
	return b
}

func sameBound(a, b *int64) bool {
	return a == b || a != nil && b != nil && *a == *b
}

func union(a, b []string) []string {
	if len(a) == 0 {
		return b
	}
	if len(b) == 0 {
		return a
	}
	return sorted(append(slices.Clone(a), b...))
}

func filter(values []string, keep func(string) bool) []string {
	out := []string{}
	for _, v := range values {
		if keep(v) {
			out = append(out, v)
		}
	}
	return out
}
