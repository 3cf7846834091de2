package admission

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/compiler/cel"
)

// What a patch writes must be made by the expression itself: the API server does
// not always write back what it read from the object. So lists are appended to
// and changed in place, never written as a whole.

const (
	emptyList = `[""].filter(e, false)`
	emptyMap  = `dyn({})`
)

// compile returns the variables of the set, and the operations of its patch.
func (s Set) compile() *program {
	p := &program{}
	p.pod(s)
	p.policies(s)
	if s.usesOwn() {
		p.own(s)
	}
	p.nodeLabels(s)
	p.nodeAffinity(s)
	p.tolerations(s)
	p.spread(s)
	p.affinity(s)
	p.scalars(s)
	p.keys(s)
	p.gates(s)
	p.devices(s)
	p.raw(s)
	p.define("changes", "%s.filter(c, c != \"\").distinct()", lines(append([]string{`""`}, p.changed...)))
	return p
}

// changes says when a field of the pod spec changes.
func (p *program) changes(field, when string) {
	if !p.unasked {
		p.settling("(" + when + ")")
	}
	if p.while != "" {
		when = p.while + " && (" + when + ")"
	}
	p.changed = append(p.changed, fmt.Sprintf(`%s ? %s : ""`, when, cel.Quote(field)))
}

// patch adds a list of operations.
func (p *program) patch(operations string) { p.operations = append(p.operations, operations) }

// parents makes the maps along a path, where there are none, when the condition
// holds. The operations of a patch are carried out in order, so that a map which
// several need is made by the first that does: the path of each is listed once
// with all of their conditions.
func (p *program) parents(when string, path ...string) {
	if p.while != "" {
		when = p.while + " && " + when
	}
	for n := range path {
		at := path[:n+1]
		i := slices.IndexFunc(p.made, func(m parent) bool { return slices.Equal(m.path, at) })
		if i < 0 {
			p.made = append(p.made, parent{path: slices.Clone(at)})
			i = len(p.made) - 1
		}
		p.made[i].when = append(p.made[i].when, when)
	}
}

// whole adds what a field gets that is made of wishes alone where the pod has
// nothing in it: the value, if asked holds. That is nearly every pod, and then
// nothing has to be merged; nor has it where the pod has just that value, as it
// does when the API server asks again. For all other pods, and for those of which
// plain does not hold, otherwise adds what merges. The value must be what merging
// with nothing comes to.
func (p *program) whole(name, field, at string, own []string, plain, value, asked string, otherwise func()) {
	has := specField(own)
	p.define(name+"Case", `!(%[1]s) ? "merge" : !%[2]s.hasValue() ? (%[3]s ? "new" : "as it is") : dyn(%[2]s.value()) == dyn(%[4]s) ? "as it is" : "merge"`, plain, has, asked, value)
	is := func(what string) string { return fmt.Sprintf("variables.%sCase == %q", name, what) }
	var before int
	p.costly(fmt.Sprintf("variables.%sCase != %q", name, "as it is"), func() {
		p.changes(field, is("new"))
		p.parents(is("new"), own[:len(own)-1]...)
		p.patch(operation(is("new"), "add", under(at), value))
		before = len(p.operations)
		p.while = is("merge")
		otherwise()
		p.while = ""
	})
	if merging := p.operations[before:]; len(merging) > 0 {
		p.operations = append(p.operations[:before:before], "("+is("merge")+" ? "+strings.Join(merging, "\n+ ")+" : [])")
	}
}

// parent is a map that must be there before anything is put into it.
type parent struct {
	path []string
	when []string
}

// under is the path of a field of the pod spec, for a patch.
func under(at string) string { return "variables.path + " + cel.Quote(at) }

// operation returns a list of one operation of a JSON patch, or of none.
func operation(when, op, path, value string) string {
	patch := fmt.Sprintf(`JSONPatch{op: %q, path: %s}`, op, path)
	if value != "" {
		patch = fmt.Sprintf(`JSONPatch{op: %q, path: %s, value: %s}`, op, path, value)
	}
	return fmt.Sprintf("(%s ? [%s] : [])", when, patch)
}

// mutation returns the expression of the one mutation. A mark of another content
// says that the set's former version has already placed the pod in this very
// request: half of each would be worse.
func (s Set) mutation(p *program, content string) string {
	ops := []string{operation(`variables.mark == "" && !has(object.metadata.annotations)`, "add", cel.Quote("/metadata/annotations"), emptyMap)}
	for _, m := range p.made {
		ops = append(ops, operation("("+cel.Or(m.when...)+") && !"+specField(m.path)+".hasValue()", "add", under(pointer(m.path...)), emptyMap))
	}
	ops = append(ops, p.operations...)
	ops = append(ops,
		operation(`variables.mark != variables.marked`, "add", cel.Quote(pointer("metadata", "annotations", Annotation(s.Name))), "variables.marked"))
	return s.answer(content) + fmt.Sprintf(`variables.mark != "" && !variables.mark.startsWith(%s) ? []
: variables.policyNames == "" ? %s
: %s`,
		cel.Quote(content+" "),
		// A mark of this content on a pod that no policy selects is not ours.
		operation(`variables.mark != ""`, "remove", cel.Quote(pointer("metadata", "annotations", Annotation(s.Name))), ""),
		strings.Join(ops, "\n+ "))
}
