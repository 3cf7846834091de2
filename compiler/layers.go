package compiler

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// prepareExceptions reports the exceptions that have expired.
func (c *compilation) prepareExceptions(r *rule) {
	for _, name := range sortedKeys(r.Except) {
		e := exception{name: name, Exception: r.Except[name]}
		e.selects = newSelection(e.Workloads, false)
		end, err := endOfDay(e.Expires)
		switch {
		case err != nil:
			c.report(finding{
				rule: "policy/bad-date", policy: r.Name, at: r.author.at("except", name, "expires"),
				message: fmt.Sprintf("%q is no date; write one such as \"2027-01-31\"", e.Expires),
			})
			e.expired = true
		case !c.Now.Before(end):
			c.report(finding{
				rule: "policy/expired-exception", policy: r.Name, at: r.author.at("except", name, "expires"),
				message: fmt.Sprintf("exception %q expired on %s; take it out, or give it a later day", name, e.Expires),
			})
			e.expired = true
		}
		r.except = append(r.except, e)
	}
}

// prepareOverrides resolves which policies each policy replaces.
func (c *compilation) prepareOverrides(byName map[string]*rule) {
	var names []string
	for _, p := range c.Placement.Policies {
		names = append(names, p.Name)
	}
	for _, r := range c.rules {
		for i, name := range r.Overrides {
			at := r.author.at("overrides", fmt.Sprint(i))
			other := byName[name]
			switch {
			case !slices.Contains(names, name):
				message := fmt.Sprintf("there is no policy %q to override", name)
				if near, ok := diag.Nearest(name, names); ok {
					message += fmt.Sprintf("; did you mean %q?", near)
				}
				c.report(finding{rule: "policy/unknown-policy", policy: r.Name, at: at, message: message})
			case other == nil:
				// It does not hold in this cluster: nothing to replace.
			case other.Level != policy.Default:
				c.report(finding{
					rule: "policy/override-mandatory", policy: r.Name, at: at,
					message: fmt.Sprintf("policy %q is mandatory and cannot be overridden; only policies of level \"default\" can", name),
					related: []diag.Related{{Range: other.author.at("level"), Message: "the mandatory policy"}},
				})
			case overridesBack(byName, other, r.Name, map[string]bool{}):
				c.report(finding{
					rule: "policy/override-cycle", policy: r.Name, at: at,
					message: fmt.Sprintf("policies %q and %q override each other; one of them must give way", r.Name, name),
					related: []diag.Related{{Range: other.author.at("overrides"), Message: "the other way round"}},
				})
			default:
				r.replaces = append(r.replaces, other)
			}
		}
	}
}

// overridesBack reports whether r overrides the policy of that name, directly
// or through others.
func overridesBack(byName map[string]*rule, r *rule, name string, seen map[string]bool) bool {
	if r.Name == name {
		return true
	}
	if seen[r.Name] {
		return false
	}
	seen[r.Name] = true
	return slices.ContainsFunc(r.Overrides, func(o string) bool {
		next := byName[o]
		return next != nil && overridesBack(byName, next, name, seen)
	})
}

// layer reduces the rules that select the draft's template to those in force:
// without the ones that an exception spares it, and without overridden
// defaults. A default stays overridden by a policy that is overridden itself.
func (d *draft) layer(selected []*rule) {
	var sparing []*rule
	for _, r := range selected {
		if !d.spared(r) {
			sparing = append(sparing, r)
		}
	}
	replacedBy := map[*rule][]*rule{}
	for _, r := range sparing {
		for _, o := range r.replaces {
			if slices.Contains(sparing, o) {
				replacedBy[o] = append(replacedBy[o], r)
			}
		}
	}
	for _, r := range sparing {
		by := replacedBy[r]
		if len(by) == 0 {
			d.rules = append(d.rules, r)
		}
		for i, a := range by {
			for _, b := range by[i+1:] {
				if len(replacedBy[a]) == 0 && len(replacedBy[b]) == 0 {
					d.compareOverrides(r, a, b)
				}
			}
		}
	}
}

// spared reports whether an exception in force spares the template from the rule.
func (d *draft) spared(r *rule) bool {
	for _, e := range r.except {
		if e.expired {
			continue
		}
		switch e.selects.selects(d.c.facts, d.w, d.t) {
		case yes:
			d.c.plan.Exceptions = append(d.c.plan.Exceptions, ExceptionUse{
				Policy: r.Name, Exception: e.name, Workload: d.w.Ref(),
				Reason: e.Reason, Expires: e.Expires, Range: r.author.at("except", e.name),
			})
			return true
		case unknown:
			d.c.namespaceUnknown(r, d.w.Namespace, "except", e.name, "workloads", "namespaceLabels")
		case no:
		}
	}
	return false
}

// compareOverrides reports where two policies that replace one default say
// different things of one intent.
func (d *draft) compareOverrides(replaced, a, b *rule) {
	disagree := func(path ...string) {
		d.c.reportOnce(fmt.Sprint("overrides", replaced.Name, a.Name, b.Name, path), finding{
			rule: "compile/overrides-disagree", policy: a.Name, subject: d.w.Ref(), at: a.author.at(path...),
			message: fmt.Sprintf("policies %q and %q both override %q for this workload and disagree on %s; let one override the other, or select different workloads",
				a.Name, b.Name, replaced.Name, joinPath(path)),
			related: []diag.Related{
				{Range: b.author.at(path...), Message: fmt.Sprintf("what policy %q says", b.Name)},
				{Range: replaced.author.at(path...), Message: "the default that both override"},
			},
		})
	}
	compareField(disagree, "nodes", a.Nodes, b.Nodes)
	compareField(disagree, "tolerate", a.Tolerate, b.Tolerate)
	compareField(disagree, "priority", a.Priority, b.Priority)
	compareField(disagree, "raw", a.Raw, b.Raw)
	compareField(disagree, "gates", a.Gates, b.Gates)
	compareField(disagree, "cache", a.Cache, b.Cache)
	compareField(disagree, "gpuMemory", a.GPUMemory, b.GPUMemory)
	compareField(disagree, "gang", a.Gang, b.Gang)
	compareMap(disagree, "spread", a.Spread, b.Spread)
	compareMap(disagree, "together", a.Together, b.Together)
	compareMap(disagree, "apart", a.Apart, b.Apart)
}

func compareField[T any](disagree func(...string), name string, a, b *T) {
	if a != nil && b != nil && !reflect.DeepEqual(a, b) {
		disagree(name)
	}
}

func compareMap[T any](disagree func(...string), name string, a, b map[string]T) {
	for _, k := range sortedKeys(a) {
		if other, ok := b[k]; ok && !reflect.DeepEqual(a[k], other) {
			disagree(name, k)
		}
	}
}
