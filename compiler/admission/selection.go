package admission

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/compiler/cel"
)

// Source is where a fact about a pod comes from.
type Source string

// The sources. Labels are those of the pod, or of the template of a DaemonSet;
// ObjectLabels those of the object that is admitted.
const (
	OfNamespace       Source = "namespace"
	OfNamespaceLabels Source = "namespaceLabel"
	OfKind            Source = "kind"
	OfGroupKind       Source = "groupKind"
	OfName            Source = "name"
	OfLabels          Source = "label"
	OfObjectLabels    Source = "objectLabel"
)

// sourceOf is what the expressions know of a source.
type sourceOf struct {
	source   Source
	variable string
	// labels says that the variable is a map of labels.
	labels bool
}

var sources = []sourceOf{
	{OfNamespace, Namespace, false},
	{OfKind, "variables.kind", false},
	{OfGroupKind, "variables.groupKind", false},
	{OfName, "variables.name", false},
	{OfLabels, Labels, true},
	{OfObjectLabels, "variables.objectLabels", true},
	{OfNamespaceLabels, "variables.namespaceLabels", true},
}

// Selection is whom a policy selects: pods that meet each of its demands and
// conditions. The zero Selection selects everyone.
type Selection struct {
	demands []demand
	// conditions are what no demand says.
	conditions []string
}

// demand is that one of some facts is true of the pod.
type demand struct {
	facts []fact
	// condition says the same.
	condition string
}

// fact is something that is true of a pod or is not, as a text: kind=Job, or
// label:app=web, or label:app where the label is there.
type fact string

// Demand adds that what the source has (of labels, that with the key) is one of
// the names or matches one of the globs, as cel.Matches has them. For labels "*"
// is that the label is there.
func (s *Selection) Demand(source Source, key string, patterns []string) {
	from := sources[slices.IndexFunc(sources, func(o sourceOf) bool { return o.source == source })]
	d := demand{condition: cel.Matches(from.variable, patterns)}
	name := string(source)
	if from.labels {
		d.condition = cel.Label(from.variable, key, patterns)
		name += ":" + key
	}
	switch {
	case from.labels && slices.Contains(patterns, "*"):
		d.facts = []fact{fact(name)}
	case slices.ContainsFunc(patterns, cel.IsGlob):
		s.Condition(d.condition)
		return
	default:
		for _, value := range slices.Compact(slices.Sorted(slices.Values(patterns))) {
			d.facts = append(d.facts, fact(name+"="+value))
		}
	}
	s.demands = append(s.demands, d)
}

// Condition adds a condition over the variables.
func (s *Selection) Condition(condition string) {
	if condition != cel.True {
		s.conditions = append(s.conditions, condition)
	}
}

// Text returns the whole selection as one condition over the variables.
func (s Selection) Text() string {
	var all []string
	for _, d := range s.demands {
		all = append(all, d.condition)
	}
	return cel.And(append(all, s.conditions...)...)
}

// selected defines the policies that select the pod, and returns their list,
// sorted. Those that may are looked up by the facts that are true of the pod;
// the others cost nothing.
func (p *program) selected(policies []Policy) string {
	p.facts(policies)
	byFact, rest := candidates(policies)
	var anyone []string
	var anchors, rests []row
	for _, f := range slices.Sorted(maps.Keys(byFact)) {
		if f == "" {
			anyone = byFact[f]
			continue
		}
		anchors = append(anchors, row{cel.Quote(string(f)), texts(byFact[f])})
	}
	for _, name := range slices.Sorted(maps.Keys(rest)) {
		var demands []string
		for _, d := range rest[name] {
			demands = append(demands, texts(d.texts()))
		}
		rests = append(rests, row{cel.Quote(name), list(demands)})
	}
	found := texts(anyone)
	if len(anchors) > 0 {
		others := fmt.Sprintf("variables.facts.map(f, %s.orValue([])).flatten()", p.lookup("selectedBy", anchors, "f"))
		if found += " + " + others; len(anyone) == 0 {
			found = others
		}
	}
	if len(rests) > 0 {
		found = fmt.Sprintf("(%s).filter(p, %s.orValue([]).all(d, d.exists(f, f in variables.facts)))", found, p.lookup("demands", rests, "p"))
	}
	p.define("candidates", "%s", found)
	byCondition := map[string][]string{}
	for _, policy := range policies {
		if c := cel.And(policy.Selects.conditions...); c != cel.True {
			byCondition[c] = append(byCondition[c], policy.Name)
		}
	}
	if len(byCondition) == 0 {
		return "variables.candidates.sort()"
	}
	var spared []string
	for _, condition := range slices.Sorted(maps.Keys(byCondition)) {
		names := texts(slices.Sorted(slices.Values(byCondition[condition])))
		spared = append(spared, cel.If(cel.And("variables.candidates.exists(p, p in "+names+")", cel.Not(condition)), names, "[]"))
	}
	p.define("spared", "%s.flatten()", p.list("spared", spared))
	return "variables.candidates.filter(p, !(p in variables.spared)).sort()"
}

// facts defines the facts that are true of the pod, as far as anyone demands
// them.
func (p *program) facts(policies []Policy) {
	// The keys of each source of which a value or the presence is demanded.
	values, presence := map[Source][]string{}, map[Source][]string{}
	for _, policy := range policies {
		for _, d := range policy.Selects.demands {
			for _, f := range d.facts {
				name, _, valued := strings.Cut(string(f), "=")
				source, key, _ := strings.Cut(name, ":")
				of := presence
				if valued {
					of = values
				}
				of[Source(source)] = append(of[Source(source)], key)
			}
		}
	}
	keys := func(list []string) string { return texts(slices.Compact(slices.Sorted(slices.Values(list)))) }
	var plain, more []string
	for _, from := range sources {
		switch {
		case from.labels && len(values[from.source]) > 0:
			more = append(more, fmt.Sprintf(`%s.transformList(k, v, k in %s, "%s:" + k + "=" + v)`, from.variable, keys(values[from.source]), from.source))
		case len(values[from.source]) > 0:
			plain = append(plain, fmt.Sprintf(`"%s=" + %s`, from.source, from.variable))
		}
		if len(presence[from.source]) > 0 {
			more = append(more, fmt.Sprintf(`%s.transformList(k, v, k in %s, "%s:" + k)`, from.variable, keys(presence[from.source]), from.source))
		}
	}
	p.define("facts", "%s", strings.Join(append([]string{list(plain)}, more...), "\n+ "))
}

// candidates returns the policies by one fact of each that must be true for it
// to select the pod, the rarest, and by "" those that demand nothing; and what
// else they demand.
func candidates(policies []Policy) (byFact map[fact][]string, rest map[string][]demand) {
	wanted := map[fact]int{}
	for _, policy := range policies {
		for _, d := range policy.Selects.demands {
			for _, f := range d.facts {
				wanted[f]++
			}
		}
	}
	byFact, rest = map[fact][]string{}, map[string][]demand{}
	for _, policy := range policies {
		demands := policy.Selects.demands
		if len(demands) == 0 {
			byFact[""] = append(byFact[""], policy.Name)
			continue
		}
		rarest := 0
		for i, d := range demands {
			if d.most(wanted) < demands[rarest].most(wanted) {
				rarest = i
			}
		}
		for _, f := range demands[rarest].facts {
			byFact[f] = append(byFact[f], policy.Name)
		}
		if others := slices.Delete(slices.Clone(demands), rarest, rarest+1); len(others) > 0 {
			rest[policy.Name] = others
		}
	}
	return byFact, rest
}

// most is how often the most wanted of the facts is wanted.
func (d demand) most(wanted map[fact]int) int {
	most := 0
	for _, f := range d.facts {
		most = max(most, wanted[f])
	}
	return most
}

func (d demand) texts() []string {
	out := make([]string, len(d.facts))
	for i, f := range d.facts {
		out[i] = string(f)
	}
	return out
}
