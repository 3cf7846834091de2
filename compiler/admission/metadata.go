package admission

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/compiler/cel"
)

// keys sets labels and annotations, one key each. For each there is a variable
// with the value that it gets, or the empty string.
func (p *program) keys(s Set) {
	for _, annotation := range []bool{false, true} {
		field := "labels"
		if annotation {
			field = "annotations"
		}
		at := fmt.Sprintf("variables.pod.metadata.?%s", field)
		var set []string
		var patches []string
		for i, key := range s.keyNames(annotation) {
			var rows []string
			var whens []When
			for _, w := range s.Keys {
				if w.Annotation != annotation || w.Key != key {
					continue
				}
				value := w.Value
				if !w.Computed {
					value = cel.Quote(value)
				}
				rows, whens = append(rows, value), append(whens, w.When)
			}
			name := fmt.Sprintf("%s_%d", field, i)
			p.chosen(name+"_chosen", whens, itself)
			p.define(name, `%[1]s[?%[2]s].hasValue() ? "" : (variables.%[3]s_chosen.map(i, %[4]s) + [""])[0]`, at, cel.Quote(key), name, p.numbered(name+"_values", rows))
			condition := "variables." + name + ` != ""`
			set = append(set, condition)
			patches = append(patches, operation(condition, "add", "variables.metadataPath + "+cel.Quote(pointer(field, key)), "variables."+name))
		}
		if len(set) == 0 {
			continue
		}
		p.changes("metadata."+field, cel.Or(set...))
		missing := "!" + at + ".hasValue()"
		if annotation {
			// Those of a pod are made for the mark already.
			missing = cel.And("variables.daemonSet", missing)
		}
		p.patch(operation("("+cel.Or(set...)+") && "+missing, "add", `variables.metadataPath + "/`+field+`"`, emptyMap))
		for _, patch := range patches {
			p.patch(patch)
		}
	}
}

// keyNames lists the keys that any wish is for, sorted.
func (s Set) keyNames(annotation bool) []string {
	var out []string
	for _, w := range s.Keys {
		if w.Annotation == annotation {
			out = append(out, w.Key)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// gates appends the scheduling gates that the pod does not have yet.
func (p *program) gates(s Set) {
	if len(s.Gates) == 0 {
		return
	}
	var names []string
	var whens []When
	for _, w := range s.Gates {
		names, whens = append(names, cel.Quote(w.Name)), append(whens, w.When)
	}
	p.chosen("gatesChosen", whens, itself)
	p.define("gatesOwn", `variables.spec.?schedulingGates.orValue([])`)
	p.define("gatesAdded", `variables.spec.?nodeName.orValue("") != "" ? [""].filter(n, false)
  : variables.gatesChosen.map(i, %s).filter(n, !variables.gatesOwn.exists(g, g.name == n))`, p.numbered("gateNames", names))
	added := "variables.gatesAdded"
	p.changes("schedulingGates", added+".size() > 0")
	p.patch(operation(added+".size() > 0 && variables.gatesOwn.size() == 0", "add", under("/schedulingGates"), emptyList))
	p.patch(fmt.Sprintf(`%s.map(n, JSONPatch{op: "add", path: %s, value: {"name": n}})`, added, under("/schedulingGates/-")))
}

// devices appends the variable to the environments of containers.
func (p *program) devices(s Set) {
	byVariable := map[string][]Devices{}
	var variables []string
	for _, w := range s.Devices {
		if !slices.Contains(variables, w.Variable) {
			variables = append(variables, w.Variable)
		}
		byVariable[w.Variable] = append(byVariable[w.Variable], w)
	}
	for i, variable := range variables {
		wishes := byVariable[variable]
		var whens []When
		for _, w := range wishes {
			whens = append(whens, w.When)
		}
		name := fmt.Sprintf("devices_%d", i)
		// The one name "*", which no container can have, stands for all of them.
		p.define(name, "%s.flatten()", p.chosenTexts(name, whens, func(n int) []string {
			if wishes[n].Containers == nil {
				return []string{"*"}
			}
			return wishes[n].Containers
		}))
		value, _ := literal(map[string]any{"name": variable, "valueFrom": map[string]any{
			"fieldRef": map[string]any{"fieldPath": "metadata.annotations['" + wishes[0].Annotation + "']"},
		}})
		var pending []string
		for _, list := range []string{"initContainers", "containers"} {
			containers := fmt.Sprintf("variables.spec.?%s.orValue([])", list)
			lacks := fmt.Sprintf(`("*" in variables.%[1]s || string(c.name) in variables.%[1]s) && !c.?env.orValue([]).exists(e, e.name == %[2]s)`, name, cel.Quote(variable))
			pending = append(pending, fmt.Sprintf("%s.exists(c, %s)", containers, lacks))
			at := under("/"+list+"/") + ` + string(n) + "/env`
			p.patch(fmt.Sprintf(`%[1]s.transformList(n, c, %[2]s, (c.?env.orValue([]).size() == 0 ? [JSONPatch{op: "add", path: %[3]s", value: %[4]s}] : [])
  + [JSONPatch{op: "add", path: %[3]s/-", value: dyn(%[5]s)}]).flatten()`, containers, lacks, at, emptyList, value))
		}
		p.changes("env", strings.Join(pending, " || "))
	}
}

// chosenTexts returns the list of the texts of the wishes whose cases hold.
func (p *program) chosenTexts(name string, whens []When, texts func(i int) []string) string {
	rows := make([]string, len(whens))
	for i := range whens {
		quoted := make([]string, len(texts(i)))
		for j, t := range texts(i) {
			quoted[j] = cel.Quote(t)
		}
		rows[i] = list(quoted)
	}
	p.chosen(name+"_chosen", whens, itself)
	return fmt.Sprintf("variables.%s_chosen.map(i, %s)", name, p.numbered(name+"_values", rows))
}
