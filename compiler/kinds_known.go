package compiler

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// checkKinds reports every entry of a kinds list that stands for no kind whose pod
// templates are known: it selects nothing, or under "not" spares nothing, whatever
// the entries beside it do. The loader cannot know, since the table of kinds is
// workload's.
func (c *compilation) checkKinds() {
	if !slices.ContainsFunc(c.Placement.Policies, namesKinds) {
		return
	}
	table := c.kindTable()
	for _, p := range c.Placement.Policies {
		c.checkKindsOf(table, p, p.Workloads, []string{"workloads"})
		for _, name := range slices.Sorted(maps.Keys(p.Except)) {
			c.checkKindsOf(table, p, p.Except[name].Workloads, []string{"except", name, "workloads"})
		}
	}
}

// namesKinds reports whether a policy selects by kinds anywhere.
func namesKinds(p policy.Policy) bool {
	names := func(w policy.Workloads) bool { return w.Kinds != nil || w.Not != nil && w.Not.Kinds != nil }
	for _, e := range p.Except {
		if names(e.Workloads) {
			return true
		}
	}
	return names(p.Workloads)
}

func (c *compilation) checkKindsOf(table kindTable, p policy.Policy, w policy.Workloads, at []string) {
	for i, k := range kindPatterns(w.Kinds) {
		if slices.ContainsFunc(table, func(row kindFacts) bool { return k.matches(row.group, row.kind) }) {
			continue
		}
		f := finding{
			rule: "policy/unknown-kind", policy: p.Name, at: p.Positions.At(append(slices.Clone(at), "kinds", strconv.Itoa(i))...),
			message: fmt.Sprintf("no kind with pods is known as %q", w.Kinds[i]),
		}
		meant, ok := table.meant(w.Kinds[i])
		switch {
		case ok:
			f.message += fmt.Sprintf("; did you mean %q?", meant)
		case c.admitting() && k.group != nil:
			// Pods show whatever owns them.
			f.severity = warning
		}
		f.fix = &diag.Fix{Message: "teach a custom kind under the top-level kinds: by saying where its pod templates are, or take the entry out"}
		c.report(f)
	}
	if w.Not != nil {
		c.checkKindsOf(table, p, *w.Not, append(slices.Clone(at), "not"))
	}
}

// meant returns the kind that an unknown one was most likely meant to be, written
// as the user wrote it: with a group or without.
func (t kindTable) meant(name string) (string, bool) {
	_, kind, qualified := strings.Cut(name, "/")
	var names []string
	for _, row := range t {
		if !qualified {
			names = append(names, row.kind)
			continue
		}
		full := groupKind(row.group, row.kind)
		if row.group == "" {
			full = "core/" + row.kind
		}
		if row.kind == kind { // of another group
			return full, true
		}
		names = append(names, full)
	}
	return diag.Nearest(name, names)
}
