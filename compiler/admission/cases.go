package admission

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/compiler/cel"
)

// Case is one way in which a wish comes about: the policy is in force for the
// pod, and a condition over the variables holds (Granted, DaemonSet, conditions
// on Labels).
type Case struct {
	Policy string
	// If is cel.True where nothing else is asked.
	If string
}

// InForce is the case that the policy is in force for the pod.
func InForce(policy string) Case { return Case{Policy: policy, If: cel.True} }

// And is the case with more conditions.
func (c Case) And(conditions ...string) Case {
	c.If = cel.And(append([]string{c.If}, conditions...)...)
	return c
}

func (c Case) compare(o Case) int {
	return cmp.Or(cmp.Compare(c.If, o.If), cmp.Compare(c.Policy, o.Policy))
}

// When are the cases in which a wish holds: it takes one of them.
type When []Case

// Any returns the cases, sorted, without those that another one says.
func Any(cases ...Case) When {
	out := slices.Clone(cases)
	out = slices.DeleteFunc(out, func(c Case) bool {
		return c.If == cel.False || c.If != cel.True && slices.Contains(cases, InForce(c.Policy))
	})
	slices.SortFunc(out, Case.compare)
	return slices.Compact(out)
}

// and is And for each of the cases.
func (w When) and(conditions ...string) When {
	out := make(When, len(w))
	for i, c := range w {
		out[i] = c.And(conditions...)
	}
	return out
}

// The API server evaluates a policy for every pod, and most pods are selected by
// few of many policies. So whatever many policies ask for stands in constant
// tables, which it reads once, when it compiles; an evaluation looks up what the
// policies in force ask for, and takes no step for any other.

// entry is what a case adds to a list: literals of its elements.
type entry struct {
	when     Case
	elements []string
}

// gathered returns the list of what the cases that hold add: in the order of
// their groups, and first what comes without a condition.
func (p *program) gathered(name string, entries []entry) string {
	byCondition := map[string]map[string][]string{}
	for _, e := range entries {
		if byCondition[e.when.If] == nil {
			byCondition[e.when.If] = map[string][]string{}
		}
		byGroup := byCondition[e.when.If]
		group := p.group[e.when.Policy]
		byGroup[group] = append(byGroup[group], e.elements...)
	}
	conditions := slices.Sorted(maps.Keys(byCondition))
	if i := slices.Index(conditions, cel.True); i > 0 {
		conditions = slices.Insert(slices.Delete(conditions, i, i+1), 0, cel.True)
	}
	var parts []string
	for i, condition := range conditions {
		part := p.ofGroups(fmt.Sprintf("%sOf_%d", name, i), byCondition[condition])
		if condition != cel.True {
			// What the condition says is worked out only where it matters.
			given := fmt.Sprintf("%sGiven_%d", name, i)
			p.define(given, "%s", part)
			part = "(" + cel.If(cel.And("variables."+given+".size() > 0", condition), "variables."+given, "[]") + ")"
		}
		parts = append(parts, part)
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return "(" + strings.Join(parts, "\n+ ") + ")"
}

// ofGroups returns the list of what the groups in force add.
func (p *program) ofGroups(name string, byGroup map[string][]string) string {
	groups := slices.Sorted(maps.Keys(byGroup))
	if p.cells != nil {
		lists := make([]string, len(p.cells))
		for i, c := range p.cells {
			var elements []string
			for _, group := range c.policies {
				elements = append(elements, byGroup[group]...)
			}
			lists[i] = list(elements)
		}
		return p.byCell(name, lists, list(byGroup[groups[0]][:1])+".filter(e, false)")
	}
	var rows []row
	for _, group := range groups {
		rows = append(rows, row{cel.Quote(group), list(byGroup[group])})
	}
	return fmt.Sprintf("variables.groups.map(g, %s.orValue([])).flatten()", p.lookup(name, rows, "g"))
}

// depends reports whether any of the cases asks for more than that its policy is in
// force.
func (w When) depends() bool {
	return slices.ContainsFunc(w, func(c Case) bool { return c.If != cel.True })
}

// chosen defines the list of the numbers for which cases hold, sorted: those of
// each of several wishes.
func (p *program) chosen(name string, whens []When, numbers func(i int) []int) {
	if perCell, ok := p.perCell(whens, numbers); ok {
		p.defineNumbers(name, perCell)
		return
	}
	var entries []entry
	for i, when := range whens {
		for _, c := range when {
			e := entry{when: c}
			for _, n := range numbers(i) {
				e.elements = append(e.elements, strconv.Itoa(n))
			}
			if len(e.elements) > 0 {
				entries = append(entries, e)
			}
		}
	}
	if len(entries) == 0 {
		p.define(name, none)
		return
	}
	p.define(name, "%s.distinct().sort()", p.gathered(name, entries))
}

// itself is the number of a wish, for chosen.
func itself(i int) []int { return []int{i} }
