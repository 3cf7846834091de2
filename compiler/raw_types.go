package compiler

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// misfit is a value of raw.pod that does not fit where it stands.
type misfit struct {
	path    []string
	message string
}

// misfits finds all values that do not fit the type, and the fields that it does
// not have; the JSON package stops at the first.
func misfits(value any, t reflect.Type, path []string) []misfit {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	here := func(want string) []misfit {
		name := strconv.Quote(path[len(path)-1])
		if _, err := strconv.Atoi(path[len(path)-1]); err == nil {
			name = "the element"
		}
		return []misfit{{path, fmt.Sprintf("%s must be %s, not %s", name, want, described(value))}}
	}
	below := func(name string) []string { return append(path[:len(path):len(path)], name) }
	if value == nil {
		return nil
	}
	if own := reflect.TypeFor[json.Unmarshaler](); t.Implements(own) || reflect.PointerTo(t).Implements(own) {
		data, err := json.Marshal(value)
		if err != nil || json.Unmarshal(data, reflect.New(t).Interface()) != nil {
			return here("a " + strings.ToLower(t.Name()))
		}
		return nil
	}
	var found []misfit
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		m, ok := value.(map[string]any)
		if !ok {
			return here("a map")
		}
		for _, name := range sortedKeys(m) {
			var element reflect.Type
			if t.Kind() == reflect.Map {
				element = t.Elem()
			} else if element = fieldType(t, name); element == nil {
				found = append(found, misfit{below(name), fmt.Sprintf("unknown field %q", strings.Join(below(name), "."))})
				continue
			}
			found = append(found, misfits(m[name], element, below(name))...)
		}
	case reflect.Slice, reflect.Array:
		if _, text := value.(string); text && t.Elem().Kind() == reflect.Uint8 {
			return nil
		}
		list, ok := value.([]any)
		if !ok {
			return here("a list")
		}
		for i, v := range list {
			found = append(found, misfits(v, t.Elem(), below(strconv.Itoa(i)))...)
		}
	case reflect.String:
		if _, ok := value.(string); !ok {
			return here("a string in quotes")
		}
	case reflect.Bool:
		if _, ok := value.(bool); !ok {
			return here("true or false")
		}
	default:
		data, err := json.Marshal(value)
		if _, text := value.(string); text || err != nil || json.Unmarshal(data, reflect.New(t).Interface()) != nil {
			return here("a whole number")
		}
	}
	return found
}

// fieldType returns the type of the struct's field of that JSON name, nil for none.
func fieldType(t reflect.Type, name string) reflect.Type {
	for _, f := range reflect.VisibleFields(t) {
		if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag == name {
			return f.Type
		}
	}
	return nil
}

// described says what a value is.
func described(value any) string {
	switch v := value.(type) {
	case map[string]any:
		return "a map"
	case []any:
		return "a list"
	case string:
		return fmt.Sprintf("the string %q", v)
	case bool:
		return strconv.FormatBool(v)
	}
	return fmt.Sprintf("the number %v", value)
}
