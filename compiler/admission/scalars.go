package admission

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/compiler/cel"
)

// serverDefaults are the values that the API server has already filled in when
// a pod is admitted, where its manifest says nothing: whoever wrote the manifest
// did not choose them.
var serverDefaults = map[string]any{
	"dnsPolicy":                     "ClusterFirst",
	"enableServiceLinks":            true,
	"restartPolicy":                 "Always",
	"terminationGracePeriodSeconds": int64(30),
}

const (
	priorityClassName = "priorityClassName"
	preemptionPolicy  = "preemptionPolicy"
	schedulerName     = "schedulerName"
)

// scalars defines for each field with one value the value that it gets, or the
// empty string where it stays.
func (p *program) scalars(s Set) {
	free := map[string]string{
		priorityClassName: texts([]string{"", s.DefaultClass}),
		schedulerName:     texts([]string{"", "default-scheduler"}),
	}
	for _, field := range []string{priorityClassName, schedulerName, preemptionPolicy} {
		var rows []string
		var whens []When
		for _, w := range s.Scalars {
			if w.Field == field {
				rows, whens = append(rows, cel.Quote(w.Value)), append(whens, w.When)
			}
		}
		if len(rows) == 0 {
			continue
		}
		p.chosen(field+"Chosen", whens, itself)
		p.define(field+"Asked", "variables.%sChosen.map(i, %s)", field, p.numbered(field+"Values", rows))
		if field == preemptionPolicy && !s.has(priorityClassName) {
			p.define(priorityClassName, `""`)
		}
		condition := fmt.Sprintf("variables.spec.?%s.orValue(\"\") in %s", field, free[field])
		if field == preemptionPolicy {
			// The API server has filled in that of the class, and refuses any other.
			condition = `variables.daemonSet ? !has(variables.spec.preemptionPolicy) : variables.priorityClassName != ""`
		}
		p.define(field, `variables.%[1]sAsked.size() > 0 && (%[2]s) && variables.%[1]sAsked[0] != variables.spec.?%[1]s.orValue("") ? variables.%[1]sAsked[0] : ""`, field, condition)
		set := "variables." + field + ` != ""`
		p.changes(field, set)
		if field == priorityClassName {
			// What came of the class that the pod had; the API server fills in ours.
			p.patch(operation(set+" && has(variables.spec.priority)", "remove", under("/priority"), ""))
			p.patch(operation(set+" && has(variables.spec.preemptionPolicy)", "remove", under("/preemptionPolicy"), ""))
		}
		p.patch(operation(set, "add", under("/"+field), "variables."+field))
	}
}

// has reports whether any wish is for the field.
func (s Set) has(field string) bool {
	return slices.ContainsFunc(s.Scalars, func(w Scalar) bool { return w.Field == field })
}

// leafPlace is a place in the pod spec at which leaves set a value.
type leafPlace struct {
	path   []string
	leaves []Leaf
}

func (s Set) leafPlaces() []leafPlace {
	byPath := map[string]*leafPlace{}
	for _, l := range s.Leaves {
		key := strings.Join(l.Path, "\x00")
		if byPath[key] == nil {
			byPath[key] = &leafPlace{path: l.Path}
		}
		byPath[key].leaves = append(byPath[key].leaves, l)
	}
	var out []leafPlace
	for _, key := range slices.Sorted(maps.Keys(byPath)) {
		out = append(out, *byPath[key])
	}
	return out
}

// raw sets leaves. For each place there is a variable with the value that it
// gets: a list of one, or of none.
func (p *program) raw(s Set) {
	parents := map[string][]string{}
	paths := map[string][]string{}
	for i, place := range s.leafPlaces() {
		for n := 1; n < len(place.path); n++ {
			at := pointer(place.path[:n]...)
			parents[at], paths[at] = append(parents[at], fmt.Sprintf("variables.raw_%d.size() > 0", i)), place.path[:n]
		}
	}
	for _, at := range slices.Sorted(maps.Keys(parents)) {
		p.patch(operation("("+cel.Or(parents[at]...)+") && !"+specField(paths[at])+".hasValue()", "add", under(at), emptyMap))
	}
	for i, place := range s.leafPlaces() {
		at := specField(place.path)
		condition := "!" + at + ".hasValue()"
		if v, ok := serverDefaults[strings.Join(place.path, ".")]; ok {
			text, _ := literal(v)
			condition = cel.Or(condition, at+".value() == "+text)
		}
		var rows []string
		var whens []When
		for _, l := range place.leaves {
			text, _ := literal(plain(l.Value))
			rows, whens = append(rows, "dyn("+text+")"), append(whens, l.When)
		}
		name := fmt.Sprintf("raw_%d", i)
		p.chosen(name+"_chosen", whens, itself)
		p.define(name, `%s ? variables.%s_chosen.map(i, %s).filter(v, !%s.hasValue() || %s.value() != v).transformList(i, v, i == 0, v) : []`, condition, name, p.numbered(name+"_values", rows), at, at)
		set := "variables." + name
		p.changes(strings.Join(place.path, "."), set+".size() > 0")
		p.patch(fmt.Sprintf(`%s.map(v, JSONPatch{op: "add", path: %s, value: v})`, set, under(pointer(place.path...))))
	}
}

// specField is the value of a field of the pod spec: an optional.
func specField(path []string) string {
	at := "variables.spec"
	for _, step := range path {
		at += "[?" + cel.Quote(step) + "]"
	}
	return at
}

// plain returns the value with JSON's own types alone.
func plain(v any) any {
	data, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	var out any
	if err := json.Unmarshal(data, &out); err != nil {
		return nil
	}
	return out
}

// pointer returns the JSON pointer of a path.
func pointer(path ...string) string {
	var b strings.Builder
	for _, step := range path {
		b.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(step))
	}
	return b.String()
}
