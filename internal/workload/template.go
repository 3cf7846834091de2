package workload

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/internal/workload/ownership"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// relocate returns the record with the paths of the templates and containers as
// they are now: a list of them may have another order since.
func (k *kind) relocate(record *ownership.Record, object map[string]any) *ownership.Record {
	if !slices.ContainsFunc(record.Fields, func(f ownership.Field) bool { return f.Template != "" || f.Container != "" }) {
		return record
	}
	places := k.places(object)
	out := *record
	out.Fields = nil
	for _, f := range record.Fields {
		if f.Template != "" {
			i := slices.IndexFunc(places, func(p place) bool { return p.name == f.Template })
			if i < 0 {
				continue // the template is gone, and what we wrote with it
			}
			f.Path = places[i].rebase(f.Path)
		}
		if f.Container != "" {
			var there bool
			if f.Path, there = findContainer(object, f.Path, f.Container); !there {
				continue
			}
		}
		out.Fields = append(out.Fields, f)
	}
	return &out
}

// findContainer returns the pointer of a field of a container with the index that
// the container of that name has now; false if there is none.
func findContainer(object map[string]any, pointer, name string) (string, bool) {
	tokens := ownership.Tokens(pointer)
	at := slices.IndexFunc(tokens, func(t string) bool { return slices.Contains(containerLists, t) })
	if at < 0 || at+1 >= len(tokens) {
		return pointer, false
	}
	w := &Workload{Object: object}
	list := w.pathOf(ownership.Pointer(anySlice(tokens[:at+1])...))
	elements, _ := Lookup(object, list...)
	containers, _ := elements.([]any)
	i := slices.IndexFunc(containers, func(c any) bool {
		have, _ := Lookup(c, "name")
		return have == name
	})
	if i < 0 {
		return pointer, false
	}
	tokens[at+1] = strconv.Itoa(i)
	return ownership.Pointer(anySlice(tokens)...), true
}

func anySlice(tokens []string) []any {
	out := make([]any, len(tokens))
	for i, t := range tokens {
		out[i] = t
	}
	return out
}

// place is one template of an object: a sort of template and the choices for
// its wildcards.
type place struct {
	name    string
	def     *templateDef
	binding binding
}

// rebase gives a pointer the choices of the place where its pattern has
// wildcards.
func (p place) rebase(pointer string) string {
	tokens := ownership.Tokens(pointer)
	anchor := p.def.anchor().upToWildcard()
	if len(tokens) < len(anchor) {
		return pointer
	}
	path := anySlice(tokens)
	for i, step := range anchor.path(p.binding) {
		path[i] = step
	}
	return ownership.Pointer(path...)
}

// anchor is the pattern whose wildcards tell the templates of one sort apart.
func (d *templateDef) anchor() pattern {
	switch {
	case d.when != nil:
		return d.when
	case d.spec != nil:
		return d.spec
	}
	for _, f := range slices.Sorted(maps.Keys(d.fields)) {
		return d.fields[f].upToWildcard()
	}
	return nil
}

// places finds the templates of an object.
func (k *kind) places(object map[string]any) []place {
	var out []place
	seen := map[string]bool{}
	for i := range k.templates {
		def := &k.templates[i]
		anchor := def.anchor()
		for _, b := range anchor.bind(object) {
			if v, _ := Lookup(object, anchor.path(b)...); len(anchor) > 0 && !isMap(v) {
				continue
			}
			name := strings.Join(b.names, "/")
			if name == "" && len(k.templates) > 1 {
				name = def.sort
			}
			if seen[name] && def.sort != "" {
				name = def.sort + "/" + name
			}
			seen[name] = true
			out = append(out, place{name, def, b})
		}
	}
	return out
}

func isMap(v any) bool {
	_, ok := v.(map[string]any)
	return ok
}

// templates reads the templates; base is the object without us.
func (r *reader) templates(base map[string]any) {
	places := r.kind.places(r.w.Object)
	if len(places) == 0 {
		r.report("workload/no-template", nil, diag.Warning, "the object has no pod template, so that no policy can place its pods")
	}
	for _, p := range places {
		r.w.Templates = append(r.w.Templates, r.template(p, base))
	}
}

func (r *reader) template(p place, base map[string]any) Template {
	w := r.w
	t := Template{
		Name: p.name, RevisionLabel: r.kind.revision, RunLabel: r.kind.run, Immutable: r.kind.immutable,
		Paths: map[Field]Path{}, PodSpec: p.def.spec.bound(p.binding), ServiceAccount: "default",
	}
	if t.PodSpec != nil {
		for _, f := range specFields {
			t.Paths[f] = t.PodSpec.join(string(f))
		}
	}
	t.containers = containersIn(w.Object, t.PodSpec)
	for f, pattern := range p.def.fields {
		path := pattern.path(p.binding)
		if strings.HasPrefix(string(f), string(Affinity)+".") {
			if t.parts == nil {
				t.parts = map[Field]Path{}
			}
			t.parts[f] = path
			continue
		}
		t.Paths[f] = path
	}
	t.PodLabels = r.podLabels(p)
	labels := p.def.labels.bound(p.binding)
	v, _ := Lookup(base, labels...)
	if len(labels) == 0 {
		v = nil
	} else if !p.def.readOnly {
		t.Paths[TemplateLabels] = labels
	}
	if annotations := p.def.annotations.bound(p.binding); len(annotations) > 0 {
		t.Paths[TemplateAnnotations] = annotations
	}
	t.Labels = maps.Clone(r.stringMap(v, labels...))
	if t.Labels == nil {
		t.Labels = map[string]string{}
	}
	maps.Copy(t.Labels, t.PodLabels)

	d := decoder{types: r.kinds.types, report: func(path Path, severity diag.Severity, message string) {
		rule := "workload/invalid-field"
		if severity == diag.Warning {
			rule = "workload/unknown-field"
		}
		r.report(rule, path, severity, message)
	}}
	t.Current = d.fields(w.Object, &t)
	t.Pods = t.Current
	if w.Record != nil {
		d.report = func(Path, diag.Severity, string) {}
		t.Pods = d.fields(base, &t)
	}
	r.spec(&t)
	t.Count = count(w, &t)
	return t
}

// bound is path, nil for no pattern.
func (p pattern) bound(b binding) Path {
	if p == nil {
		return nil
	}
	return p.path(b)
}

// podLabels are the labels that the kind's controller adds.
func (r *reader) podLabels(p place) map[string]string {
	out := map[string]string{}
	for k, v := range r.kind.podLabels {
		if label, ok := strings.CutPrefix(v, "{label:"); ok {
			if value, ok := r.w.Labels[strings.TrimSuffix(label, "}")]; ok {
				out[k] = value
			}
			continue
		}
		v = strings.ReplaceAll(v, "{name}", r.w.Name)
		v = strings.ReplaceAll(v, "{template}", p.name)
		out[k] = strings.ReplaceAll(v, "{template:lower}", strings.ToLower(p.name))
	}
	return out
}

// spec reads what else matters of a pod spec.
func (r *reader) spec(t *Template) {
	if t.PodSpec == nil {
		return
	}
	v, _ := Lookup(r.w.Object, t.PodSpec...)
	spec, _ := v.(map[string]any)
	for _, field := range []string{"serviceAccount", "serviceAccountName"} {
		if s, ok := spec[field].(string); ok && s != "" {
			t.ServiceAccount = s
		}
	}
	volumes, _ := spec["volumes"].([]any)
	for _, volume := range volumes {
		if name, ok := Lookup(volume, "persistentVolumeClaim", "claimName"); ok {
			if s, ok := name.(string); ok {
				t.Claims = append(t.Claims, s)
			}
		}
	}
	if r.kind.claims {
		t.Claims = append(t.Claims, r.claims()...)
	}
}

// claims are the names of the claims that a StatefulSet makes for its pods.
func (r *reader) claims() []string {
	n := int32(1)
	if r.w.Replicas != nil {
		n = min(*r.w.Replicas, 1000)
	}
	first, _ := lookupInt(r.w.Object, Path{"spec", "ordinals", "start"})
	list, _ := Lookup(r.w.Object, "spec", "volumeClaimTemplates")
	templates, _ := list.([]any)
	var out []string
	for _, t := range templates {
		name, _ := Lookup(t, "metadata", "name")
		for i := range n {
			out = append(out, fmt.Sprintf("%v-%s-%d", name, r.w.Name, first+i))
		}
	}
	return out
}
