package compiler

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
	"github.com/kubectl-sched/kubectl-sched/compiler/nodeexpr"
	"github.com/kubectl-sched/kubectl-sched/compiler/profile"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// draft is one pod template while policies are compiled into it. Every intent
// first gathers what it wishes; then each field is settled once, from the
// manifest's value and all wishes, so that the order of policies cannot matter.
type draft struct {
	c     *compilation
	w     *workload.Workload
	t     *workload.Template
	rules []*rule

	// index is the template's in the workload, siblings are the drafts of all of the
	// workload's templates that policies select.
	index    int
	siblings []*draft

	after   workload.PodFields
	effects []Effect

	required    []statement
	poolUses    []poolUse
	preferred   []preferredTerm
	tolerations []tolerationWish
	spreads     []spreadWish
	affinities  []affinityWish
	scalars     []scalarWish
	leaves      []rawLeaf
	selectors   []selectorWish
	rawSpreads  []placedConstraint
	keys        []keyWish
	held        []gateWish
	devices     []deviceWish
	// gang is what the template is a member of; nil for none.
	gang *gang
	// needs are what this template alone asks of the profile, besides its rules.
	needs []profile.Wish
	// ungranted are the lines that need a pool which does not grant itself.
	ungranted []Origin

	// final holds for the nodes that the result allows, taints aside.
	final nodeexpr.Expr
	// failed says that the node affinity could not be settled: what follows
	// from it is then not judged.
	failed bool
	// nowhere is Change.Nowhere.
	nowhere []string
	// tainted says that taints which keep the pods off have been reported.
	tainted bool
}

// compile gathers the wishes of the rules in force, settles the fields, and
// looks for what still goes wrong with the result.
func (d *draft) compile() {
	if len(d.rules) == 0 {
		return
	}
	for _, intent := range intents {
		for _, r := range d.rules {
			intent.gather(d, r)
		}
	}
	d.settleNodeSelector()
	d.settleRequired()
	d.settlePreferred()
	d.settleTolerations()
	d.settleSpread()
	d.settlePodAffinity()
	d.settleProfile()
	d.settleScalars()
	d.settleKeys()
	d.settleGates()
	d.settleDevices()
	d.settleRaw()

	d.checkPools()
	d.checkNodes()
	d.checkPreferredPools()
	d.checkVolumes()
	d.checkTopology()
	d.checkRollout()
	d.checkDaemonSet()
	d.checkNextRun()
}

func (d *draft) policyNames() []string {
	names := make([]string, len(d.rules))
	for i, r := range d.rules {
		names[i] = r.Name
	}
	return names
}

// report adds a finding about this workload. Nothing related is in the manifest
// of one that was read from a cluster.
func (d *draft) report(f finding) {
	if d.c.placedBefore(d.w) {
		return
	}
	f.subject = d.subject()
	f.related = slices.DeleteFunc(f.related, func(r diag.Related) bool { return !r.Range.Start.IsValid() })
	d.c.report(f)
}

// subject names the workload, and the template where it has several.
func (d *draft) subject() string {
	if len(d.w.Templates) > 1 && d.t.Name != "" {
		return fmt.Sprintf("%s (%s)", d.w.Ref(), d.t.Name)
	}
	return d.w.Ref()
}

// effect records a difference and why it is there.
func (d *draft) effect(field string, value any, reason string, origins ...Origin) {
	d.effectAt(LevelBuiltin, field, value, reason, origins...)
}

// effectAt is effect for what is expressed at the level; LevelBuiltin if empty.
func (d *draft) effectAt(level Level, field string, value any, reason string, origins ...Origin) {
	d.effects = append(d.effects, Effect{
		Field: field, Value: value, Level: cmp.Or(level, LevelBuiltin), Reason: reason, Origins: uniqueOrigins(origins),
	})
}

func uniqueOrigins(origins []Origin) []Origin {
	out := slices.Clone(origins)
	slices.SortStableFunc(out, compareOrigins)
	return slices.Compact(out)
}

func compareOrigins(a, b Origin) int {
	if a.Policy != b.Policy {
		return strings.Compare(a.Policy, b.Policy)
	}
	return a.Range.Start.Compare(b.Range.Start)
}

// carries reports whether the template can carry the field, or the part of the
// affinity, and reports a finding for the origins if not.
func (d *draft) carries(f workload.Field, origins ...Origin) bool {
	if _, ok := d.t.PathOf(f); ok || d.c.admitting() {
		return true
	}
	var can []string
	for _, field := range d.t.Carries() {
		can = append(can, string(field))
	}
	if _, some := d.t.Paths[workload.Affinity]; !some && strings.HasPrefix(string(f), string(workload.Affinity)) {
		f = workload.Affinity
	}
	const instead = "say it by those, select the objects that its controller makes of it on the live surface, or, if the kind does have the field, give its path under \"kinds\""
	carries := "no placement field at all"
	if len(can) > 0 {
		carries = "only " + strings.Join(can, ", ")
	}
	kind := d.w.Kind
	if d.w.Group != "" {
		kind = d.w.Group + "/" + kind
	}
	o := origins[0]
	d.report(finding{
		rule: "compile/unsupported-field", policy: o.Policy, at: o.Range, related: relatedOrigins(origins[1:], "asks for it too"),
		message: fmt.Sprintf("%s cannot carry %s, it carries %s; %s", kind, f, carries, instead),
	})
	return false
}

func relatedOrigins(origins []Origin, message string) []diag.Related {
	var out []diag.Related
	for _, o := range origins {
		m := message
		if o.Policy != "" {
			m = fmt.Sprintf("policy %q %s", o.Policy, message)
		}
		out = append(out, diag.Related{Range: o.Range, Message: m})
	}
	return out
}

// manifestAt returns where the manifest has a placement field, or something
// below it.
func (d *draft) manifestAt(f workload.Field, below ...any) diag.Range {
	path, ok := d.t.PathOf(f, below...)
	if !ok {
		return d.w.Source.At()
	}
	return d.w.Source.At(path...)
}

// affinity returns the affinity of the result, to be written to.
func (d *draft) affinity() *corev1.Affinity {
	if d.after.Affinity == nil {
		d.after.Affinity = &corev1.Affinity{}
	} else if d.t.Pods.Affinity == d.after.Affinity {
		d.after.Affinity = d.t.Pods.Affinity.DeepCopy()
	}
	return d.after.Affinity
}

func (d *draft) nodeAffinity() *corev1.NodeAffinity {
	a := d.affinity()
	if a.NodeAffinity == nil {
		a.NodeAffinity = &corev1.NodeAffinity{}
	}
	return a.NodeAffinity
}

// eligibleNodes returns the known nodes that the result allows.
func (d *draft) eligibleNodes() *eligible {
	var key strings.Builder
	key.WriteString(d.final.String())
	for _, t := range d.after.Tolerations {
		fmt.Fprintf(&key, "\n%s %s %s %s", t.Key, operatorOf(t), t.Value, t.Effect)
	}
	if set, ok := d.c.eligible[key.String()]; ok {
		return set
	}
	set := &eligible{nodes: d.c.facts.eligible(d.final, d.after.Tolerations), lacking: map[string][]string{}}
	d.c.eligible[key.String()] = set
	return set
}

// eligible are the known nodes that can take some template's pods.
type eligible struct {
	nodes []*capability.Node
	// lacking remembers which of them have not the label of a topology.
	lacking map[string][]string
}

// without returns the names of the nodes that lack the label.
func (e *eligible) without(label string) []string {
	if names, ok := e.lacking[label]; ok {
		return names
	}
	var names []string
	for _, n := range e.nodes {
		if _, ok := n.Labels[label]; !ok {
			names = append(names, n.Name)
		}
	}
	slices.Sort(names)
	e.lacking[label] = names
	return names
}

// isDaemonSet reports whether one pod runs on each node by construction.
func (d *draft) isDaemonSet() bool { return d.w.Group == "apps" && d.w.Kind == "DaemonSet" }

// checkNextRun says where the result reaches the pods of the next run alone.
func (d *draft) checkNextRun() {
	if !d.t.Immutable || d.c.Surface != policy.SurfaceLive || keyOf(d.after) == keyOf(d.t.Current) && d.after.Raw == nil {
		return
	}
	o := d.rules[0].author.origin()
	if len(d.effects) > 0 {
		o = d.effects[0].Origins[0]
	}
	d.report(finding{
		rule: "compile/next-run", severity: info, policy: o.Policy, at: o.Range,
		message: fmt.Sprintf("the pod template of an existing %s cannot change, so the policy applies to the next one that is created", d.w.Kind),
	})
}
