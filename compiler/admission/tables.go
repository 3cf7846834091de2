package admission

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/compiler/cel"
)

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

// list returns the literal of a list of literals.
func list(elements []string) string { return "[" + strings.Join(elements, ", ") + "]" }
