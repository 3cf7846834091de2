package workload

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-sched/kubectl-sched/internal/workload/ownership"
	"github.com/kubectl-sched/kubectl-sched/internal/workload/plain"
	"github.com/kubectl-sched/kubectl-sched/internal/workload/yamledit"
)

// Stamp is what a Record says besides the fields; the zero Stamp is for
// manifests.
type Stamp struct {
	UID      string
	Revision int
}

// Written is a workload's object with a new placement.
type Written struct {
	// Object is the object as it is to be, with the annotation that holds
	// Record; it shares the unchanged parts with Workload.Object.
	Object map[string]any
	// Record is what we own in it; nil if nothing (then there is no annotation).
	Record *ownership.Record
	// Edits change Workload.Object into Object. Their paths start at the
	// document, so that they fit yamledit.Apply of Source.Document; empty if
	// nothing changes.
	Edits []yamledit.Edit
}

// atoms are the fields of a pod spec that are owned as a whole, by their path in
// PodFields. The keys of maps (keyed), variables of containers, and what raw.pod
// sets come on top.
var atoms = []Path{
	{"affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"},
	{"affinity", "nodeAffinity", "preferredDuringSchedulingIgnoredDuringExecution"},
	{"affinity", "podAffinity", "requiredDuringSchedulingIgnoredDuringExecution"},
	{"affinity", "podAffinity", "preferredDuringSchedulingIgnoredDuringExecution"},
	{"affinity", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution"},
	{"affinity", "podAntiAffinity", "preferredDuringSchedulingIgnoredDuringExecution"},
	{"tolerations"},
	{"topologySpreadConstraints"},
	{"priorityClassName"},
	{"preemptionPolicy"},
	{"schedulerName"},
	{"schedulingGates"},
	{"schedulingGroup"},
}

// keyed are the fields whose keys are owned one by one.
var keyed = []Field{NodeSelector, TemplateLabels, TemplateAnnotations}

// Write gives the templates a new placement: after maps an index into Templates
// to what it shall be. A template that is not in after goes back to what it is
// without us. Fields that after leaves as they are in Template.Pods keep every
// byte, also what our API types do not know.
//
// Errors name a field that the template cannot carry.
func (w *Workload) Write(after map[int]PodFields, stamp Stamp) (*Written, error) {
	base, _ := ownership.Withdraw(w.Object, w.Record)
	var writes []ownership.Write
	for _, i := range slices.Sorted(maps.Keys(after)) {
		if i < 0 || i >= len(w.Templates) {
			return nil, fmt.Errorf("%s: there is no template %d among %d", w.Ref(), i, len(w.Templates))
		}
		list, err := w.Templates[i].writes(base, after[i])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", w.Ref(), err)
		}
		writes = append(writes, list...)
	}
	out := &Written{Object: base, Record: ownership.Build(base, writes)}
	if out.Record != nil {
		out.Record.UID, out.Record.Revision = stamp.UID, stamp.Revision
		text, err := out.Record.Encode()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", w.Ref(), err)
		}
		out.Object = ownership.Apply(base, writes, text)
	}
	out.Edits = w.edits(out)
	return out, nil
}

// writes returns what changes of a template.
func (t *Template) writes(base map[string]any, after PodFields) ([]ownership.Write, error) {
	var out []ownership.Write
	typed := after
	typed.Raw = nil
	if !reflect.DeepEqual(typed, t.Pods) {
		before, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&t.Pods)
		if err != nil {
			return nil, err
		}
		wanted, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&typed)
		if err != nil {
			return nil, err
		}
		for _, atom := range append(slices.Clone(atoms), keyAtoms(before, wanted)...) {
			old, _ := Lookup(before, atom...)
			value, _ := Lookup(wanted, atom...)
			if plain.Equal(old, value) {
				continue
			}
			path, ok := t.atomPath(atom)
			if !ok {
				return nil, fmt.Errorf("the template %q cannot carry %s", t.Name, atom)
			}
			raw, _ := Lookup(base, path...)
			if value != nil {
				value = merge(raw, old, value)
			}
			out = append(out, ownership.Write{Path: path.Pointer(), Template: t.Name, Before: raw, After: value})
		}
	}
	variables, err := t.writeEnv(base, after.Env)
	if err != nil {
		return nil, err
	}
	out = append(out, variables...)
	for _, leaf := range leaves(after.Raw, nil) {
		if t.PodSpec == nil {
			return nil, fmt.Errorf("the template %q has no pod spec to carry %s", t.Name, leaf.path)
		}
		path := t.PodSpec.join(leaf.path...)
		raw, _ := Lookup(base, path...)
		out = append(out, ownership.Write{Path: path.Pointer(), Template: t.Name, Before: raw, After: leaf.value})
	}
	return out, nil
}

// writeEnv returns what changes of the containers' environments.
func (t *Template) writeEnv(base map[string]any, after map[string][]corev1.EnvVar) ([]ownership.Write, error) {
	var out []ownership.Write
	for _, name := range sortedKeys(after) {
		if reflect.DeepEqual(after[name], t.Pods.Env[name]) {
			continue
		}
		path, ok := t.EnvPath(name)
		if !ok {
			return nil, fmt.Errorf("the template %q has no container %q to carry %s", t.Name, name, Env)
		}
		raw, _ := Lookup(base, path...)
		list, ok := raw.([]any)
		if raw != nil && !ok {
			return nil, fmt.Errorf("%s is no list", path)
		}
		now, err := withVariables(list, after[name])
		if err != nil {
			return nil, err
		}
		out = append(out, ownership.Write{Path: path.Pointer(), Template: t.Name, Container: name, Before: raw, After: now})
	}
	return out, nil
}

// keyAtoms are the keys of the maps that are owned key by key.
func keyAtoms(a, b map[string]any) []Path {
	var out []Path
	for _, f := range keyed {
		keys := map[string]bool{}
		for _, m := range []map[string]any{a, b} {
			v, _ := m[string(f)].(map[string]any)
			for k := range v {
				keys[k] = true
			}
		}
		for _, k := range sortedKeys(keys) {
			out = append(out, Path{string(f), k})
		}
	}
	return out
}

// atomPath is where the object has an atom.
func (t *Template) atomPath(atom Path) (Path, bool) {
	field := Field(fmt.Sprint(atom[0]))
	if field == Affinity {
		return t.PathOf(Field(fmt.Sprintf("%s.%s", atom[0], atom[1])), atom[2:]...)
	}
	return t.PathOf(field, atom[1:]...)
}

// leaf is one value that raw.pod sets.
type leaf struct {
	path  Path
	value any
}

// leaves lists the values of nested maps that are no maps themselves, or empty.
func leaves(v any, path Path) []leaf {
	m, ok := v.(map[string]any)
	if !ok || len(m) == 0 && len(path) > 0 {
		return []leaf{{path, plainNumbers(v)}}
	}
	var out []leaf
	for _, k := range sortedKeys(m) {
		out = append(out, leaves(m[k], path.join(k))...)
	}
	return out
}

// plainNumbers returns v with whole numbers as int64, as objects have them.
func plainNumbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = plainNumbers(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = plainNumbers(e)
		}
		return out
	case int:
		return int64(v)
	case int32:
		return int64(v)
	case float64:
		if v == float64(int64(v)) {
			return int64(v)
		}
	}
	return v
}

// merge returns what raw becomes by the difference from old to value, which are
// raw and its successor as our API types know them: what they do not know of raw
// stays.
func merge(raw, old, value any) any {
	if plain.Equal(old, value) {
		return raw
	}
	switch v := value.(type) {
	case map[string]any:
		r, ok := raw.(map[string]any)
		o, ok2 := old.(map[string]any)
		if !ok || !ok2 {
			return value
		}
		out := map[string]any{}
		for k, e := range r {
			if _, known := o[k]; !known {
				out[k] = e
			}
		}
		for k, e := range v {
			if before, was := o[k]; was {
				out[k] = merge(r[k], before, e)
			} else {
				out[k] = e
			}
		}
		return out
	case []any:
		r, ok := raw.([]any)
		o, ok2 := old.([]any)
		if !ok || !ok2 || len(r) != len(o) {
			return value
		}
		return mergeElements(r, o, v)
	}
	return value
}

// mergeElements gives each new element the old one that it is or comes from.
func mergeElements(raw, old, value []any) []any {
	out := make([]any, len(value))
	used := make([]bool, len(old))
	found := make([]bool, len(value))
	match := func(fits func(a, b any) bool) {
		for j, e := range value {
			for i, o := range old {
				if !found[j] && !used[i] && fits(o, e) {
					out[j], used[i], found[j] = merge(raw[i], o, e), true, true
				}
			}
		}
	}
	match(plain.Equal)
	match(shareEntry)
	for j, e := range value {
		if !found[j] {
			out[j] = e
		}
	}
	return out
}

// shareEntry reports whether two maps have an entry in common.
func shareEntry(a, b any) bool {
	m, ok := a.(map[string]any)
	n, ok2 := b.(map[string]any)
	if !ok || !ok2 {
		return false
	}
	for k, v := range m {
		if w, ok := n[k]; ok && plain.Equal(v, w) {
			return true
		}
	}
	return false
}

// edits returns the least edits that turn the object into the written one. Only
// the paths that the old or the new record names, and the annotation, differ.
func (w *Workload) edits(out *Written) []yamledit.Edit {
	var pointers []string
	for _, r := range []*ownership.Record{w.Record, out.Record} {
		if r == nil {
			continue
		}
		for _, f := range r.Fields {
			pointers = append(pointers, f.Path)
		}
	}
	pointers = append(pointers, ownership.Pointer("metadata", "annotations", ownership.Annotation))
	var edits []yamledit.Edit
	seen := map[string]bool{}
	for _, pointer := range pointers {
		e, differs := difference(w.Object, out.Object, w.pathOf(pointer))
		if key := Path(e.Path).Pointer(); differs && !seen[key] {
			seen[key] = true
			e.Path = w.Source.Prefix.join(e.Path...)
			edits = append(edits, e)
		}
	}
	slices.SortStableFunc(edits, func(a, b yamledit.Edit) int {
		return strings.Compare(Path(a.Path).Pointer(), Path(b.Path).Pointer())
	})
	return edits
}

// difference returns the edit that makes old equal to now at the path: there,
// or at the parent that only one of them has.
func difference(old, now any, path Path) (yamledit.Edit, bool) {
	for n := range len(path) + 1 {
		a, inOld := Lookup(old, path[:n]...)
		b, inNow := Lookup(now, path[:n]...)
		if n < len(path) && inOld && inNow && sameShape(a, b) {
			continue
		}
		if inOld == inNow && plain.Equal(a, b) {
			return yamledit.Edit{}, false
		}
		return yamledit.Edit{Path: path[:n], Value: b, Delete: !inNow}, true
	}
	return yamledit.Edit{}, false
}

// sameShape reports whether an edit can lead through both values.
func sameShape(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		return isMap(b)
	case []any:
		list, ok := b.([]any)
		return ok && len(a) == len(list)
	}
	return false
}
