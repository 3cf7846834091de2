package compiler

import (
	"fmt"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy/gates"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gates/condition"
)

// heldGate is a gate of a policy as it is written into pods.
type heldGate struct {
	name, text string
	reason     string
	origin     Origin
}

// prepareGates writes the conditions of a policy's gates, if there is a controller
// to open them: a gate that nobody opens holds the pods for ever.
func (c *compilation) prepareGates(r *rule) {
	for _, g := range gates.Of(r.Name, r.Gates) {
		origin := r.author.origin(g.Path...)
		name, err := condition.Name(g.Short)
		text := ""
		if err == nil {
			text, err = condition.Encode(&g.Condition)
		}
		if err != nil {
			c.report(finding{rule: "policy/bad-gate", policy: r.Name, at: origin.Range, message: err.Error()})
			continue
		}
		if c.opensGates(origin) {
			r.gates = append(r.gates, heldGate{name: name, text: text, reason: gateReason(g.Condition), origin: origin})
		}
	}
}

// gateReason says why a gate needs a controller.
func gateReason(c condition.Condition) string {
	const reason = "a scheduling gate holds the pods before any scheduler looks at them, which is built in, but nothing built in opens it; the gate controller of the bundled scheduler does when "
	switch c.Kind() {
	case condition.KindPeers:
		return reason + "the peers are there"
	case condition.KindObject:
		return reason + "the object is as is said"
	case condition.KindQuota:
		return reason + "the quota has room, while a ResourceQuota alone refuses the pod"
	case condition.KindApproval:
		return reason + "somebody has approved"
	case condition.KindNotBefore:
		return reason + "the moment has come"
	case condition.KindWindow:
		return reason + "the window is open"
	}
	return strings.TrimSuffix(reason, " when ")
}

// opensGates reports whether the cluster has what opens our gates, and reports a
// finding if not.
func (c *compilation) opensGates(o Origin) bool {
	if c.Installing {
		return true
	}
	for _, s := range c.facts.schedulers() {
		if s.Bundled {
			return true
		}
	}
	f := finding{rule: "compile/no-scheduler", policy: o.Policy, at: o.Range}
	const needs = "the gate would never open without the gate controller of the bundled scheduler"
	switch {
	case c.facts.SchedulersKnown:
		f.message = needs + ", and the cluster has none that is ready; run \"kubectl sched scheduler install\" first"
	case c.facts.cluster != nil:
		f.message = fmt.Sprintf("%s, and none is known to run there; run \"kubectl sched scheduler install\", and declare it under clusters.%s.schedulers (placement: bundled: true), or compile --with-cluster", needs, c.facts.cluster.Name)
	default:
		f.message = needs + ", and none is known to run there; run \"kubectl sched scheduler install\", and declare it under clusters.NAME.schedulers, in a document that names its clusters, or compile --with-cluster"
	}
	c.report(f)
	return false
}

// gatherGates is the gates intent.
func gatherGates(d *draft, r *rule) {
	for _, g := range r.gates {
		d.held = append(d.held, gateWish{name: g.name, level: LevelPlugin, reason: g.reason, origin: g.origin})
		d.keys = append(d.keys, keyWish{
			field: workload.TemplateAnnotations, key: g.name, value: g.text, level: LevelPlugin, reason: "tells the gate controller when it opens the gate of that name", origin: g.origin,
		})
	}
}
