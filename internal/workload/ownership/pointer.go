package ownership

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

var (
	pointerEscape   = strings.NewReplacer("~", "~0", "/", "~1")
	pointerUnescape = strings.NewReplacer("~1", "/", "~0", "~")
)

// Pointer returns the JSON pointer (RFC 6901) of a path: strings are keys, ints
// list indices.
func Pointer(path ...any) string {
	var b strings.Builder
	for _, step := range path {
		b.WriteByte('/')
		b.WriteString(pointerEscape.Replace(fmt.Sprint(step)))
	}
	return b.String()
}

// Tokens returns the parts of a JSON pointer, unescaped.
func Tokens(pointer string) []string {
	if pointer == "" {
		return nil
	}
	tokens := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i, t := range tokens {
		tokens[i] = pointerUnescape.Replace(t)
	}
	return tokens
}

// lookup returns the value at the tokens, and whether it is there.
func lookup(v any, tokens []string) (any, bool) {
	for _, t := range tokens {
		switch c := v.(type) {
		case map[string]any:
			next, ok := c[t]
			if !ok {
				return nil, false
			}
			v = next
		case []any:
			i, err := strconv.Atoi(t)
			if err != nil || i < 0 || i >= len(c) {
				return nil, false
			}
			v = c[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// with returns v with the value at the tokens set. It copies what it changes;
// missing maps are made. What is no map or list stands in the way: then v is
// returned as it is.
func with(v any, tokens []string, value any) any {
	if len(tokens) == 0 {
		return value
	}
	switch c := v.(type) {
	case nil:
		return map[string]any{tokens[0]: with(nil, tokens[1:], value)}
	case map[string]any:
		out := maps.Clone(c)
		out[tokens[0]] = with(c[tokens[0]], tokens[1:], value)
		return out
	case []any:
		i, err := strconv.Atoi(tokens[0])
		if err != nil || i < 0 || i >= len(c) {
			return v
		}
		out := slices.Clone(c)
		out[i] = with(c[i], tokens[1:], value)
		return out
	}
	return v
}

// without returns v without the map entry at the tokens.
func without(v any, tokens []string) any {
	parent, _ := lookup(v, tokens[:len(tokens)-1])
	m, ok := parent.(map[string]any)
	if !ok {
		return v
	}
	m = maps.Clone(m)
	delete(m, tokens[len(tokens)-1])
	return with(v, tokens[:len(tokens)-1], m)
}
