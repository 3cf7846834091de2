package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/kubectl-sched/kubectl-sched/internal/preview"
)

// gang lists the members of the gang that a pod waits with, those alike in one line.
func (x *explaining) gang() {
	g := x.explanation.Gang
	if g == nil || x.explanation.Pod.Spec.NodeName != "" {
		return
	}
	text := fmt.Sprintf("Its gang %s has %s", g.Name, amount(len(g.Members), "member", "members"))
	if g.Min > 0 {
		text = fmt.Sprintf("Its gang %s needs %d members at once; there are %d", g.Name, g.Min, len(g.Members))
	}
	text += fmt.Sprintf(", of which %d have a node.", g.Placed())
	x.say("%s", text)
	for _, group := range membersAlike(g.Members) {
		first := group[0]
		names := first.Name
		if len(group) > 1 {
			names = fmt.Sprintf("%s and %d more", names, len(group)-1)
		}
		if first.Node != "" {
			x.say("  %s: on node %s", names, first.Node)
		} else {
			x.say("  %s: %s", names, first.Why)
		}
	}
	if missing := g.Min - len(g.Members); missing > 0 {
		x.say("  %s missing:", amount(missing, "is", "are"))
		for _, why := range g.Missing {
			x.say("    %s", why)
		}
	}
	switch {
	case !g.LeftKnown:
	case g.Left > 0:
		x.say("  Of its timeout of %s %s are left; then seats are held for it.", span(g.Timeout), span(g.Left))
	default:
		x.say("  Its timeout of %s was over %s ago: seats are held for it by turns, or it needs more than there is.", span(g.Timeout), span(-g.Left))
	}
}

// span writes a duration, to the second.
func span(d time.Duration) string { return d.Round(time.Second).String() }

// membersAlike groups members by what there is to say of them, in their order.
func membersAlike(members []preview.Member) [][]preview.Member {
	var groups [][]preview.Member
	index := map[string]int{}
	for _, m := range members {
		key := m.Node + "\x00" + m.Why
		i, ok := index[key]
		if !ok {
			i = len(groups)
			index[key] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], m)
	}
	return groups
}

// pools says why pools that can get nodes do not help.
func (x *explaining) pools() {
	if len(x.explanation.Cannot) == 0 {
		return
	}
	x.say("More nodes do not help:")
	for _, c := range x.explanation.Cannot {
		x.say("  pool %s:", c.Pool)
		for _, why := range c.Why {
			x.say("    %s", why)
		}
	}
}

// lost says which preferences do not decide, and what would let them.
func (x *explaining) lost() {
	for _, l := range x.explanation.Lost {
		x.say("Its preference does not decide (%s): it likes node %s most, with %d points where %s has %d.", l.Plugin, l.Preferred, l.PreferredPoints, l.Chosen, l.ChosenPoints)
		if len(l.Origins) > 0 {
			x.say("  %s", originText(l.Origins, x.options))
		}
		if l.By != "" {
			x.say("  %s puts %s before it, by %d points.", l.By, l.Chosen, l.Outdone)
		}
		if l.Needs > 0 {
			x.say("  With weight %d instead of %d in profile %s it decides; tried, the pod goes to %s. A requirement decides in any case, and so does mustWin in a policy.", l.Needs, l.Weight, l.Profile, l.Would)
		} else {
			x.say("  No weight in profile %s was found with which it decides.", l.Profile)
		}
	}
}

// skipped says on which nodes a DaemonSet runs nothing: it counts as complete all the
// same.
func (x *explaining) skipped() {
	e := x.explanation
	if len(e.Skipped) == 0 {
		return
	}
	x.say("%s leaves out %d of %d nodes, and counts as complete without them:", e.Workload, len(e.Skipped), e.Nodes)
	var order []string
	names := map[string][]string{}
	for _, s := range e.Skipped {
		why := "its node selector or affinity does not match them"
		if s.Taint != "" {
			why = "its pods do not tolerate " + s.Taint
		}
		if names[why] == nil {
			order = append(order, why)
		}
		names[why] = append(names[why], s.Node.Name)
	}
	for _, why := range order {
		some := names[why]
		text := strings.Join(some[:min(len(some), mostWaiting)], ", ")
		if len(some) > mostWaiting {
			text += fmt.Sprintf(" and %d more", len(some)-mostWaiting)
		}
		x.say("  %s: %s", why, text)
	}
}

// whyParts are the parts of an explanation that not every pod has, for tools.
func whyParts(document map[string]any, e *preview.Explanation, o Options) {
	if g := e.Gang; g != nil {
		members := make([]map[string]any, 0, len(g.Members))
		for _, m := range g.Members {
			entry := map[string]any{"name": m.Name}
			set(entry, "node", m.Node)
			set(entry, "why", m.Why)
			members = append(members, entry)
		}
		gang := map[string]any{"name": g.Name, "needs": g.Min, "members": members, "missing": append([]string{}, g.Missing...)}
		if g.LeftKnown {
			gang["timeout"], gang["left"] = g.Timeout.String(), g.Left.String()
		}
		document["gang"] = gang
	}
	if e.Pool != "" {
		document["needsNodes"] = map[string]any{"pool": e.Pool, "nodes": e.NewNodes}
	}
	skipped := make([]map[string]any, 0, len(e.Skipped))
	for _, s := range e.Skipped {
		entry := map[string]any{"node": s.Node.Name}
		set(entry, "taint", s.Taint)
		skipped = append(skipped, entry)
	}
	document["nodesLeftOut"] = skipped
	pools := make([]map[string]any, 0, len(e.Cannot))
	for _, c := range e.Cannot {
		pools = append(pools, map[string]any{"pool": c.Pool, "why": c.Why})
	}
	document["poolsThatDoNotHelp"] = pools
	lost := make([]map[string]any, 0, len(e.Lost))
	for _, l := range e.Lost {
		lost = append(lost, map[string]any{
			"plugin": l.Plugin, "profile": l.Profile, "weight": l.Weight, "weightNeeded": l.Needs, "wouldGoTo": l.Would, "chosen": l.Chosen, "preferred": l.Preferred,
			"points": l.ChosenPoints, "pointsOfPreferred": l.PreferredPoints, "outweighedBy": l.By, "outweighedByPoints": l.Outdone, "origins": o.origins(l.Origins),
		})
	}
	document["preferencesThatLose"] = lost
}
