package admission

import (
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-sched/kubectl-sched/compiler/cel"
)

// asJSON returns a value of the API as plain JSON values.
func asJSON(v any) map[string]any {
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(v)
	if err != nil {
		return map[string]any{}
	}
	return out
}

// noTerms is an empty list of JSON objects, which says its type.
const noTerms = `[{"": dyn("")}].filter(x, false)`

// spread adds spread constraints, and joins those that are there with them.
func (p *program) spread(s Set) {
	if len(s.Spreads)+len(s.RawSpreads) == 0 {
		return
	}
	if len(s.Spreads) > 0 {
		p.spreadWishes(s)
	}
	if len(s.RawSpreads) > 0 {
		may := []string{"variables.rawSpreads.size() > 0"}
		if len(s.Spreads) > 0 {
			may = append(may, "variables.spreadsChosen.size() > 0")
		}
		p.costly("("+cel.Or(may...)+")", func() { p.mergeSpreads(s) })
		return
	}
	p.whole("spreads", "topologySpreadConstraints", "/topologySpreadConstraints", []string{"topologySpreadConstraints"}, "true", "variables.spreadWishes", "variables.spreadWishes.size() > 0", func() { p.mergeSpreads(s) })
}

// mergeSpreads joins what is asked with what is there.
func (p *program) mergeSpreads(s Set) {
	p.define("spreadsOwn", `variables.spec.?topologySpreadConstraints.orValue([])`)
	now := "variables.spreadsOwn"
	if len(s.Spreads) > 0 {
		now = p.place(0, now, "variables.spreadWishes")
	}
	whens := make([]When, len(s.RawSpreads))
	for i, raw := range s.RawSpreads {
		whens[i] = raw.When
	}
	if len(whens) > 0 {
		p.chosen("rawSpreads", whens, itself)
	}
	for i, raw := range s.RawSpreads {
		text, _ := literal(asJSON(&raw.Constraint))
		wish := fmt.Sprintf("rawSpread_%d", i)
		p.define(wish, "%d in variables.rawSpreads ? [%s] : %s", i, text, noTerms)
		now = p.place(i+1, now, "variables."+wish)
	}
	p.define("spreadsNow", "%s", now)
	p.define("spreadsJoined", `variables.spreadsOwn.transformList(n, c, variables.spreadsNow[n] != c, n)`)
	p.define("spreadsAdded", `variables.spreadsNow.slice(variables.spreadsOwn.size(), variables.spreadsNow.size())`)
	p.changes("topologySpreadConstraints", "variables.spreadsJoined.size() > 0 || variables.spreadsAdded.size() > 0")
	p.patchSpreads()
}

// patchSpreads writes the fields of joined constraints one by one: what stands
// in the pod cannot be written back by a patch's value.
func (p *program) patchSpreads() {
	at := under("/topologySpreadConstraints/") + " + string(n)"
	p.patch(fmt.Sprintf(`variables.spreadsJoined.map(n, [JSONPatch{op: "add", path: %[1]s + "/maxSkew", value: variables.spreadsNow[n].maxSkew}]
  + (variables.spreadsOwn[n].?labelSelector.?matchLabels.orValue({}).size() + variables.spreadsOwn[n].?labelSelector.?matchExpressions.orValue([]).size() == 0
    ? [JSONPatch{op: "add", path: %[1]s + "/labelSelector", value: variables.spreadsNow[n].labelSelector}] : [])
  + (has(variables.spreadsNow[n].matchLabelKeys) ? [JSONPatch{op: "add", path: %[1]s + "/matchLabelKeys", value: variables.spreadsNow[n].matchLabelKeys.map(k, string(k))}] : [])
  + (has(variables.spreadsNow[n].minDomains) ? [JSONPatch{op: "add", path: %[1]s + "/minDomains", value: variables.spreadsNow[n].minDomains}] : [])
  + (has(variables.spreadsNow[n].nodeTaintsPolicy) ? [JSONPatch{op: "add", path: %[1]s + "/nodeTaintsPolicy", value: variables.spreadsNow[n].nodeTaintsPolicy}] : [])).flatten()`, at))
	p.appended("variables.spreadsAdded", "/topologySpreadConstraints", "variables.spreadsOwn")
}

// spreadWishes defines the constraints that policies ask for, joined with each
// other.
func (p *program) spreadWishes(s Set) {
	if p.spreadsOfCells(s) {
		return
	}
	var keys, strengths, skews, domainsWanted, owns, selectors, plains []string
	var whens []When
	for _, w := range s.Spreads {
		keys = append(keys, cel.Quote(w.Key))
		strengths = append(strengths, strconv.FormatBool(w.Require))
		skews = append(skews, fmt.Sprint(w.MaxSkew))
		domainsWanted = append(domainsWanted, fmt.Sprint(w.MinDomains))
		owns, plains = append(owns, strconv.FormatBool(w.Subject.Own)), append(plains, strconv.FormatBool(w.Plain))
		when, selector := w.When, "dyn({})"
		if w.Subject.Own {
			when = when.and(hasOwn)
		} else {
			text, _ := literal(asJSON(w.Subject.Selector))
			selector = "dyn(" + text + ")"
		}
		whens, selectors = append(whens, when), append(selectors, selector)
	}
	p.chosen("spreadsChosen", whens, itself)
	own, ownSelector, ownMatchKeys := "false", "dyn({})", "dyn([])"
	if s.usesOwn() {
		own, ownSelector, ownMatchKeys = p.numbered("spreadOwns", owns), "dyn(variables.ownSelector)", "dyn(variables.ownMatchKeys)"
	}
	// Only where some are plain do the rows say which.
	plainRow, plainJoined := "", ""
	if slices.Contains(plains, "true") {
		plainRow = fmt.Sprintf(`, "plain": dyn(%s)`, p.numbered("spreadPlains", plains))
		plainJoined = `, "plain": dyn(g.all(o, o.plain))`
	}
	p.define("spreadRows", `variables.spreadsChosen.map(i, {
    "key": dyn(%s), "require": dyn(%s), "maxSkew": dyn(%s), "minDomains": dyn(%s),
    "selector": %s ? %s : %s,
    "matchKeys": %s ? %s : dyn([])%s
  })`, p.numbered("spreadKeys", keys), p.numbered("spreadStrengths", strengths), p.numbered("spreadSkews", skews), p.numbered("spreadDomains", domainsWanted),
		own, ownSelector, p.numbered("spreadSelectors", selectors), own, ownMatchKeys, plainRow)
	p.define("spreadGroups", `[variables.spreadRows.map(w, w.selector).map(s, %s)].map(counted,
    variables.spreadRows.transformList(i, w, variables.spreadRows.transformList(j, o,
      o.key == w.key && o.matchKeys == w.matchKeys && sets.equivalent(counted[i], counted[j]), o)))[0]`, canonicalSelector("s"))
	p.define("spreadJoined", `variables.spreadRows.size() < 2 ? variables.spreadRows : variables.spreadGroups.transformList(i, g,
    !variables.spreadRows.slice(0, i).exists(o, o in g), {
      "key": dyn(g[0].key), "selector": dyn(g[0].selector), "matchKeys": dyn(g[0].matchKeys),
      "require": dyn(g.exists(o, o.require)), "maxSkew": dyn(g.map(o, int(o.maxSkew)).min()), "minDomains": dyn(g.map(o, int(o.minDomains)).max())%s
    }).sortBy(w, w.key + (w.require ? " 1" : " 2"))`, plainJoined)
	added, least := `?"matchLabelKeys": optional.ofNonZeroValue(dyn(w.matchKeys)), "nodeTaintsPolicy": dyn("Honor"),`, "optional.of(dyn("+p.domains(s)("w.key")+"))"
	if plainRow != "" {
		added = `?"matchLabelKeys": optional.ofNonZeroValue(w.plain ? dyn([]) : dyn(w.matchKeys)), ?"nodeTaintsPolicy": w.plain ? optional.none() : optional.of(dyn("Honor")),`
		least = "w.plain ? optional.none() : " + least
	}
	p.define("spreadWishes", `variables.spreadJoined.transformList(i, w,
    !variables.spreadJoined.slice(0, i).exists(o, o.key == w.key && o.require == w.require), {
      "maxSkew": dyn(w.maxSkew), "topologyKey": dyn(w.key), "whenUnsatisfiable": dyn(w.require ? "DoNotSchedule" : "ScheduleAnyway"),
      "labelSelector": dyn(w.selector), %s
      ?"minDomains": !w.require ? optional.none() : w.minDomains > 0 ? optional.of(dyn(w.minDomains)) : %s
    })`, added, least)
}

// place defines the constraints after those that are asked, of which no two are
// on one key and of one strength, and returns their variable: each joins with the
// one on the same key and of the same strength, or else is added.
func (p *program) place(step int, before, asked string) string {
	after := fmt.Sprintf("spreads_%d", step)
	p.define(after, `%[2]s.size() == 0 ? %[1]s : %[1]s.map(c, [c] + %[2]s.filter(w, w.topologyKey == c.topologyKey && w.whenUnsatisfiable == c.whenUnsatisfiable)).map(x,
    x.size() == 1
    || (has(x[0].nodeTaintsPolicy) && has(x[1].nodeTaintsPolicy) && x[0].nodeTaintsPolicy != x[1].nodeTaintsPolicy)
    || !(%[3]s) && !(%[4]s)
    ? x[0]
    : {
      "maxSkew": dyn([int(x[0].maxSkew), int(x[1].maxSkew)].min()),
      "topologyKey": x[0].topologyKey,
      "whenUnsatisfiable": x[0].whenUnsatisfiable,
      "labelSelector": (%[3]s) ? x[1].labelSelector : x[0].labelSelector,
      ?"matchLabelKeys": optional.ofNonZeroValue(dyn(((%[3]s) ? [] : x[0].?matchLabelKeys.orValue([])) + x[1].?matchLabelKeys.orValue([]).filter(k, (%[3]s) || !(k in x[0].?matchLabelKeys.orValue([]))))),
      ?"minDomains": has(x[0].minDomains) || has(x[1].minDomains) ? optional.of(dyn([int(x[0].?minDomains.orValue(0)), int(x[1].?minDomains.orValue(0))].max())) : optional.none(),
      ?"nodeAffinityPolicy": x[0].?nodeAffinityPolicy,
      ?"nodeTaintsPolicy": has(x[0].nodeTaintsPolicy) ? x[0].?nodeTaintsPolicy : x[1].?nodeTaintsPolicy
    })
+ %[2]s.filter(w, !%[1]s.exists(c,
    c.topologyKey == w.topologyKey && c.whenUnsatisfiable == w.whenUnsatisfiable
    || w.whenUnsatisfiable == "ScheduleAnyway" && c.whenUnsatisfiable == "DoNotSchedule" && c.topologyKey == w.topologyKey && c.maxSkew <= w.maxSkew
      && has(c.labelSelector) && %[5]s && c.?matchLabelKeys.orValue([]) == w.?matchLabelKeys.orValue([])))`,
		before, asked, selectorEmpty, selectorsEqual("x[0]", "x[1]"), selectorsEqual("c", "w"))
	return "variables." + after
}

// selectorEmpty says that the constraint x[0] counts nothing.
const selectorEmpty = `x[0].?labelSelector.?matchLabels.orValue({}).size() + x[0].?labelSelector.?matchExpressions.orValue([]).size() == 0`

func selectorsEqual(a, b string) string {
	return fmt.Sprintf("sets.equivalent(%s, %s)", canonicalSelector(a+".labelSelector"), canonicalSelector(b+".labelSelector"))
}
