package adopt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// tree is an ordered map.
type tree struct {
	keys   []string
	values []any
}

func (t *tree) add(key string, value any) {
	t.keys, t.values = append(t.keys, key), append(t.values, value)
}

// cueOf writes a value, which is a tree or has a JSON form, as CUE.
func cueOf(v any) string {
	switch x := v.(type) {
	case *tree:
		return fields(x.keys, func(i int) any { return x.values[i] })
	case map[string]any:
		keys := sortedKeys(x)
		return fields(keys, func(i int) any { return x[keys[i]] })
	case []any:
		parts := make([]string, len(x))
		for i, e := range x {
			parts[i] = cueOf(e)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case string:
		return quoted(x)
	case bool, int, float64, json.Number, nil:
		return asJSON(x)
	default:
		return cueOf(treeOf(v))
	}
}

// fields writes a struct.
func fields(keys []string, value func(int) any) string {
	if len(keys) == 0 {
		return "{}"
	}
	var b strings.Builder
	b.WriteString("{\n")
	for i, k := range keys {
		v := value(i)
		if k == "labels" {
			v = singleValues(v)
		}
		text := cueOf(v)
		// A struct of one field needs no braces: "nodes: require: zones: [...]".
		if inner, ok := strings.CutPrefix(text, "{\n"); ok && strings.HasSuffix(inner, "\n}") && isSingle(v) {
			text = strings.TrimSuffix(inner, "\n}")
		}
		fmt.Fprintf(&b, "%s: %s\n", label(k), text)
	}
	b.WriteString("}")
	return b.String()
}

// singleValues writes labels of one value as that value.
func singleValues(v any) any {
	t, ok := v.(*tree)
	if !ok {
		t, ok = treeOf(v).(*tree)
	}
	if !ok {
		return v
	}
	out := &tree{keys: t.keys}
	for _, v := range t.values {
		if list, ok := v.([]any); ok && len(list) == 1 {
			v = list[0]
		}
		out.values = append(out.values, v)
	}
	return out
}

// isSingle reports whether the value is a struct of one field.
func isSingle(v any) bool {
	switch x := v.(type) {
	case *tree:
		return len(x.keys) == 1
	case map[string]any:
		return len(x) == 1
	case string, bool, int, float64, json.Number, nil, []any:
		return false
	default:
		return isSingle(treeOf(v))
	}
}

// treeOf returns a typed value as ordered JSON: the fields as the type has them.
func treeOf(v any) any {
	d := json.NewDecoder(strings.NewReader(asJSON(v)))
	d.UseNumber()
	out, err := ordered(d)
	if err != nil {
		return asJSON(v)
	}
	return out
}

func ordered(d *json.Decoder) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		t := &tree{}
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			value, err := ordered(d)
			if err != nil {
				return nil, err
			}
			t.add(key.(string), value)
		}
		_, err := d.Token()
		return t, err
	case json.Delim('['):
		list := []any{}
		for d.More() {
			value, err := ordered(d)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		_, err := d.Token()
		return list, err
	}
	return token, nil
}

var identifier = regexp.MustCompile(`^[a-z][A-Za-z0-9]*$`)

// keywords are the identifiers that mean something to CUE.
var keywords = map[string]bool{"package": true, "import": true, "for": true, "in": true, "if": true, "let": true, "true": true, "false": true, "null": true, "div": true, "mod": true, "quo": true, "rem": true}

// label writes the name of a field.
func label(name string) string {
	if identifier.MatchString(name) && !keywords[name] {
		return name
	}
	return quoted(name)
}

// quoted writes a string. What JSON escapes CUE does too.
func quoted(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		return `""`
	}
	return strings.TrimSuffix(b.String(), "\n")
}
