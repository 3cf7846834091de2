package admission

import (
	"fmt"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/compiler/cel"
)

// canonicalTerm turns a term of pod affinity, t, into lists of texts of which
// two terms that say the same have the same.
var canonicalTerm = fmt.Sprintf(`[["key", string(t.topologyKey)]]
      + (has(t.labelSelector) ? [["selector"]] + [t.labelSelector].map(s, %[1]s).flatten().map(x, ["label"] + x) : [])
      + t.?namespaces.orValue([]).map(n, ["namespace", string(n)])
      + (has(t.namespaceSelector) ? [["namespaceSelector"]] + [t.namespaceSelector].map(s, %[1]s).flatten().map(x, ["namespaceLabel"] + x) : [])
      + t.?matchLabelKeys.orValue([]).map(k, ["matchLabelKey", string(k)])
      + t.?mismatchLabelKeys.orValue([]).map(k, ["mismatchLabelKey", string(k)])`, canonicalSelector("s"))

// side is podAffinity or podAntiAffinity.
type side struct {
	field, name string
	apart       bool
}

var sides = []side{{"podAffinity", "together", false}, {"podAntiAffinity", "apart", true}}

// affinity adds terms to both sides.
func (p *program) affinity(s Set) {
	for _, side := range sides {
		p.hard(s, side)
		p.soft(s, side)
	}
}

// wishes returns the wishes of a side and a strength: one list for each.
func (s Set) wishes(side side, required bool) []string {
	var out []string
	for _, c := range s.Colocations {
		if c.Apart != side.apart || c.Required != required {
			continue
		}
		when := c.When
		term := asJSON(&c.Term)
		if c.Own {
			when = cel.And(when, "!"+DaemonSet, "variables.ownRows.size() > 0")
			term["labelSelector"] = expression("dyn(variables.ownSelector)")
			keys := "variables.ownMatchKeys"
			if required {
				// What is required holds for the pods of all revisions, but only for
				// those of one run.
				keys = `variables.kind == "CronJob" ? variables.ownMatchKeys : []`
			}
			term["matchLabelKeys"] = optional("optional.ofNonZeroValue(dyn(" + keys + "))")
		} else if names := c.Term.Namespaces; len(names) == 1 && c.Term.NamespaceSelector == nil {
			term["namespaces"] = optional(fmt.Sprintf("%s == %s ? optional.none() : optional.of(dyn(%s))", Namespace, cel.Quote(names[0]), texts(names)))
		}
		if !required {
			term = map[string]any{"weight": c.Weight, "podAffinityTerm": term}
		}
		text, _ := literal(term)
		out = append(out, either(when, "["+text+"]", noTerms))
	}
	return out
}

func (p *program) hard(s Set, side side) {
	name := side.name + "Required"
	wishes := s.wishes(side, true)
	if len(wishes) == 0 {
		return
	}
	p.define(name+"Own", `variables.spec.?affinity.?%s.?requiredDuringSchedulingIgnoredDuringExecution.orValue([])`, side.field)
	p.define(name+"Asked", "%s.flatten()", p.list(name+"Asked", append([]string{noTerms}, wishes...)))
	p.define(name+"Canonical", "[variables.%[1]sOwn, dyn(variables.%[1]sAsked)].map(l, l.map(t,\n      %[2]s))", name, canonicalTerm)
	p.define(name+"Added", `variables.%[1]sAsked.transformList(i, t,
    !(variables.%[1]sCanonical[0] + variables.%[1]sCanonical[1].slice(0, i)).exists(o, sets.equivalent(o, variables.%[1]sCanonical[1][i])), t)`, name)
	added := "variables." + name + "Added"
	p.changes("affinity", added+".size() > 0")
	p.parents(added+".size() > 0", "affinity", side.field)
	p.appended(added, "/affinity/"+side.field+"/requiredDuringSchedulingIgnoredDuringExecution", "variables."+name+"Own")
}

func (p *program) soft(s Set, side side) {
	name := side.name + "Preferred"
	wishes := s.wishes(side, false)
	if len(wishes) == 0 {
		return
	}
	p.define(name+"Own", `variables.spec.?affinity.?%s.?preferredDuringSchedulingIgnoredDuringExecution.orValue([])`, side.field)
	p.define(name+"Asked", "%s.flatten()", p.list(name+"Asked", append([]string{noTerms}, wishes...)))
	p.define(name+"Canonical", "[variables.%[1]sOwn, dyn(variables.%[1]sAsked)].map(l, l.map(w, w.podAffinityTerm).map(t,\n      %[2]s))", name, canonicalTerm)
	p.define(name+"Summed", `variables.%[1]sAsked.transformList(i, w, [100, variables.%[1]sAsked.transformList(j, o,
      sets.equivalent(variables.%[1]sCanonical[1][i], variables.%[1]sCanonical[1][j]), int(o.weight)).sum()].min())`, name)
	p.define(name+"Now", `variables.%[1]sOwn.transformList(n, o,
    ([int(o.weight)] + variables.%[1]sAsked.transformList(i, w, sets.equivalent(variables.%[1]sCanonical[0][n], variables.%[1]sCanonical[1][i]), variables.%[1]sSummed[i])).max())`, name)
	p.define(name+"Terms", `variables.%[1]sAsked.transformList(i, w,
    !(variables.%[1]sCanonical[0] + variables.%[1]sCanonical[1].slice(0, i)).exists(o, sets.equivalent(o, variables.%[1]sCanonical[1][i])),
    {"weight": dyn(variables.%[1]sSummed[i]), "podAffinityTerm": w.podAffinityTerm})`, name)
	p.weighted(name, "affinity", side.field)
}

// weighted adds preferred terms, the variable nameTerms, behind those that are
// there, nameOwn, and raises the weights of these to nameNow.
func (p *program) weighted(name string, parents ...string) {
	at := "/" + strings.Join(parents, "/") + "/preferredDuringSchedulingIgnoredDuringExecution"
	own, now, terms := "variables."+name+"Own", "variables."+name+"Now", "variables."+name+"Terms"
	p.changes(parents[0], fmt.Sprintf("%s.size() > 0 || %s.transformList(n, o, int(o.weight)) != %s", terms, own, now))
	p.parents(terms+".size() > 0", parents...)
	p.patch(fmt.Sprintf(`%s.transformList(n, o, o.weight != %s[n], JSONPatch{op: "replace", path: %s + string(n) + "/weight", value: %s[n]})`, own, now, under(at+"/"), now))
	p.appended(terms, at, own)
}

// appended adds the elements of a list at a path at which the list own is, or
// none.
func (p *program) appended(elements, at, own string) {
	p.patch(operation(fmt.Sprintf("%s.size() > 0 && %s.size() == 0", elements, own), "add", under(at), emptyList))
	p.patch(fmt.Sprintf(`%s.map(t, JSONPatch{op: "add", path: %s, value: t})`, elements, under(at+"/-")))
}
