package workload

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/internal/workload/ownership"
)

// Pointer returns the path as a JSON pointer (RFC 6901).
func (p Path) Pointer() string { return ownership.Pointer(p...) }

// String returns the path as people write it: "spec.groups[0].template".
func (p Path) String() string {
	var b strings.Builder
	for i, step := range p {
		if n, ok := step.(int); ok {
			fmt.Fprintf(&b, "[%d]", n)
			continue
		}
		if i > 0 {
			b.WriteByte('.')
		}
		fmt.Fprint(&b, step)
	}
	return b.String()
}

// Lookup returns the value at the path in an object, and whether it is there.
func Lookup(object any, path ...any) (any, bool) {
	for _, step := range path {
		switch c := object.(type) {
		case map[string]any:
			key, ok := step.(string)
			if !ok {
				return nil, false
			}
			if object, ok = c[key]; !ok {
				return nil, false
			}
		case []any:
			i, ok := step.(int)
			if !ok || i < 0 || i >= len(c) {
				return nil, false
			}
			object = c[i]
		default:
			return nil, false
		}
	}
	return object, true
}

// join returns a new path of p and the steps.
func (p Path) join(steps ...any) Path {
	out := make(Path, 0, len(p)+len(steps))
	return append(append(out, p...), steps...)
}

// pattern is a parsed path of the table of kinds: dotted keys, "[*name]" for
// each element of a list, "*" for each value of a map.
type pattern []part

// part is one step of a pattern.
type part struct {
	// key is the map key; empty for a wildcard.
	key string
	// each says that the part stands for each element of a list, named by the
	// field name; without each and key, for each value of a map.
	each bool
	name string
}

func (p part) wild() bool { return p.key == "" }

// parsePattern parses a path of the table. The error says what is wrong in it.
func parsePattern(text string) (pattern, error) {
	var out pattern
	for key := range strings.SplitSeq(text, ".") {
		list := ""
		if i := strings.IndexByte(key, '['); i >= 0 {
			key, list = key[:i], key[i:]
		}
		switch {
		case key == "":
			return nil, fmt.Errorf("%q has an empty key; separate the keys by single dots", text)
		case key == "*" && list == "":
			out = append(out, part{})
			continue
		case strings.ContainsAny(key, "*]"):
			return nil, fmt.Errorf("%q: %q is neither a key nor \"*\"", text, key)
		}
		out = append(out, part{key: key})
		if list == "" {
			continue
		}
		name, ok := strings.CutPrefix(list, "[*")
		name, ok2 := strings.CutSuffix(name, "]")
		if !ok || !ok2 || name == "" || strings.ContainsAny(name, "[]*") {
			return nil, fmt.Errorf("%q: write %q as \"[*field]\", with the field that names the elements", text, list)
		}
		out = append(out, part{each: true, name: name})
	}
	return out, nil
}

// upToWildcard is the pattern up to its last wildcard.
func (p pattern) upToWildcard() pattern {
	for n := len(p); n > 0; n-- {
		if p[n-1].wild() {
			return p[:n]
		}
	}
	return nil
}

// binding is one choice for each wildcard of a pattern: the step (an int or a
// string) and the name that it has.
type binding struct {
	steps []any
	names []string
}

// bind returns every choice that the object offers for the wildcards. A pattern
// without wildcards has one, empty.
func (p pattern) bind(object any) []binding {
	out := []binding{{}}
	values := []any{object}
	for _, part := range p {
		var bindings []binding
		var next []any
		for i, b := range out {
			if !part.wild() {
				v, _ := Lookup(values[i], part.key)
				bindings, next = append(bindings, b), append(next, v)
				continue
			}
			for _, c := range part.choices(values[i]) {
				bindings = append(bindings, binding{append(b.steps[:len(b.steps):len(b.steps)], c.step), append(b.names[:len(b.names):len(b.names)], c.name)})
				next = append(next, c.value)
			}
		}
		out, values = bindings, next
	}
	return out
}

type choice struct {
	step  any
	name  string
	value any
}

func (p part) choices(v any) []choice {
	var out []choice
	switch c := v.(type) {
	case []any:
		if !p.each {
			return nil
		}
		for i, e := range c {
			name, _ := Lookup(e, p.name)
			text, ok := name.(string)
			if !ok {
				text = strconv.Itoa(i)
			}
			out = append(out, choice{i, text, e})
		}
	case map[string]any:
		if p.each {
			return nil
		}
		for _, k := range sortedKeys(c) {
			out = append(out, choice{k, k, c[k]})
		}
	}
	return out
}

// path returns the path that the pattern means under a binding.
func (p pattern) path(b binding) Path {
	out := make(Path, 0, len(p))
	n := 0
	for _, part := range p {
		if !part.wild() {
			out = append(out, part.key)
			continue
		}
		if n >= len(b.steps) {
			return nil
		}
		out = append(out, b.steps[n])
		n++
	}
	return out
}
