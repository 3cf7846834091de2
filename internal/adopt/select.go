package adopt

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy"
)

// selected is a selector with the templates that it selects, exactly.
type selected struct {
	workloads policy.Workloads
	members   []*template
	// says is the selector in words, why why it is that one.
	says, why string
}

// universe are all templates, among which a selector selects.
type universe struct {
	byNamespace map[string][]*template
	// perObject is how many templates each object has.
	perObject map[*workload.Workload]int
}

func newUniverse(all []*template) *universe {
	u := &universe{byNamespace: map[string][]*template{}, perObject: map[*workload.Workload]int{}}
	for _, t := range all {
		u.byNamespace[t.w.Namespace] = append(u.byNamespace[t.w.Namespace], t)
		u.perObject[t.w]++
	}
	return u
}

// part is one field of a selector, with what it costs a reader.
type part struct {
	cost    int
	apply   func(*policy.Workloads)
	matches func(*template) bool
	says    string
	// named says that it selects by names.
	named bool
	// nearby says that it selects by where and what the objects are alone, so that
	// it also selects what comes to be there.
	nearby bool
}

// choose returns the smallest selectors that select exactly the members: one, or
// several where no single one can. Always by namespaces; then, in order of cost, by
// kinds and labels, and at last by names.
func (u *universe) choose(members []*template) []selected {
	namespaces := map[string]bool{}
	for _, t := range members {
		namespaces[t.w.Namespace] = true
	}
	base := part{
		cost:   len(namespaces),
		apply:  func(w *policy.Workloads) { w.Namespaces = sortedKeys(namespaces) },
		says:   "in " + listed("namespace", sortedKeys(namespaces)),
		nearby: true,
	}
	var others []*template
	in := map[*template]bool{}
	for _, t := range members {
		in[t] = true
	}
	for _, ns := range sortedKeys(namespaces) {
		for _, t := range u.byNamespace[ns] {
			if !in[t] {
				others = append(others, t)
			}
		}
	}
	templates, hasTemplates := u.templatesPart(members)
	labels := labelParts(members)
	kinds := kindsPart(members)
	names, named := namesPart(members)

	var tries [][]part
	try := func(ps ...part) {
		ps = append([]part{base}, ps...)
		if hasTemplates {
			ps = append(ps, templates)
		}
		tries = append(tries, ps)
	}
	several := u.objects(members) > 1
	if several {
		try()
		try(kinds)
	}
	for i, l := range labels {
		try(l)
		try(kinds, l)
		for _, m := range labels[i+1:] {
			try(l, m)
			try(kinds, l, m)
		}
	}
	if named {
		try(names)
		try(kinds, names)
	}
	cost := func(ps []part) (sum int) {
		for _, p := range ps {
			sum += p.cost
		}
		return sum
	}
	slices.SortStableFunc(tries, func(a, b []part) int { return cmp.Compare(cost(a), cost(b)) })
	for n, ps := range tries {
		if slices.ContainsFunc(others, func(t *template) bool {
			return !slices.ContainsFunc(ps, func(p part) bool { return p.matches != nil && !p.matches(t) })
		}) {
			continue
		}
		return []selected{assemble(members, ps, n)}
	}
	return u.split(members)
}

// assemble makes the selector of its parts.
func assemble(members []*template, ps []part, tried int) selected {
	s := selected{members: members}
	var says []string
	byName := false
	for _, p := range slices.Concat(ps[1:], ps[:1]) {
		p.apply(&s.workloads)
		says = append(says, p.says)
		byName = byName || p.named
	}
	s.says = strings.Join(says, ", ")
	switch {
	case byName:
		s.why = "no label tells them from workloads without it"
	case tried == 0:
		s.why = "nothing smaller selects them"
	default:
		s.why = "nothing smaller selects them and no workload without it"
	}
	return s
}

// split divides the members where no one selector can select them, first by
// namespace, then by kind, then by template; who has no name at last is left out.
func (u *universe) split(members []*template) []selected {
	for _, by := range []func(*template) string{
		func(t *template) string { return t.w.Namespace },
		func(t *template) string { return kindOf(t.w) },
		func(t *template) string { return t.t.Name },
		func(t *template) string { return fmt.Sprintf("%06d", t.id) },
	} {
		groups := map[string][]*template{}
		for _, t := range members {
			groups[by(t)] = append(groups[by(t)], t)
		}
		if len(groups) < 2 {
			continue
		}
		var out []selected
		for _, key := range sortedKeys(groups) {
			out = append(out, u.choose(groups[key])...)
		}
		return out
	}
	return nil
}

// objects counts the objects of the templates.
func (u *universe) objects(members []*template) int {
	objects := map[*workload.Workload]bool{}
	for _, t := range members {
		objects[t.w] = true
	}
	return len(objects)
}

// templatesPart picks templates by name, where not all of an object's are meant.
func (u *universe) templatesPart(members []*template) (part, bool) {
	have := map[*workload.Workload]int{}
	names := map[string]bool{}
	for _, t := range members {
		have[t.w]++
		names[t.t.Name] = true
	}
	whole := true
	for o, n := range have {
		whole = whole && n == u.perObject[o]
	}
	if whole || names[""] {
		return part{}, false
	}
	return part{
		cost:    len(names),
		apply:   func(w *policy.Workloads) { w.Templates = sortedKeys(names) },
		matches: func(t *template) bool { return names[t.t.Name] },
		says:    "templates " + strings.Join(sortedKeys(names), ", "),
	}, true
}

// kindOf writes the kind as a selector does.
func kindOf(w *workload.Workload) string {
	if w.Group == "" {
		return w.Kind
	}
	return w.Group + "/" + w.Kind
}

func kindsPart(members []*template) part {
	kinds := map[string]bool{}
	for _, t := range members {
		kinds[kindOf(t.w)] = true
	}
	return part{
		cost:    len(kinds),
		apply:   func(w *policy.Workloads) { w.Kinds = sortedKeys(kinds) },
		matches: func(t *template) bool { return kinds[kindOf(t.w)] },
		says:    "of kind " + strings.Join(sortedKeys(kinds), " or "),
		nearby:  true,
	}
}

// nameCost is what a name costs beside a label: a new replica of a label's owner is
// selected too, a renamed one not.
const nameCost = 4

func namesPart(members []*template) (part, bool) {
	names := map[string]bool{}
	for _, t := range members {
		names[t.w.Name] = true
	}
	return part{
		cost:    nameCost * len(names),
		apply:   func(w *policy.Workloads) { w.Names = sortedKeys(names) },
		matches: func(t *template) bool { return names[t.w.Name] },
		says:    "named " + brief(sortedKeys(names)),
		named:   true,
	}, !names[""]
}

// mostValues is how many values of a label are listed, rather than names.
const mostValues = 4

// labelParts returns the labels that all members have, those of the pods first.
func labelParts(members []*template) []part {
	var out []part
	for _, onPods := range []bool{true, false} {
		labelsOf := func(t *template) map[string]string {
			if onPods {
				return t.t.Labels
			}
			return t.w.Labels
		}
		type candidate struct {
			key    string
			values map[string]bool
		}
		var found []candidate
		for _, key := range sortedKeys(labelsOf(members[0])) {
			_, added := members[0].t.PodLabels[key]
			if fleeting[key] || added && onPods || workload.PlacementLabel(key) {
				continue
			}
			c := candidate{key, map[string]bool{}}
			for _, t := range members {
				v, ok := labelsOf(t)[key]
				if !ok {
					v = ""
				}
				c.values[v] = true
				if v == "" || len(c.values) > mostValues {
					break
				}
			}
			if !c.values[""] && len(c.values) <= mostValues {
				found = append(found, c)
			}
		}
		slices.SortStableFunc(found, func(a, b candidate) int {
			return cmp.Or(cmp.Compare(len(a.values), len(b.values)), cmp.Compare(liking(a.key), liking(b.key)))
		})
		for _, c := range found[:min(len(found), mostLabels)] {
			values := policy.Values(sortedKeys(c.values))
			p := part{
				cost:    1 + 2*len(c.values),
				apply:   func(w *policy.Workloads) { w.Labels = with(w.Labels, c.key, values) },
				matches: func(t *template) bool { return c.values[labelsOf(t)[c.key]] },
				says:    fmt.Sprintf("with label %s=%s", c.key, strings.Join(values, "|")),
			}
			if onPods {
				p.apply = func(w *policy.Workloads) {
					if w.Pods == nil {
						w.Pods = &policy.Pods{}
					}
					w.Pods.Labels = with(w.Pods.Labels, c.key, values)
				}
				p.says = fmt.Sprintf("with pods of %s=%s", c.key, strings.Join(values, "|"))
			} else {
				p.cost++
			}
			out = append(out, p)
		}
	}
	return out
}

// mostLabels is how many labels of a sort are tried.
const mostLabels = 8

// fleeting are labels that change with every release, or say who deployed it.
var fleeting = map[string]bool{
	"app.kubernetes.io/version": true, "app.kubernetes.io/managed-by": true, "helm.sh/chart": true, "chart": true, "heritage": true, "version": true,
	"pod-template-hash": true, "controller-revision-hash": true, "rollouts-pod-template-hash": true, "helm.toolkit.fluxcd.io/name": true,
	"helm.toolkit.fluxcd.io/namespace": true, "kustomize.toolkit.fluxcd.io/name": true, "kustomize.toolkit.fluxcd.io/namespace": true,
	"argocd.argoproj.io/instance": true,
}

// liked are labels in the order in which people select by them.
var liked = []string{"tier", "app.kubernetes.io/part-of", "app.kubernetes.io/component", "component", "app.kubernetes.io/name", "app", "k8s-app", "app.kubernetes.io/instance", "release"}

func liking(key string) int {
	if i := slices.Index(liked, key); i >= 0 {
		return i
	}
	return len(liked)
}

// brief lists names, at most three of them.
func brief(names []string) string {
	if len(names) <= 3 {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:3], ", "), len(names)-3)
}

// listed is brief with the noun before it.
func listed(noun string, names []string) string {
	if len(names) > 1 {
		noun += "s"
	}
	return noun + " " + brief(names)
}
