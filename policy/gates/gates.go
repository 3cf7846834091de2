// Package gates maps the gates intent of a policy to scheduling gates and their
// conditions. Loading checks what it returns, and compiling writes it. It must not
// know workloads or a cluster.
package gates

import (
	"maps"
	"slices"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gates/condition"
)

// Gate is one scheduling gate that a policy asks for.
type Gate struct {
	// Short is the gate's name as people call it: the policy's name and the field.
	Short string
	// Condition is when it opens. It is checked by its Validate.
	Condition condition.Condition
	// Path is the field below the policy.
	Path []string
}

// Of returns the gates that the policy asks for, sorted by name. Two policies
// never ask for the same gate.
func Of(name string, g *policy.Gates) []Gate {
	if g == nil {
		return nil
	}
	var out []Gate
	add := func(c condition.Condition, below ...string) {
		path := append([]string{string(c.Kind())}, below...)
		out = append(out, Gate{
			Short: name + "." + strings.Join(path, "."), Condition: c, Path: append([]string{"gates"}, path...),
		})
	}
	if p := g.Peers; p != nil {
		add(condition.Condition{Peers: &condition.Peers{Selector: selector(p.Labels), Min: p.Min, Ready: p.Ready}})
	}
	for _, key := range slices.Sorted(maps.Keys(g.Object)) {
		o := condition.Object(g.Object[key])
		add(condition.Condition{Object: &o}, key)
	}
	if g.Quota != "" {
		add(condition.Condition{Quota: &condition.Quota{Name: g.Quota}})
	}
	if g.Approval {
		add(condition.Condition{Approval: &condition.Approval{}})
	}
	if g.NotBefore != "" {
		add(condition.Condition{NotBefore: g.NotBefore})
	}
	if w := g.Window; w != nil {
		days := make([]condition.Day, len(w.Days))
		for i, d := range w.Days {
			days[i] = condition.Day(d)
		}
		if len(days) == 0 {
			days = nil
		}
		add(condition.Condition{Window: &condition.Window{Zone: w.Zone, Days: days, From: w.From, To: w.To}})
	}
	slices.SortFunc(out, func(a, b Gate) int { return strings.Compare(a.Short, b.Short) })
	return out
}

// selector writes labels in the form of kubectl's -l.
func selector(labels map[string]policy.Values) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		switch values := labels[key]; {
		case slices.Contains(values, "*"):
			parts = append(parts, key)
		case len(values) == 1:
			parts = append(parts, key+"="+values[0])
		default:
			parts = append(parts, key+" in ("+strings.Join(slices.Compact(slices.Sorted(slices.Values(values))), ",")+")")
		}
	}
	return strings.Join(parts, ",")
}
