package admission

import (
	"fmt"
	"slices"
	"strconv"
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

// maxCompared is how many terms a match condition compares with as many: each of
// them with each.
const maxCompared = 8

// affinity adds terms to both sides.
func (p *program) affinity(s Set) {
	for _, side := range sides {
		for _, required := range []bool{true, false} {
			name, merge := side.name+"Preferred", p.soft
			if required {
				name, merge = side.name+"Required", p.hard
			}
			if p.asked(s, side, required, name) {
				p.settling(fmt.Sprintf("variables.%sChosen.size() > %d", name, maxCompared))
				p.settling(fmt.Sprintf("variables.%sOwn.size() > %d", name, maxCompared))
				merge(side, name)
			}
		}
	}
}

// asked defines the terms of a side and a strength that are asked for, and
// reports whether there is any wish for them.
func (p *program) asked(s Set, side side, required bool, name string) bool {
	var whens []When
	var keys, owns, plains, homes, weights, near, far []string
	for _, c := range s.Colocations {
		if c.Apart != side.apart || c.Required != required {
			continue
		}
		when, term, home := c.When, asJSON(&c.Term), ""
		if c.Own {
			when = when.and(hasOwn)
			term = map[string]any{}
		} else if names := c.Term.Namespaces; len(names) == 1 && c.Term.NamespaceSelector == nil {
			home = names[0]
		}
		whens = append(whens, when)
		keys, owns, homes = append(keys, cel.Quote(c.Term.TopologyKey)), append(owns, strconv.FormatBool(c.Own)), append(homes, cel.Quote(home))
		weights, plains = append(weights, fmt.Sprint(c.Weight)), append(plains, strconv.FormatBool(c.Plain))
		text, _ := literal(term)
		far = append(far, "dyn("+text+")")
		if home != "" {
			// In the pods' own namespace the term needs not name it.
			delete(term, "namespaces")
			text, _ = literal(term)
		}
		near = append(near, "dyn("+text+")")
	}
	if len(whens) == 0 {
		return false
	}
	p.chosen(name+"Chosen", whens, itself)
	term := fmt.Sprintf("%s == %s ? %s : %s", p.numbered(name+"Homes", homes), Namespace, p.numbered(name+"Near", near), p.numbered(name+"Far", far))
	if s.usesOwn() {
		keysNow := "variables.ownMatchKeys"
		if required {
			// What is required holds for the pods of all revisions, but only for
			// those of one run.
			keysNow = `(variables.kind == "CronJob" ? variables.ownMatchKeys : [])`
		}
		if slices.Contains(plains, "true") {
			keysNow = fmt.Sprintf("(%s ? [] : %s)", p.numbered(name+"Plains", plains), keysNow)
		}
		term = fmt.Sprintf(`%s ? dyn({
      "topologyKey": dyn(%s), "labelSelector": dyn(variables.ownSelector), ?"matchLabelKeys": optional.ofNonZeroValue(dyn(%s))
    }) : %s`, p.numbered(name+"Owns", owns), p.numbered(name+"Keys", keys), keysNow, term)
	}
	if !required {
		term = fmt.Sprintf(`{"weight": dyn(%s), "podAffinityTerm": %s}`, p.numbered(name+"Weights", weights), term)
	}
	p.define(name+"Asked", "variables.%sChosen.map(i, %s)", name, term)
	return true
}

func (p *program) hard(side side, name string) {
	p.define(name+"Own", `variables.spec.?affinity.?%s.?requiredDuringSchedulingIgnoredDuringExecution.orValue([])`, side.field)
	p.define(name+"Canonical", "[variables.%[1]sOwn, dyn(variables.%[1]sAsked)].map(l, l.map(t,\n      %[2]s))", name, canonicalTerm)
	p.define(name+"Added", `variables.%[1]sAsked.transformList(i, t,
    !(variables.%[1]sCanonical[0] + variables.%[1]sCanonical[1].slice(0, i)).exists(o, sets.equivalent(o, variables.%[1]sCanonical[1][i])), t)`, name)
	added := "variables." + name + "Added"
	p.changes("affinity", added+".size() > 0")
	p.parents(added+".size() > 0", "affinity", side.field)
	p.appended(added, "/affinity/"+side.field+"/requiredDuringSchedulingIgnoredDuringExecution", "variables."+name+"Own")
}

func (p *program) soft(side side, name string) {
	p.define(name+"Own", `variables.spec.?affinity.?%s.?preferredDuringSchedulingIgnoredDuringExecution.orValue([])`, side.field)
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
