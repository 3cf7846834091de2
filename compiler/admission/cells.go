package admission

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/compiler/cel"
)

// Most sets ask little of a pod to know who selects it: its namespace, a label or
// two. Then there are few kinds of pods, cells, of which each is selected by the
// same policies, and what these come to is worked out for each cell when the set
// is compiled. The API server works out a pod's cell, and looks up the rest.

const (
	// maxCells keeps the tables, of which each has a row for a cell, small.
	maxCells = 400
	// maxConditions is how many conditions, which no demand says, are worked out for
	// every pod, whoever may select it otherwise.
	maxConditions = 4
)

// The classes of an axis that are no value which a policy names: no label and no
// name of the API is one of them.
const (
	absentClass = "-"
	otherClass  = "*"
	holdsClass  = "+"
)

// cell is a kind of pods: the policies in force for them, sorted.
type cell struct {
	name     string
	policies []string
}

// axis is one thing about a pod that policies ask: what a source has (of labels,
// with the key), or whether a condition holds.
type axis struct {
	from      sourceOf
	key       string
	condition string

	// values are those that policies name, sorted; presence says that one asks for
	// the label, whatever its value.
	values   []string
	presence bool

	classes []class
	// of is the class of each value.
	of map[string]string
}

// class is what no policy tells apart on an axis.
type class struct {
	name string
	// keeps says for each policy whether it may select pods of the class.
	keeps []bool
}

// cellsOf returns the cells in which any of the policies is in force, and the
// expression of the pod's cell; false if they are too many.
func cellsOf(policies []Policy) (expression string, cells []cell, ok bool) {
	axes, ok := axesOf(policies)
	if !ok || len(policies) == 0 {
		return "", nil, false
	}
	// A policy that contradicts itself selects nobody; without such there is a cell
	// at the end of each way that is gone.
	selected := make([]bool, len(policies))
	for i := range policies {
		selected[i] = !slices.ContainsFunc(axes, func(a *axis) bool {
			return !slices.ContainsFunc(a.classes, func(c class) bool { return c.keeps[i] })
		})
	}
	var walk func(axes []*axis, names []string, selected []bool) bool
	walk = func(axes []*axis, names []string, selected []bool) bool {
		if !slices.Contains(selected, true) {
			return true
		}
		if len(axes) == 0 {
			cells = append(cells, cell{strings.Join(names, ","), inForce(policies, selected)})
			return len(cells) <= maxCells
		}
		for _, class := range axes[0].classes {
			left := slices.Clone(selected)
			for i, keeps := range class.keeps {
				left[i] = left[i] && keeps
			}
			if !walk(axes[1:], append(slices.Clip(names), class.name), left) {
				return false
			}
		}
		return true
	}
	if !walk(axes, nil, selected) {
		return "", nil, false
	}
	var parts []string
	for _, a := range axes {
		parts = append(parts, a.expression())
	}
	if len(parts) == 0 {
		parts = []string{`""`}
	}
	return strings.Join(parts, ` + "," + `), cells, true
}

// inForce returns the names of the selected policies that no selected one
// replaces, sorted.
func inForce(policies []Policy, selected []bool) []string {
	var names, out []string
	for i, p := range policies {
		if selected[i] {
			names = append(names, p.Name)
		}
	}
	for i, p := range policies {
		if selected[i] && !slices.ContainsFunc(p.ReplacedBy, func(by string) bool { return slices.Contains(names, by) }) {
			out = append(out, p.Name)
		}
	}
	slices.Sort(out)
	return out
}

// axesOf returns what the policies ask; false if it is too much.
func axesOf(policies []Policy) ([]*axis, bool) {
	var axes []*axis
	byName := map[string]*axis{}
	of := func(name string) *axis {
		if byName[name] == nil {
			source, key, _ := strings.Cut(name, ":")
			from := sources[slices.IndexFunc(sources, func(o sourceOf) bool { return string(o.source) == source })]
			byName[name] = &axis{from: from, key: key}
			axes = append(axes, byName[name])
		}
		return byName[name]
	}
	var conditions []string
	for _, p := range policies {
		conditions = append(conditions, p.Selects.conditions...)
		for _, d := range p.Selects.demands {
			for _, f := range d.facts {
				name, value, valued := strings.Cut(string(f), "=")
				a := of(name)
				if valued {
					a.values = append(a.values, value)
				} else {
					a.presence = true
				}
			}
		}
	}
	slices.Sort(conditions)
	conditions = slices.Compact(conditions)
	for _, c := range conditions {
		axes = append(axes, &axis{condition: c})
	}
	for _, a := range axes {
		a.classify(policies)
	}
	return axes, len(conditions) <= maxConditions
}

// plainValue are values that can name a class.
var plainValue = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/-]*$`)

// classify finds the classes.
func (a *axis) classify(policies []Policy) {
	if a.condition != "" {
		a.class(holdsClass, policies, func(Selection) bool { return true })
		a.class(absentClass, policies, func(s Selection) bool { return !slices.Contains(s.conditions, a.condition) })
		return
	}
	name := string(a.from.source)
	if a.from.labels {
		name += ":" + a.key
	}
	of := func(class string, facts ...fact) string {
		return a.class(class, policies, func(s Selection) bool { return s.allows(name, facts) })
	}
	slices.Sort(a.values)
	a.values = slices.Compact(a.values)
	a.of = map[string]string{}
	of(absentClass)
	if a.presence {
		of(otherClass, fact(name))
	}
	for i, value := range a.values {
		class := value
		if !plainValue.MatchString(value) {
			class = fmt.Sprintf("#%d", i)
		}
		a.of[value] = of(class, fact(name), fact(name+"="+value))
	}
}

// class adds a class, or finds the one that the same policies may select, and
// returns its name.
func (a *axis) class(name string, policies []Policy, keeps func(Selection) bool) string {
	c := class{name: name}
	for _, p := range policies {
		c.keeps = append(c.keeps, keeps(p.Selects))
	}
	for _, o := range a.classes {
		if slices.Equal(o.keeps, c.keeps) {
			return o.name
		}
	}
	a.classes = append(a.classes, c)
	return name
}

// allows reports whether all that is demanded of a source (of labels, with the key)
// is among the facts that are true of it.
func (s Selection) allows(name string, facts []fact) bool {
	return !slices.ContainsFunc(s.demands, func(d demand) bool {
		about, _, _ := strings.Cut(string(d.facts[0]), "=")
		return about == name && !slices.ContainsFunc(d.facts, func(f fact) bool { return slices.Contains(facts, f) })
	})
}

// expression returns the expression of the pod's class.
func (a *axis) expression() string {
	if a.condition != "" {
		return fmt.Sprintf("((%s) ? %q : %q)", a.condition, holdsClass, absentClass)
	}
	// Where the presence is asked, or nothing but the value "", that differs from
	// no label.
	otherwise := absentClass
	if slices.ContainsFunc(a.classes, func(c class) bool { return c.name == otherClass }) {
		otherwise = otherClass
	}
	var rows []string
	for _, value := range a.values {
		if a.of[value] != otherwise {
			rows = append(rows, cel.Quote(value)+": "+cel.Quote(a.of[value]))
		}
	}
	table := "{" + strings.Join(rows, ", ") + "}"
	if !a.from.labels {
		return fmt.Sprintf("%s[?%s].orValue(%q)", table, a.from.variable, otherwise)
	}
	label := fmt.Sprintf("%s[?%s]", a.from.variable, cel.Quote(a.key))
	switch _, empty := a.of[""]; {
	case len(rows) == 0:
		return fmt.Sprintf("(%s.hasValue() ? %q : %q)", label, otherwise, absentClass)
	case otherwise == absentClass && !empty:
		return fmt.Sprintf(`%s[?%s.orValue("")].orValue(%q)`, table, label, absentClass)
	default:
		return fmt.Sprintf("%s.optMap(v, %s[?v].orValue(%q)).orValue(%q)", label, table, otherwise, absentClass)
	}
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
