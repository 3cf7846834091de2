package workload

import (
	"fmt"
	"math"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-sched/kubectl-sched/internal/workload/plain"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// typeTable has the JSON names of the fields of the API's placement types.
type typeTable map[reflect.Type]map[string]int

// placementTypes is the table of all types that a PodFields is made of.
func placementTypes() typeTable {
	t := typeTable{}
	t.add(reflect.TypeFor[PodFields]())
	return t
}

func (t typeTable) add(typ reflect.Type) {
	switch typ.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		t.add(typ.Elem())
		return
	case reflect.Struct:
	default:
		return
	}
	if _, ok := t[typ]; ok {
		return
	}
	fields := map[string]int{}
	t[typ] = fields
	for i := range typ.NumField() {
		name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
		if name != "" && name != "-" {
			fields[name] = i
		}
		t.add(typ.Field(i).Type)
	}
}

// decoder turns plain values into the API's types and reports what does not fit,
// with its place. It is stricter than the JSON package, and unlike it goes on.
type decoder struct {
	types  typeTable
	report func(path Path, severity diag.Severity, message string)
}

// decode sets out from the value at the path.
func (d decoder) decode(v any, out reflect.Value, path Path) {
	if v == nil {
		return
	}
	switch out.Kind() {
	case reflect.Pointer:
		target := reflect.New(out.Type().Elem())
		d.decode(v, target.Elem(), path)
		out.Set(target)
	case reflect.Struct:
		d.object(v, out, path)
	case reflect.Slice:
		list, ok := v.([]any)
		if !ok {
			d.wrong(v, "a list", path)
			return
		}
		out.Set(reflect.MakeSlice(out.Type(), len(list), len(list)))
		for i, e := range list {
			if e == nil {
				d.report(path.join(i), diag.Error, "the element is empty; remove it")
				continue
			}
			d.decode(e, out.Index(i), path.join(i))
		}
	case reflect.Map:
		m, ok := v.(map[string]any)
		if !ok {
			d.wrong(v, "a map", path)
			return
		}
		out.Set(reflect.MakeMapWithSize(out.Type(), len(m)))
		for _, k := range sortedKeys(m) {
			e := reflect.New(out.Type().Elem()).Elem()
			d.decode(m[k], e, path.join(k))
			out.SetMapIndex(reflect.ValueOf(k), e)
		}
	case reflect.String:
		if s, ok := v.(string); ok {
			out.SetString(s)
			return
		}
		d.wrong(v, "a string in quotes", path)
	case reflect.Bool:
		if b, ok := v.(bool); ok {
			out.SetBool(b)
			return
		}
		d.wrong(v, "true or false", path)
	case reflect.Int32, reflect.Int64:
		i, ok := v.(int64)
		if f, isFloat := v.(float64); isFloat && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
			i, ok = int64(f), true
		}
		if !ok || out.OverflowInt(i) {
			d.wrong(v, "a whole number without quotes", path)
			return
		}
		out.SetInt(i)
	default: // the placement types have no others
	}
}

func (d decoder) object(v any, out reflect.Value, path Path) {
	m, ok := v.(map[string]any)
	if !ok {
		d.wrong(v, "a map", path)
		return
	}
	fields := d.types[out.Type()]
	for _, k := range sortedKeys(m) {
		if i, ok := fields[k]; ok {
			d.decode(m[k], out.Field(i), path.join(k))
			continue
		}
		// A field of a newer API version is none of our business.
		if near, ok := diag.Nearest(k, sortedKeys(fields)); ok {
			d.report(path.join(k), diag.Warning, fmt.Sprintf("the API has no field %q here; did you mean %q", k, near))
		}
	}
}

func (d decoder) wrong(v any, want string, path Path) {
	d.report(path, diag.Error, fmt.Sprintf("%q must be %s, not %s", path[len(path)-1:].String(), want, plain.Describe(v)))
}

// fields reads the placement that a template has in an object.
func (d decoder) fields(object map[string]any, t *Template) PodFields {
	var out PodFields
	v := reflect.ValueOf(&out).Elem()
	for _, f := range Fields {
		path, ok := t.Paths[f]
		if !ok || f == Affinity && t.parts != nil {
			continue
		}
		if raw, ok := Lookup(object, path...); ok {
			d.decode(raw, v.Field(d.types[v.Type()][string(f)]), path)
		}
	}
	if t.parts != nil {
		out.Affinity = d.affinity(object, t)
	}
	out.Labels, out.Annotations = only(out.Labels, PlacementLabel), only(out.Annotations, PlacementAnnotation)
	out.Env = env(object, t.containers)
	return out
}

// affinity reads an affinity whose parts are in different places.
func (d decoder) affinity(object map[string]any, t *Template) *corev1.Affinity {
	a := &corev1.Affinity{}
	v := reflect.ValueOf(a).Elem()
	for _, part := range affinityParts {
		path, ok := t.parts[part]
		if !ok {
			continue
		}
		if raw, ok := Lookup(object, path...); ok {
			d.decode(raw, v.Field(d.types[v.Type()][strings.TrimPrefix(string(part), "affinity.")]), path)
		}
	}
	if *a == (corev1.Affinity{}) {
		return nil
	}
	return a
}
