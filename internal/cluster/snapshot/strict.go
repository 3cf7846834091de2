package snapshot

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/internal/workload/plain"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// mistake is a value that does not fit its type, and where.
type mistake struct {
	path    []any
	message string
}

// decodeStrict sets into, a pointer to a struct of the API, from a plain value. A
// field that the type does not have and a value of another type are mistakes; each
// has its path, which no JSON decoder gives for all of them.
func decodeStrict(value map[string]any, into any) []mistake {
	d := &strictDecoder{}
	d.value(value, reflect.ValueOf(into).Elem(), nil)
	return d.mistakes
}

type strictDecoder struct{ mistakes []mistake }

func (d *strictDecoder) fail(path []any, format string, args ...any) {
	d.mistakes = append(d.mistakes, mistake{slices.Clone(path), fmt.Sprintf(format, args...)})
}

func (d *strictDecoder) wrong(path []any, value any, want string) {
	name := "it"
	if len(path) > 0 {
		name = fmt.Sprintf("%q", fmt.Sprint(path[len(path)-1]))
	}
	d.fail(path, "%s must be %s, not %s", name, want, plain.Describe(value))
}

// ownForm are the types that read themselves.
var ownForm = reflect.TypeFor[json.Unmarshaler]()

func (d *strictDecoder) value(value any, into reflect.Value, path []any) {
	if value == nil {
		return
	}
	if into.Kind() != reflect.Pointer && reflect.PointerTo(into.Type()).Implements(ownForm) {
		d.own(value, into, path)
		return
	}
	switch into.Kind() {
	case reflect.Pointer:
		into.Set(reflect.New(into.Type().Elem()))
		d.value(value, into.Elem(), path)
	case reflect.Struct:
		d.object(value, into, path)
	case reflect.Map:
		m, ok := value.(map[string]any)
		if !ok {
			d.wrong(path, value, "a map")
			return
		}
		into.Set(reflect.MakeMapWithSize(into.Type(), len(m)))
		for _, key := range slices.Sorted(maps.Keys(m)) {
			e := reflect.New(into.Type().Elem()).Elem()
			d.value(m[key], e, append(path, key))
			into.SetMapIndex(reflect.ValueOf(key).Convert(into.Type().Key()), e)
		}
	case reflect.Slice:
		if into.Type().Elem().Kind() == reflect.Uint8 {
			d.own(value, into, path)
			return
		}
		list, ok := value.([]any)
		if !ok {
			d.wrong(path, value, "a list")
			return
		}
		into.Set(reflect.MakeSlice(into.Type(), len(list), len(list)))
		for i, e := range list {
			d.value(e, into.Index(i), append(path, i))
		}
	default:
		d.scalar(value, into, path)
	}
}

// own has a value read itself.
func (d *strictDecoder) own(value any, into reflect.Value, path []any) {
	data, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(data, into.Addr().Interface())
	}
	if err != nil {
		d.fail(path, "%q is %s, which is not allowed here: %v", fmt.Sprint(path[len(path)-1]), plain.Describe(value), err)
	}
}

func (d *strictDecoder) scalar(value any, into reflect.Value, path []any) {
	switch into.Kind() {
	case reflect.String:
		if s, ok := value.(string); ok {
			if words := enums()[into.Type()]; words != nil && s != "" && !slices.Contains(words, s) {
				d.wrong(path, value, "one of "+strings.Join(words, ", "))
			}
			into.SetString(s)
			return
		}
		d.wrong(path, value, "a string; put it in quotes")
	case reflect.Bool:
		if b, ok := value.(bool); ok {
			into.SetBool(b)
			return
		}
		d.wrong(path, value, "true or false")
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		i, ok := whole(value)
		if !ok || into.OverflowInt(i) {
			d.wrong(path, value, "a whole number without quotes")
			return
		}
		into.SetInt(i)
	case reflect.Float32, reflect.Float64:
		switch v := value.(type) {
		case float64:
			into.SetFloat(v)
		case int64:
			into.SetFloat(float64(v))
		default:
			d.wrong(path, value, "a number")
		}
	default:
		d.own(value, into, path)
	}
}

func whole(value any) (int64, bool) {
	switch v := value.(type) {
	case int64:
		return v, true
	case float64:
		return int64(v), v == math.Trunc(v) && math.Abs(v) < 1<<53
	}
	return 0, false
}

func (d *strictDecoder) object(value any, into reflect.Value, path []any) {
	m, ok := value.(map[string]any)
	if !ok {
		d.wrong(path, value, "a map")
		return
	}
	fields := map[string]reflect.Value{}
	collectFields(into, fields)
	for _, key := range slices.Sorted(maps.Keys(m)) {
		field, ok := fields[key]
		if ok {
			d.value(m[key], field, append(path, key))
			continue
		}
		hint := "take it out"
		if near, ok := diag.Nearest(key, slices.Collect(maps.Keys(fields))); ok {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		d.fail(append(path, key), "there is no field %q here; %s", key, hint)
	}
}

// collectFields maps the names of a struct's fields in JSON to the fields.
func collectFields(v reflect.Value, into map[string]reflect.Value) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case name == "" && (f.Anonymous || strings.Contains(options, "inline")):
			collectFields(v.Field(i), into)
		case f.IsExported():
			into[name] = v.Field(i)
		}
	}
}
