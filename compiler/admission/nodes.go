package admission

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/compiler/cel"
	"github.com/kubectl-sched/kubectl-sched/compiler/nodeexpr"
)

// A requirement on nodes is written as [[key, operator], values] in the
// variables, all of them strings, so that a table of them is a constant. A field
// has an "@" before its name, which no label has.

// requirement returns the literal of a requirement.
func requirement(r nodeexpr.Requirement) string {
	key := r.Key.Name
	if r.Key.Field {
		key = "@" + key
	}
	return fmt.Sprintf("[[%s, %s], %s]", cel.Quote(key), cel.Quote(string(r.Operator)), texts(r.Values))
}

// asTerm returns requirements as a term of the API has them, a JSON value: what is
// asked of pods that have nothing of their own is looked up as it is written.
func asTerm(requirements []nodeexpr.Requirement) map[string]any {
	term := map[string]any{}
	for _, r := range requirements {
		field := "matchExpressions"
		if r.Key.Field {
			field = "matchFields"
		}
		list, _ := term[field].([]any)
		term[field] = append(list, asAPI(r))
	}
	return term
}

func asAPI(r nodeexpr.Requirement) map[string]any {
	out := map[string]any{"key": r.Key.Name, "operator": string(r.Operator)}
	if len(r.Values) > 0 {
		values := make([]any, len(r.Values))
		for i, v := range r.Values {
			values[i] = v
		}
		out["values"] = values
	}
	return out
}

// none is an empty list of numbers, which says its type.
const none = "[0].filter(i, false)"

const (
	// termRequirements turns a term of the API, t, into requirements.
	termRequirements = `t.?matchExpressions.orValue([]).map(r, [[string(r.key), string(r.operator)], r.?values.orValue([]).map(v, string(v)).distinct().sort()])
    + t.?matchFields.orValue([]).map(r, [["@" + string(r.key), string(r.operator)], r.?values.orValue([]).map(v, string(v)).distinct().sort()])`

	// implies says whether the requirement q implies r: nodeexpr.Requirement.Implies.
	implies = `q[0][0] == r[0][0] && (
        q == r
        || r[0][1] == "In" && q[0][1] == "In" && q[1].all(v, v in r[1])
        || r[0][1] == "NotIn" && (q[0][1] == "In" && !q[1].exists(v, v in r[1]) || q[0][1] == "NotIn" && r[1].all(v, v in q[1]) || q[0][1] == "DoesNotExist")
        || r[0][1] == "Exists" && q[0][1] in ["In", "Gt", "Lt"]
        || r[0][1] == "Gt" && (q[0][1] == "In" && q[1].all(v, v.matches("^-?[0-9]{1,18}$") && int(v) > int(r[1][0])) || q[0][1] == "Gt" && q[1].all(v, v.matches("^-?[0-9]{1,18}$") && int(v) >= int(r[1][0])))
        || r[0][1] == "Lt" && (q[0][1] == "In" && q[1].all(v, v.matches("^-?[0-9]{1,18}$") && int(v) < int(r[1][0])) || q[0][1] == "Lt" && q[1].all(v, v.matches("^-?[0-9]{1,18}$") && int(v) <= int(r[1][0])))
      )`

	// labelRequirements and fieldRequirements turn a list of requirements back
	// into those of the API.
	labelRequirements = `.filter(r, !r[0][0].startsWith("@")).map(r, {"key": dyn(r[0][0]), "operator": dyn(r[0][1]), ?"values": optional.ofNonZeroValue(dyn(r[1]))})`
	fieldRequirements = `.filter(r, r[0][0].startsWith("@")).map(r, {"key": dyn(r[0][0].substring(1)), "operator": dyn(r[0][1]), ?"values": optional.ofNonZeroValue(dyn(r[1]))})`
)

// nodeLabels defines the labels that nodeSelector gets, and those that it has
// then.
func (p *program) nodeLabels(s Set) {
	if len(s.NodeLabels) == 0 {
		p.define("nodeLabelsAdded", `[["", ""]].filter(l, false)`)
		return
	}
	rows, whens := make([]string, len(s.NodeLabels)), make([]When, len(s.NodeLabels))
	for i, l := range s.NodeLabels {
		rows[i], whens[i] = texts([]string{l.Key, l.Value}), l.When
	}
	p.chosen("nodeLabelsChosen", whens, itself)
	p.define("nodeLabelsAsked", "variables.nodeLabelsChosen.map(i, %s)", p.numbered("nodeLabelRows", rows))
	p.define("nodeLabelsAdded", `variables.nodeLabelsAsked.transformList(i, l,
  !(l[0] in variables.spec.?nodeSelector.orValue({})) && !variables.nodeLabelsAsked.slice(0, i).exists(o, o[0] == l[0]), l)`)
	p.changes("nodeSelector", "variables.nodeLabelsAdded.size() > 0")
	p.parents("variables.nodeLabelsAdded.size() > 0", "nodeSelector")
	p.patch(fmt.Sprintf(`variables.nodeLabelsAdded.map(l, JSONPatch{op: "add", path: %s + jsonpatch.escapeKey(l[0]), value: l[1]})`, under("/nodeSelector/")))
}

// nodeAffinity adds to the node affinity, of which a pod mostly has none.
func (p *program) nodeAffinity(s Set) {
	if (s.Required.Table == nil || len(s.Required.Table.Expressions) == 0) && len(s.Preferred) == 0 {
		return
	}
	p.requiredAsked(s)
	p.preferredAsked(s)
	merge := func() {
		p.required(s)
		p.preferred(s)
	}
	if t := s.Required.Table; t != nil && singles(t) < len(t.Expressions) {
		// Which of several alternatives is needed depends on the others.
		p.chosen("requiredChoices", s.Required.When[singles(t):], itself)
		may := []string{"variables.requiredAsked.size() > 0", "variables.requiredChoices.size() > 0"}
		if len(s.Preferred) > 0 {
			may = append(may, "variables.preferredAsked.size() > 0")
		}
		p.costly("("+cel.Or(may...)+")", merge)
		return
	}
	asked, ok := p.nodeAffinityOfCells(s)
	if !ok {
		asked = p.nodeAffinityAsked(s)
	}
	plain := "variables.spec.?nodeSelector.orValue({}).size() == 0"
	if len(s.NodeLabels) > 0 {
		plain += " && variables.nodeLabelsAdded.size() == 0"
	}
	p.whole("nodeAffinity", "affinity", "/affinity/nodeAffinity", []string{"affinity", "nodeAffinity"}, plain, "variables.nodeAffinityAsked", asked, merge)
}

// nodeAffinityOfCells defines the node affinity that a pod without any gets, where
// its cell says it all, and returns the condition that there is some.
func (p *program) nodeAffinityOfCells(s Set) (asked string, ok bool) {
	var required [][]int
	if t := s.Required.Table; t != nil && len(t.Expressions) > 0 {
		if required, ok = s.requiredPerCell(p); !ok {
			return "", false
		}
	}
	preferred, ok := s.preferredPerCell(p)
	if !ok {
		return "", false
	}
	values := make([]map[string]any, len(p.cells))
	for n := range p.cells {
		value := map[string]any{}
		if required != nil && len(required[n]) > 0 {
			var all []nodeexpr.Requirement
			for _, i := range required[n] {
				all = append(all, s.Required.Table.Requirements[i])
			}
			value["requiredDuringSchedulingIgnoredDuringExecution"] = map[string]any{"nodeSelectorTerms": []any{asTerm(all)}}
		}
		var terms []any
		for _, w := range heaviestFirst(preferred[n]) {
			terms = append(terms, map[string]any{"weight": int64(w.weight), "preference": asTerm(nodeexpr.Requirements(s.Preferred[w.term].Term))})
		}
		if len(terms) > 0 {
			value["preferredDuringSchedulingIgnoredDuringExecution"] = terms
		}
		values[n] = value
	}
	return "variables.nodeAffinityAsked.size() > 0", p.defineObjects("nodeAffinityAsked", values)
}

// nodeAffinityAsked defines the same where it takes more than the cell, and returns
// the condition.
func (p *program) nodeAffinityAsked(s Set) string {
	var fields, asked []string
	if t := s.Required.Table; t != nil && len(t.Expressions) > 0 {
		api, labels := make([]any, len(t.Requirements)), "variables.requiredMinimal"
		var ofFields []int
		for i, r := range t.Requirements {
			if api[i] = asAPI(r); r.Key.Field {
				ofFields = append(ofFields, i)
			}
		}
		p.constants("apiRequirements", api)
		term := ""
		if len(ofFields) > 0 {
			labels = "variables.requiredMinimal.filter(i, !(i in " + numbers(ofFields) + "))"
			term = `, ?"matchFields": optional.ofNonZeroValue(variables.requiredMinimal.filter(i, i in ` + numbers(ofFields) + `).map(i, variables.apiRequirements[i]))`
		}
		term = `?"matchExpressions": optional.ofNonZeroValue(` + labels + `.map(i, variables.apiRequirements[i]))` + term
		asked = append(asked, "variables.requiredMinimal.size() > 0")
		fields = append(fields, `?"requiredDuringSchedulingIgnoredDuringExecution": variables.requiredMinimal.size() == 0 ? optional.none() : optional.of(dyn({"nodeSelectorTerms": [{`+term+`}]}))`)
	}
	if len(s.Preferred) > 0 {
		asked = append(asked, "variables.preferredAsked.size() > 0")
		fields = append(fields, `?"preferredDuringSchedulingIgnoredDuringExecution": optional.ofNonZeroValue(dyn(`+s.preferredTerms("variables.preferredAsked")+`))`)
	}
	p.define("nodeAffinityAsked", "{\n  %s\n}", strings.Join(fields, ",\n  "))
	return cel.Or(asked...)
}

// requiredAsked defines the requirements that are asked for: by expressions of
// one alternative, and of these what no other one says.
func (p *program) requiredAsked(s Set) {
	t := s.Required.Table
	if t == nil || len(t.Expressions) == 0 {
		return
	}
	rows, impliedBy := make([]string, len(t.Requirements)), make([][]int, len(t.Requirements))
	for i, r := range t.Requirements {
		rows[i] = requirement(r)
		for _, j := range t.Implied[i] {
			if j != i {
				impliedBy[j] = append(impliedBy[j], i)
			}
		}
	}
	p.define("requirements", "%s", lines(rows))
	p.chosen("requiredAsked", s.Required.When[:singles(t)], func(i int) []int { return t.Expressions[i].Alternatives[0] })
	if minimal, ok := s.requiredPerCell(p); ok {
		p.defineNumbers("requiredMinimal", minimal)
		return
	}
	if !slices.ContainsFunc(impliedBy, func(by []int) bool { return len(by) > 0 }) {
		p.define("requiredMinimal", "variables.requiredAsked")
		return
	}
	p.define("requiredMinimal", `variables.requiredAsked.filter(i, !%s[i].exists(j, j in variables.requiredAsked))`, numberRows(impliedBy))
}

// requiredPerCell returns the requirements of each cell that no other one says;
// false where they depend on more than the cell.
func (s Set) requiredPerCell(p *program) ([][]int, bool) {
	t := s.Required.Table
	asked, ok := p.perCell(s.Required.When[:singles(t)], func(i int) []int { return t.Expressions[i].Alternatives[0] })
	for n, all := range asked {
		asked[n] = t.Unimplied(all)
	}
	return asked, ok
}

// singles is how many of the table's expressions have one alternative; they come
// first.
func singles(t *nodeexpr.Table) int {
	if i := slices.IndexFunc(t.Expressions, func(x nodeexpr.TableExpression) bool { return len(x.Alternatives) > 1 }); i >= 0 {
		return i
	}
	return len(t.Expressions)
}

func hasFields(t *nodeexpr.Table) bool {
	return slices.ContainsFunc(t.Requirements, func(r nodeexpr.Requirement) bool { return r.Key.Field })
}

// required adds to the required node affinity. The rule is nodeexpr.Table.Merge.
func (p *program) required(s Set) {
	t := s.Required.Table
	if t == nil || len(t.Expressions) == 0 {
		return
	}
	p.define("requiredOwn", `variables.spec.?affinity.?nodeAffinity.?requiredDuringSchedulingIgnoredDuringExecution.?nodeSelectorTerms.orValue([])`)
	p.define("requiredBase", `variables.requiredOwn.size() == 0 ? [{}] : variables.requiredOwn`)
	p.define("requiredOwnTerms", "variables.requiredBase.map(t,\n    %s)", termRequirements)
	p.define("nodeLabels", `variables.spec.?nodeSelector.orValue({}).transformList(k, v, [[string(k), "In"], [string(v)]])
+ variables.nodeLabelsAdded.map(l, [[l[0], "In"], [l[1]]])`)
	single := singles(t)
	relevant := "variables.requiredAsked"
	choices := t.Expressions[single:]
	if len(choices) > 0 {
		p.define("implied", "%s", numberRows(t.Implied))
		said := make([]string, len(choices))
		for i, x := range choices {
			said[i] = numbers(slices.Concat(x.Alternatives...))
		}
		p.define("requiredRelevant", "(variables.requiredAsked + variables.requiredChoices.map(i, %s).flatten()).distinct()", p.numbered("requiredSaid", said))
		relevant = "variables.requiredRelevant"
	}
	p.define("requiredMet", `variables.requiredOwnTerms.map(t, [t + variables.nodeLabels].map(has, has.size() == 0 ? [] :
    %s.filter(i, [variables.requirements[i]].exists(r, r in has || has.exists(q, %s)))).flatten())`, relevant, implies)
	p.define("required_0", `variables.requiredMet.transformList(n, met, [n] + (
    variables.requiredOwn.size() > 0 && variables.requiredOwnTerms[n].size() == 0 ? [] : variables.requiredMinimal.filter(i, !(i in met))))`)
	grown := "variables.required_0"
	for i, x := range choices {
		p.choice(i, x.Alternatives)
	}
	if len(choices) > 0 {
		grown = fmt.Sprintf("variables.requiredChoices.size() == 0 ? variables.required_0 : variables.required_%d", len(choices))
	}
	p.define("requiredGrown", "%s", grown)
	p.define("requiredChanged", `variables.requiredGrown.exists(g, g.size() > 1)`)
	p.define("requiredLabels", `variables.requiredGrown.map(g, g.slice(1, g.size()).map(i, variables.requirements[i])
    %s)`, labelRequirements)
	fields := hasFields(t)
	if fields {
		p.define("requiredFields", `variables.requiredGrown.map(g, g.slice(1, g.size()).map(i, variables.requirements[i])
    %s)`, fieldRequirements)
	}
	p.changes("affinity", "variables.requiredChanged")
	p.patchRequired(fields)
}

// patchRequired changes the terms in place, because what stands in the pod
// cannot be written back by a patch's value: each of the pod's own terms is
// copied as often as it is taken once more, and each then gets its requirements.
func (p *program) patchRequired(fields bool) {
	const list = "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution"
	p.parents("variables.requiredChanged", "affinity", "nodeAffinity")
	made := `?"matchExpressions": optional.ofNonZeroValue(variables.requiredLabels[n])`
	if fields {
		made += `, ?"matchFields": optional.ofNonZeroValue(variables.requiredFields[n])`
	}
	p.patch(operation("variables.requiredChanged && variables.requiredOwn.size() == 0", "add", under(list),
		`{"nodeSelectorTerms": variables.requiredGrown.transformList(n, g, {`+made+`})}`))
	at := under(list+"/nodeSelectorTerms/") + " + string(n)"
	added := func(requirements, field string) string {
		return fmt.Sprintf(`
    + (variables.%[1]s[n].size() > 0 && !has(variables.requiredOwn[g[0]].%[2]s) ? [JSONPatch{op: "add", path: %[3]s + "/%[2]s", value: %[4]s}] : [])
    + variables.%[1]s[n].map(r, JSONPatch{op: "add", path: %[3]s + "/%[2]s/-", value: r})`, requirements, field, at, emptyList)
	}
	grown := fmt.Sprintf(`n + 1 < variables.requiredGrown.size() && variables.requiredGrown[n + 1][0] == g[0] ? [JSONPatch{op: "copy", from: %[1]s, path: %[1]s}] : []`, at)
	grown = "(" + grown + ")" + added("requiredLabels", "matchExpressions")
	if fields {
		grown += added("requiredFields", "matchFields")
	}
	p.patch("(variables.requiredChanged && variables.requiredOwn.size() > 0\n  ? variables.requiredGrown.transformList(n, g,\n    " + grown + ").flatten()\n  : [])")
}

// choice defines the terms after one expression of several alternatives: each
// that meets none of them is taken once for each. A term is a list: the place of
// the pod's own term, and the requirements that it got.
func (p *program) choice(step int, alternatives [][]int) {
	list := numberRows(alternatives)
	before := fmt.Sprintf("variables.required_%d", step)
	after := fmt.Sprintf(`%s.map(g, [g, variables.requiredMet[g[0]] + g.slice(1, g.size()).map(i, variables.implied[i]).flatten()]).map(g,
      variables.requiredOwn.size() > 0 && variables.requiredOwnTerms[g[0][0]].size() == 0
      || %s.exists(a, a.all(i, i in g[1])) ? [g[0]] : %s.map(a, g[0] + a.filter(i, !(i in g[1])))).flatten()`,
		before, list, list)
	p.define(fmt.Sprintf("required_%d", step+1), "%s", cel.If(fmt.Sprintf("%d in variables.requiredChoices", step), after, before))
}
