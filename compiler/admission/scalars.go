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
		for _, w := range s.Scalars {
			if w.Field == field {
				rows = append(rows, either(w.When, cel.Quote(w.Value), `""`))
			}
		}
		if len(rows) == 0 {
			p.define(field, `""`)
			continue
		}
		p.define(field+"Asked", `(%s + [""]).filter(v, v != "")`, lines(rows))
		condition := fmt.Sprintf("variables.spec.?%s.orValue(\"\") in %s", field, free[field])
		if field == preemptionPolicy {
			// The API server has filled in that of the class, and refuses any other.
			condition = `variables.daemonSet ? !has(variables.spec.preemptionPolicy) : variables.priorityClassName != ""`
		}
		p.define(field, `variables.%[1]sAsked.size() > 0 && (%[2]s) && variables.%[1]sAsked[0] != variables.spec.?%[1]s.orValue("") ? variables.%[1]sAsked[0] : ""`, field, condition)
	}
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

// raw defines for each leaf the list of the value that it sets: of one, or none.
func (p *program) raw(s Set) {
	for i, place := range s.leafPlaces() {
		at := "variables.spec"
		for _, step := range place.path {
			at += "[?" + cel.Quote(step) + "]"
		}
		condition := "!" + at + ".hasValue()"
		if v, ok := serverDefaults[strings.Join(place.path, ".")]; ok {
			text, _ := literal(v)
			condition = cel.Or(condition, at+".value() == "+text)
		}
		var rows []string
		for _, l := range place.leaves {
			text, _ := literal(plain(l.Value))
			rows = append(rows, either(l.When, "[dyn("+text+")]", "[]"))
		}
		p.define(fmt.Sprintf("raw_%d", i), `%s ? %s.flatten().filter(v, !%s.hasValue() || %s.value() != v).transformList(i, v, i == 0, v) : []`, condition, lines(rows), at, at)
	}
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
