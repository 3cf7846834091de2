package anonymize

import (
	"fmt"
	"reflect"
)

// typed replaces what is in a value of the API's types. It follows no pointer, list
// or map without making it anew, so that nothing else changes that shares them. A
// string is replaced by the word for it unless a rule says what it is; a type of its
// own (corev1.TaintEffect) is one of the API's words, and stays.
func (n *Names) typed(v reflect.Value) {
	if rule, ok := n.types[v.Type()]; ok {
		rule(n, v)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			fresh := reflect.New(v.Type().Elem())
			fresh.Elem().Set(v.Elem())
			v.Set(fresh)
			n.typed(v.Elem())
		}
	case reflect.Slice:
		if v.IsNil() {
			return
		}
		fresh := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(fresh, v)
		v.Set(fresh)
		for i := range v.Len() {
			n.typed(v.Index(i))
		}
	case reflect.Map:
		n.entries(v)
	case reflect.Struct:
		rules := n.fields[v.Type()]
		for i := range v.NumField() {
			field := v.Field(i)
			if rule, ok := rules[v.Type().Field(i).Name]; ok {
				rule(n, field)
				continue
			}
			n.typed(field)
		}
	case reflect.String:
		if v.Type() == reflect.TypeFor[string]() {
			v.SetString(n.name(v.String()))
		}
	default: // numbers and truths stay
	}
}

// entries replaces the values of a map; those of a map of strings are labels.
func (n *Names) entries(v reflect.Value) {
	if m, ok := v.Interface().(map[string]string); ok {
		v.Set(reflect.ValueOf(n.labels(m)))
		return
	}
	if v.IsNil() {
		return
	}
	fresh := reflect.MakeMapWithSize(v.Type(), v.Len())
	for _, key := range v.MapKeys() {
		e := reflect.New(v.Type().Elem()).Elem()
		e.Set(v.MapIndex(key))
		n.typed(e)
		fresh.SetMapIndex(key, e)
	}
	v.Set(fresh)
}

type rule func(*Names, reflect.Value)

// on makes a rule of a function of a typed value.
func on[T any](do func(*Names, *T)) rule {
	return func(n *Names, v reflect.Value) { do(n, v.Addr().Interface().(*T)) }
}

func keep(*Names, reflect.Value) {}

// each makes a rule for a string, a pointer to one, or a list of them.
func each(do func(*Names, string) string) rule {
	return func(n *Names, v reflect.Value) {
		switch field := v.Addr().Interface().(type) {
		case *string:
			*field = do(n, *field)
		case **string:
			if *field != nil {
				*field = new(do(n, **field))
			}
		case *[]string:
			*field = mapped(*field, func(s string) string { return do(n, s) })
		default:
			panic(fmt.Sprintf("anonymize: a rule for strings is for a %s", v.Type()))
		}
	}
}

// resources replaces the keys of a map by resource.
func resources[K ~string, V any, M ~map[K]V](n *Names, m *M) {
	if *m == nil {
		return
	}
	out := make(M, len(*m))
	for name, v := range *m {
		out[K(n.resource(string(name)))] = v
	}
	*m = out
}
