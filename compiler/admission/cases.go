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
		groups := slices.Sorted(maps.Keys(byCondition[condition]))
		rows := make([]row, len(groups))
		for j, group := range groups {
			rows[j] = row{cel.Quote(group), "[" + strings.Join(byCondition[condition][group], ", ") + "]"}
		}
		part := fmt.Sprintf("variables.groups.map(g, %s.orValue([])).flatten()", p.lookup(fmt.Sprintf("%sOf_%d", name, i), rows, "g"))
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

// chosen defines the list of the numbers for which cases hold, sorted: those of
// each of several wishes.
func (p *program) chosen(name string, whens []When, numbers func(i int) []int) {
	var entries []entry
	for i, when := range whens {
		for _, c := range when {
			e := entry{when: c}
			for _, n := range numbers(i) {
				e.elements = append(e.elements, strconv.Itoa(n))
			}
			entries = append(entries, e)
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

// row is a row of a constant table: literals of its key and its value.
type row struct{ key, value string }

// maxInline keeps expressions legible: a longer table is a variable of its own,
// while several places use it.
const maxInline = 1_000

// lookup returns the expression that looks a key up in a constant table: an
// optional. A long table is put into as many variables as it takes.
func (p *program) lookup(name string, rows []row, key string) string {
	var chunks []string
	var texts []string
	size := 0
	flush := func() {
		table := "{" + strings.Join(texts, ", ") + "}"
		if len(chunks) > 0 || len(table) > maxInline {
			variable := fmt.Sprintf("%s_%d", name, len(chunks))
			p.define(variable, "{\n  %s\n}", strings.Join(texts, ",\n  "))
			table = "variables." + variable
		}
		chunks = append(chunks, table+"[?"+key+"]")
		texts, size = nil, 0
	}
	for _, r := range rows {
		text := r.key + ": " + r.value
		if size += len(text) + 4; size > maxExpression && len(texts) > 0 {
			flush()
			size = len(text) + 4
		}
		texts = append(texts, text)
	}
	if len(texts) > 0 {
		flush()
	}
	if len(chunks) == 0 {
		return "optional.none()"
	}
	out := chunks[0]
	for _, c := range chunks[1:] {
		out += ".or(" + c + ")"
	}
	return out
}

// numbered returns the expression of the value with the number that the variable
// i of a comprehension has; the number counts where they are not all the same.
func (p *program) numbered(name string, values []string) string {
	if len(slices.Compact(slices.Clone(values))) == 1 {
		return values[0]
	}
	rows := make([]row, len(values))
	for i, v := range values {
		rows[i] = row{strconv.Itoa(i), v}
	}
	return p.lookup(name, rows, "i") + ".value()"
}

// constants defines a list of JSON objects, which all have the same type, dyn.
func (p *program) constants(name string, values []any) {
	rows := make([]string, len(values))
	for i, v := range values {
		text, _ := literal(v)
		rows[i] = "dyn(" + text + ")"
	}
	p.define(name, "%s", lines(rows))
}
