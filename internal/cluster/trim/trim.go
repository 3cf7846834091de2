// Package trim takes out of API objects all that scheduling does not read. It is
// an allow-list: what is not named in fields.go is gone, so that a field that
// some later API version adds cannot get into a snapshot by itself.
//
// The package must not know where objects come from, or what is concluded from
// them.
package trim

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Keep says which annotations besides those of KeepsAnnotation are kept, by their
// keys; nil for no others.
type Keep func(key string) bool

// Object takes out of the object, in place, all but what scheduling reads: of the
// fields those of the allow-list of its kind, of the annotations those that are
// kept. A kind without an allow-list is an error, and the object as it was.
func Object(o metav1.Object, keep Keep) error {
	v := reflect.ValueOf(o)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return fmt.Errorf("trim a %T: it is no pointer to an object", o)
	}
	plan, ok := plans()[v.Type().Elem()]
	if !ok {
		return fmt.Errorf("trim a %T: there is no list of the fields that scheduling reads of it", o)
	}
	plan.apply(v.Elem(), keep)
	o.SetAnnotations(keep.annotations(o.GetAnnotations()))
	return nil
}

// PodSpec takes out of a pod's spec all but what scheduling reads, in place.
func PodSpec(s *corev1.PodSpec) { podSpecPlan().apply(reflect.ValueOf(s).Elem(), nil) }

// plan is what is kept of values of one type. A nil plan keeps all.
type plan struct {
	// fields has, for each field of a struct, whether it is kept and what of it; nil
	// for a pointer, list or map, whose elements elem is for.
	fields []fieldPlan
	elem   *plan
	// after makes smaller what a list of fields alone cannot.
	after func(reflect.Value, Keep)
}

type fieldPlan struct {
	kept bool
	plan *plan
}

func (p *plan) apply(v reflect.Value, keep Keep) {
	if p == nil {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			p.elem.apply(v.Elem(), keep)
		}
	case reflect.Slice:
		for i := range v.Len() {
			p.elem.apply(v.Index(i), keep)
		}
	case reflect.Struct:
		for i, f := range p.fields {
			switch {
			case !f.kept:
				v.Field(i).SetZero()
			case f.plan != nil:
				f.plan.apply(v.Field(i), keep)
			}
		}
		if p.after != nil {
			p.after(v, keep)
		}
	default: // leaves are kept as they are, and paths lead through no maps
	}
}

// tree is a set of paths: the steps that go on from here. An empty tree is the
// end of a path, and keeps all below.
type tree map[string]tree

// add adds a path in dots; "a.{b,c.d}" stands for both "a.b" and "a.c.d".
func (t tree) add(path string) {
	at := t
	for {
		head, rest, more := strings.Cut(path, ".")
		if strings.HasPrefix(path, "{") {
			for _, alternative := range split(path[1 : len(path)-1]) {
				at.add(alternative)
			}
			return
		}
		if at[head] == nil {
			at[head] = tree{}
		}
		if !more {
			return
		}
		at, path = at[head], rest
	}
}

// split divides at the commas that are in no braces.
func split(text string) []string {
	var parts []string
	depth, start := 0, 0
	for i, r := range text {
		switch r {
		case '{':
			depth++
		case '}':
			depth--
		case ',':
			if depth == 0 {
				parts = append(parts, text[start:i])
				start = i + 1
			}
		}
	}
	return append(parts, text[start:])
}

// compile makes the plan for values of the type. It panics on a path that the type
// does not have, which is a mistake in fields.go that no input can bring about.
func (t tree) compile(of reflect.Type) *plan {
	if len(t) == 0 {
		return nil
	}
	switch of.Kind() {
	case reflect.Pointer, reflect.Slice:
		return &plan{elem: t.compile(of.Elem())}
	case reflect.Struct:
	default:
		panic(fmt.Sprintf("trim: %s has no fields %v", of, t))
	}
	p := &plan{fields: make([]fieldPlan, of.NumField()), after: afters[of]}
	found := map[string]bool{}
	for i := range of.NumField() {
		name, inline := jsonName(of.Field(i))
		if inline {
			within := tree{}
			for _, inner := range jsonNames(of.Field(i).Type) {
				if below, ok := t[inner]; ok {
					within[inner], found[inner] = below, true
				}
			}
			if len(within) > 0 {
				p.fields[i] = fieldPlan{true, within.compile(of.Field(i).Type)}
			}
			continue
		}
		if below, ok := t[name]; ok {
			p.fields[i], found[name] = fieldPlan{true, below.compile(of.Field(i).Type)}, true
		}
	}
	for name := range t {
		if !found[name] {
			panic(fmt.Sprintf("trim: %s has no field %q", of, name))
		}
	}
	return p
}

// jsonName returns the name of a field in JSON, and whether the fields of the
// field count as the struct's own.
func jsonName(f reflect.StructField) (name string, inline bool) {
	name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name, name == "" && (f.Anonymous || slices.Contains(strings.Split(options, ","), "inline"))
}

// jsonNames returns the names of the fields of a struct.
func jsonNames(of reflect.Type) []string {
	var names []string
	for i := range of.NumField() {
		name, inline := jsonName(of.Field(i))
		if inline {
			names = append(names, jsonNames(of.Field(i).Type)...)
			continue
		}
		names = append(names, name)
	}
	return names
}

var plans = sync.OnceValue(func() map[reflect.Type]*plan {
	all := map[reflect.Type]*plan{}
	for of, paths := range kindFields() {
		t := tree{}
		for _, path := range append(metadataFields(), paths...) {
			t.add(path)
		}
		all[of] = t.compile(of)
	}
	return all
})

var podSpecPlan = sync.OnceValue(func() *plan {
	t := tree{}
	t.add(podSpecFields)
	return t.compile(reflect.TypeFor[corev1.PodSpec]())
})
