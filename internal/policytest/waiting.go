package policytest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/internal/preview"
	"github.com/kubectl-sched/kubectl-sched/internal/simulate"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// gatesPlugin is what holds a pod that no scheduler looks at.
const gatesPlugin = "SchedulingGates"

// waiting are the pods that are on no node, and would be on none.
func (s *subject) waiting() []simulate.Pod {
	return slices.DeleteFunc(slices.Clone(s.pods), func(p simulate.Pod) bool {
		return p.Verdict == simulate.Placed || p.Verdict == simulate.NeedsNodes
	})
}

// why are the reasons why a pod waits.
func (s *subject) why(p simulate.Pod) []preview.Cause {
	if p.Verdict == simulate.Gated && len(p.Pod.Spec.SchedulingGates) > 0 {
		var gates []string
		for _, g := range p.Pod.Spec.SchedulingGates {
			gates = append(gates, g.Name)
		}
		return []preview.Cause{{Plugin: gatesPlugin, Reason: "waits for " + strings.Join(gates, ", "), Origins: preview.Origins(s.compiled.plan, s.ref, gatesPlugin)}}
	}
	causes := s.outcome.Causes(p, s.pools)
	if len(causes) > 0 || p.Attempt == nil {
		return causes
	}
	return []preview.Cause{{Reason: p.Attempt.Message}}
}

func (s *subject) judgePending() {
	want := s.expect.Pending
	if want == nil {
		return
	}
	s.judged()
	waiting := s.waiting()
	at := s.path("pending")
	switch {
	case want.Count != nil:
		if n := want.Count.Of(len(s.pods)); n != len(waiting) {
			s.fail(append(at, "count"), s.causes(), "%s", s.unlike(fmt.Sprintf("%s of %s must be pending, and %s", pods(n), s.ref, are(len(waiting)))))
			return
		}
	case len(waiting) == 0:
		s.fail(at, nil, "%s", s.unlike(fmt.Sprintf("a pod of %s must be pending, and none is", s.ref)))
		return
	}
	for _, p := range waiting {
		causes := s.why(p)
		if !slices.ContainsFunc(causes, func(c preview.Cause) bool { return isCause(c, want) }) {
			s.fail(at, s.causes(), "pod %s is pending, but not for the reason that is expected (%s): %s", p.Pod.Name, described(want), reasons(causes))
			return
		}
	}
}

// isCause reports whether a cause is as expected.
func isCause(c preview.Cause, want *policy.TestPending) bool {
	return (want.Plugin == "" || c.Plugin == want.Plugin) && strings.Contains(c.Reason, want.Reason) &&
		(want.Policy == "" || slices.ContainsFunc(c.Origins, func(o compiler.Origin) bool { return o.Policy == want.Policy }))
}

// described says which reason is expected.
func described(want *policy.TestPending) string {
	var parts []string
	if want.Plugin != "" {
		parts = append(parts, "plugin "+want.Plugin)
	}
	if want.Reason != "" {
		parts = append(parts, fmt.Sprintf("reason %q", want.Reason))
	}
	if want.Policy != "" {
		parts = append(parts, "policy "+want.Policy)
	}
	return strings.Join(parts, ", ")
}

// reasons says why a pod waits, the most frequent reason first.
func reasons(causes []preview.Cause) string {
	var parts []string
	for _, c := range causes {
		text := c.Reason
		if c.Plugin != "" {
			text = c.Plugin + ": " + text
		}
		if n := c.Count(); n > 0 {
			text += fmt.Sprintf(" (%d nodes)", n)
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		return "no reason is known"
	}
	return listed(parts)
}

// causes relates the policies' lines behind what keeps pods waiting.
func (s *subject) causes() []diag.Related {
	var origins []compiler.Origin
	for _, p := range s.waiting() {
		for _, c := range s.why(p) {
			origins = append(origins, c.Origins...)
		}
	}
	return fromLines(origins)
}

// unlike ends what was expected with what became of pods that are on no node.
func (s *subject) unlike(text string) string {
	if waiting := s.waiting(); len(waiting) > 0 {
		text += fmt.Sprintf("; %s is pending: %s", waiting[0].Pod.Name, reasons(s.why(waiting[0])))
	}
	needs := map[string]int{}
	for _, p := range s.pods {
		if p.Verdict == simulate.NeedsNodes {
			needs[p.Pool]++
		}
	}
	if len(needs) > 0 {
		text += "; new nodes are needed for pods: " + counted(needs)
	}
	return text
}

func (s *subject) judgeNeeds() {
	want := s.expect.NeedsNodes
	if want == nil {
		return
	}
	s.judged()
	at := s.path("needsNodes")
	has, nodes := 0, 0
	for _, p := range s.pods {
		if p.Verdict == simulate.NeedsNodes && p.Pool == want.Pool {
			has++
		}
	}
	for _, g := range s.outcome.Growth {
		if g.Pool == want.Pool {
			nodes = g.Nodes
		}
	}
	switch {
	case has == 0:
		hint := ""
		if g, ok := s.test.Nodes[want.Pool]; ok && !g.Grows {
			hint = "; its group has no grows: true, so that nobody makes nodes"
		}
		s.fail(at, s.causes(), "%s%s", s.unlike(fmt.Sprintf("pods of %s must need nodes of %s, and none does", s.ref, want.Pool)), hint)
	case want.Pods > 0 && has != want.Pods:
		s.fail(append(at, "pods"), nil, "%s of %s must need nodes of %s, and %s", pods(want.Pods), s.ref, want.Pool, do(has))
	case want.Nodes > 0 && nodes != want.Nodes:
		s.fail(append(at, "nodes"), nil, "%d new nodes of %s must be needed, and %d are", want.Nodes, want.Pool, nodes)
	}
}

func (s *subject) judgeGang() {
	want := s.expect.Gang
	if want == "" {
		return
	}
	s.judged()
	at := s.path("gang")
	if !s.isGang() {
		s.bad(ruleError, at, "%s is no gang: neither a policy in force nor its own fields make it one", s.ref)
		return
	}
	placed := len(s.placedPods())
	switch {
	case want == "whole" && placed < len(s.pods):
		s.fail(at, s.causes(), "%s", s.unlike(fmt.Sprintf("all %d members of %s must start, and %d are on nodes", len(s.pods), s.ref, placed)))
	case want == "waits" && placed > 0:
		s.fail(at, s.origins("GangScheduling"), "no member of %s may start before all can, and %d of %d are on nodes", s.ref, placed, len(s.pods))
	}
}

// isGang reports whether a policy, or the workload itself, makes its pods a gang.
func (s *subject) isGang() bool {
	if slices.ContainsFunc(s.pods, func(p simulate.Pod) bool { return p.Pod.Spec.SchedulingGroup != nil }) {
		return true
	}
	for _, c := range s.changes() {
		for _, name := range c.Policies {
			if slices.ContainsFunc(s.Placement.Policies, func(p policy.Policy) bool { return p.Name == name && p.Gang != nil }) {
				return true
			}
		}
	}
	return false
}

// changes are what the policies made of the workload's templates.
func (s *subject) changes() []compiler.Change {
	return slices.DeleteFunc(slices.Clone(s.compiled.plan.Changes), func(c compiler.Change) bool { return refOf(c.Workload) != s.ref })
}

// levels are the levels from the nearest to the furthest.
var levels = []compiler.Level{compiler.LevelBuiltin, compiler.LevelProfile, compiler.LevelPlugin}

func (s *subject) judgeCompiled() {
	want := s.expect.Compiled
	if want == nil {
		return
	}
	var effects []compiler.Effect
	policies := []string{}
	for _, c := range s.changes() {
		effects = append(effects, c.Effects...)
		policies = append(policies, c.Policies...)
	}
	slices.Sort(policies)
	policies = slices.Compact(policies)
	if want.Policies != nil {
		s.judged()
		if expected := slices.Sorted(slices.Values(*want.Policies)); !slices.Equal(expected, policies) {
			s.fail(s.path("compiled", "policies"), nil, "the policies in force for %s must be %s, and are %s", s.ref, named(expected), named(policies))
		}
	}
	if want.Level != "" {
		s.judgeLevel(compiler.Level(want.Level), effects)
	}
	for _, field := range slices.Sorted(maps.Keys(want.Fields)) {
		s.judgeField(field, want.Fields[field], effects)
	}
}

func (s *subject) judgeLevel(want compiler.Level, effects []compiler.Effect) {
	s.judged()
	at := s.path("compiled", "level")
	if len(effects) == 0 {
		s.fail(at, nil, "the policies add nothing to %s, at no level", s.ref)
		return
	}
	furthest := effects[0]
	for _, e := range effects {
		if slices.Index(levels, e.Level) > slices.Index(levels, furthest.Level) {
			furthest = e
		}
	}
	if furthest.Level != want {
		s.fail(at, fromLines(furthest.Origins), "what policies add to %s must be of level %s, and is of level %s: %s (%s)", s.ref, want, furthest.Level, furthest.Field, furthest.Reason)
	}
}

// judgeField holds that policies add something to the field that has the text in its
// JSON.
func (s *subject) judgeField(field, text string, effects []compiler.Effect) {
	s.judged()
	at := s.path("compiled", "fields", field)
	var fields, values []string
	for _, e := range effects {
		fields = append(fields, e.Field)
		if field != "" && e.Field != field && !strings.HasPrefix(e.Field, field+".") && !strings.HasPrefix(e.Field, field+"[") {
			continue
		}
		value, err := json.Marshal(e.Value)
		if err != nil {
			s.bad(ruleError, at, "what is compiled cannot be shown: %v", err)
			return
		}
		if strings.Contains(string(value), text) {
			return
		}
		values = append(values, string(value))
	}
	slices.Sort(fields)
	switch {
	case len(values) > 0:
		s.fail(at, nil, "what policies add to %s of %s must have %s in it, and is %s", field, s.ref, text, listed(values))
	case len(fields) > 0:
		s.fail(at, nil, "policies add nothing to %s of %s; they add to %s", field, s.ref, strings.Join(slices.Compact(fields), ", "))
	default:
		s.fail(at, nil, "policies add nothing to %s of %s, nor to any other field", field, s.ref)
	}
}
