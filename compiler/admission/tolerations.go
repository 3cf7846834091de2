package admission

import (
	"fmt"
	"slices"
	"strings"
)

// tolerations adds tolerations. In the variables one of ours is a list: key, operator,
// value, effect, seconds.
func (p *program) tolerations(s Set) {
	if len(s.Tolerations) == 0 {
		return
	}
	var rows []string
	var api []any
	var whens []When
	coveredBy := make([][]int, len(s.Tolerations))
	for i, t := range s.Tolerations {
		for _, j := range t.Covers {
			coveredBy[j] = append(coveredBy[j], i)
		}
	}
	for i, w := range s.Tolerations {
		t := w.Toleration
		seconds := ""
		if t.TolerationSeconds != nil {
			seconds = fmt.Sprint(*t.TolerationSeconds)
		}
		rows = append(rows, texts([]string{t.Key, string(t.Operator), t.Value, string(t.Effect), seconds}))
		api = append(api, asJSON(&t))
		slices.Sort(coveredBy[i])
		whens = append(whens, w.When)
	}
	p.define("tolerations", "%s", lines(rows))
	p.constants("apiTolerations", api)
	uncovered := fmt.Sprintf("!%s[i].exists(j, j in variables.tolerationsAsked)\n    && ", numberRows(coveredBy))
	if perCell, ok := p.perCell(whens, itself); ok {
		for n, all := range perCell {
			perCell[n] = slices.DeleteFunc(slices.Clone(all), func(i int) bool {
				return slices.ContainsFunc(coveredBy[i], func(j int) bool { return slices.Contains(all, j) })
			})
		}
		p.defineNumbers("tolerationsAsked", perCell)
		uncovered = ""
	} else {
		p.chosen("tolerationsAsked", whens, itself)
	}
	p.define("tolerationsOwn", "variables.spec.?tolerations.orValue([])")
	// The keys come first: nearly all own ones differ in them.
	p.define("tolerationsAdded", `variables.tolerationsAsked.filter(i,
    %s!variables.tolerationsOwn.exists(o,
      (o.?key.orValue("") == variables.tolerations[i][0] || o.?key.orValue("") == "" && o.?operator.orValue("Equal") == "Exists")
      && (o.?operator.orValue("Equal") == "Exists" || [o.?operator.orValue("Equal"), o.?value.orValue("")] == variables.tolerations[i].slice(1, 3))
      && o.?effect.orValue("") in ["", variables.tolerations[i][3]]
      && (has(o.tolerationSeconds) ? string(o.tolerationSeconds) : "") == variables.tolerations[i][4]))`, uncovered)
	// What the API server tolerates by itself, for 300 seconds, gives way: it adds
	// nothing where the template says how long.
	p.define("tolerationsDropped", `variables.tolerationsAdded.exists(t, variables.tolerations[t][0] in ["", "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"]) ? variables.tolerationsOwn.transformList(i, o,
    o.?key.orValue("") in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] && o.?operator.orValue("Equal") == "Exists" && o.?effect.orValue("") == "NoExecute"
      && has(o.tolerationSeconds) && int(o.tolerationSeconds) == 300
      && variables.tolerationsAdded.exists(t, variables.tolerations[t][0] in ["", string(o.?key.orValue(""))] && variables.tolerations[t][3] in ["", "NoExecute"]),
    i) : [0].filter(i, false)`)
	p.changes("tolerations", "variables.tolerationsAdded.size() > 0")
	ops := []string{operation("!has(variables.spec.tolerations)", "add", under("/tolerations"), emptyList)}
	ops = append(ops, fmt.Sprintf(`variables.tolerationsDropped.sortBy(i, -i).map(i, JSONPatch{op: "remove", path: %s + string(i)})`, under("/tolerations/")))
	ops = append(ops, fmt.Sprintf(`variables.tolerationsAdded.map(i, JSONPatch{op: "add", path: %s, value: variables.apiTolerations[i]})`, under("/tolerations/-")))
	p.patch("(variables.tolerationsAdded.size() == 0 ? [] : " + strings.Join(ops, "\n+ ") + ")")
}
