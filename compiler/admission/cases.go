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
		if len(e.elements) == 0 {
			continue
		}
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

// list returns the literal of a list of literals.
func list(elements []string) string { return "[" + strings.Join(elements, ", ") + "]" }

// byCell returns the expression of the value of the pod's cell, and of the empty
// one where there is none.
func (p *program) byCell(name string, values []string, empty string) string {
	var rows []row
	for i, c := range p.cells {
		if values[i] != "[]" && values[i] != empty {
			rows = append(rows, row{cel.Quote(c.name), values[i]})
		}
	}
	return fmt.Sprintf("%s.orValue(%s)", p.lookup(name, rows, "variables.cell"), empty)
}

// perCell returns for each cell the numbers for which cases hold, sorted: those of
// each of several wishes. False where that depends on more than the cell.
func (p *program) perCell(whens []When, numbers func(i int) []int) ([][]int, bool) {
	if p.cells == nil || slices.ContainsFunc(whens, func(w When) bool { return w.depends() }) {
		return nil, false
	}
	out := make([][]int, len(p.cells))
	for n, c := range p.cells {
		for i, when := range whens {
			if slices.ContainsFunc(when, func(of Case) bool { return slices.Contains(c.policies, p.group[of.Policy]) }) {
				out[n] = append(out[n], numbers(i)...)
			}
		}
		slices.Sort(out[n])
		out[n] = slices.Compact(out[n])
	}
	return out, true
}

// depends reports whether any of the cases asks for more than that its policy is in
// force.
func (w When) depends() bool {
	return slices.ContainsFunc(w, func(c Case) bool { return c.If != cel.True })
}

// defineNumbers defines lists of numbers, one for each cell.
func (p *program) defineNumbers(name string, perCell [][]int) {
	values := make([]string, len(perCell))
	for i, list := range perCell {
		values[i] = numbers(list)
	}
	p.define(name, "%s", p.byCell(name+"Of", values, none))
}

// defineObjects defines JSON objects, one for each cell, of the type dyn; no object
// is an empty one. False where they are too large for one expression.
func (p *program) defineObjects(name string, perCell []map[string]any) bool {
	all := []any{map[string]any{}}
	texts := map[string]int{"{}": 0}
	values := make([]string, len(perCell))
	size := 0
	for i, object := range perCell {
		text, _ := literal(object)
		n, ok := texts[text]
		if !ok {
			n = len(all)
			texts[text] = n
			all = append(all, object)
			size += len(text)
		}
		values[i] = strconv.Itoa(n)
	}
	if size > maxExpression {
		return false
	}
	p.constants(name+"Values", all)
	p.define(name, "variables.%sValues[%s]", name, p.byCell(name+"Of", values, "0"))
	return true
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

// noRow is what a table without rows comes to.
const noRow = "optional.none()"

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
		return noRow
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
