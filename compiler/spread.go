package compiler

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-sched/kubectl-sched/compiler/admission"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// spreadWish is what policies ask of one topology key and one set of pods.
type spreadWish struct {
	key     string
	subject subject
	require bool
	maxSkew int32
	// minDomains is the highest that a policy names, or 0.
	minDomains int32
	origins    []Origin
	// mustWin counts while it is not required.
	mustWin bool
	// plain leaves out what is added, while all that asks for it is plain.
	plain bool
}

// join returns what satisfies both wishes for the same key and pods: require
// beats prefer, the lowest skew, the highest number of domains. It is
// associative and commutative.
func (s spreadWish) join(o spreadWish) spreadWish {
	s.require = s.require || o.require
	s.maxSkew = min(s.maxSkew, o.maxSkew)
	s.minDomains = max(s.minDomains, o.minDomains)
	s.mustWin = s.mustWin || o.mustWin
	s.plain = s.plain && o.plain
	s.origins = uniqueOrigins(append(slices.Clone(s.origins), o.origins...))
	return s
}

// same reports whether both wishes are of the same key and pods.
func (s spreadWish) same(o spreadWish) bool {
	return s.key == o.key && canonicalSelector(s.subject.selector) == canonicalSelector(o.subject.selector) &&
		slices.Equal(s.subject.matchLabelKeys, o.subject.matchLabelKeys)
}

func (s spreadWish) when() corev1.UnsatisfiableConstraintAction {
	if s.require {
		return corev1.DoNotSchedule
	}
	return corev1.ScheduleAnyway
}

// gatherSpread is the spread intent.
func gatherSpread(d *draft, r *rule) {
	for _, name := range sortedKeys(r.Spread) {
		s := r.Spread[name]
		path := []string{"spread", name}
		key, ok := d.topology(r, name, path...)
		if !ok {
			continue
		}
		o := r.author.origin(path...)
		if d.isDaemonSet() && s.Of.Kind != policy.ByLabels {
			d.spreadDaemonSet(key, s, o)
			continue
		}
		sub, problem := d.counted(r, s.Of)
		if problem == nil {
			problem = d.spreadProblem(sub)
		}
		if problem != nil {
			d.report(finding{rule: problem.rule, policy: r.Name, at: r.author.at(append(slices.Clone(path), problem.path...)...), message: problem.message})
			continue
		}
		wish := spreadWish{key: key, subject: sub, require: s.Strength == policy.Require, maxSkew: int32(s.MaxSkew), origins: []Origin{o}, mustWin: s.MustWin, plain: s.Plain}
		if s.MinDomains != nil {
			wish.minDomains = int32(*s.MinDomains)
		}
		if wish.minDomains > 0 && !wish.require {
			d.c.reportOnce("minDomains"+r.Name+name, finding{
				rule: "policy/min-domains-without-require", policy: r.Name, at: r.author.at(append(path, "minDomains")...),
				message: `minDomains counts only with strength: "require"; require the spread, or leave it out`,
			})
			wish.minDomains = 0
		}
		if i := slices.IndexFunc(d.spreads, wish.same); i >= 0 {
			d.spreads[i] = d.spreads[i].join(wish)
		} else {
			d.spreads = append(d.spreads, wish)
		}
	}
}

// spreadDaemonSet judges a spread of pods that run one on each node: over nodes
// it always holds, and over other domains nobody can choose.
func (d *draft) spreadDaemonSet(key string, s policy.Spread, o Origin) {
	switch {
	case key == corev1.LabelHostname:
	case s.Strength == policy.Prefer:
		d.report(finding{
			rule: "compile/daemonset-spread", severity: info, policy: o.Policy, at: o.Range,
			message: "a DaemonSet runs one pod on each of its nodes, so a preference for how they spread has nothing to choose",
		})
	default:
		d.report(finding{
			rule: "compile/daemonset-spread", policy: o.Policy, at: o.Range,
			message: "a DaemonSet runs one pod on each of its nodes, so its spread is that of the nodes and cannot be required; leave DaemonSets out with not: {kinds: [\"DaemonSet\"]}",
		})
	}
}

// spreadProblem says what a spread constraint cannot count.
func (d *draft) spreadProblem(s subject) *subjectProblem {
	if s.namespaces != nil || s.namespaceSelector != nil {
		return inexpressible([]string{"of"}, "a spread constraint counts pods of the pod's own namespace alone; restrict the policy to namespace %q, or use apart", d.w.Namespace)
	}
	if !selects(s.selector, d.t.Labels) && !d.counts(s) {
		return &subjectProblem{
			rule: "compile/spread-misses-own-pods", path: []string{"of"},
			message: fmt.Sprintf("the pods that count are those with %s, which this workload's own pods (%s) are not, so they would pile up unseen; count labels that they have",
				describeSelector(s.selector), describeLabels(d.t.Labels)),
		}
	}
	return nil
}

// counts reports whether the selector is by a label that the pods of each run
// get and whose value is not known beforehand.
func (d *draft) counts(s subject) bool { return d.t.RunLabel != "" && len(s.matchLabelKeys) > 0 }

func describeLabels(l map[string]string) string {
	if len(l) == 0 {
		return "no labels"
	}
	parts := make([]string, 0, len(l))
	for _, k := range sortedKeys(l) {
		parts = append(parts, k+"="+l[k])
	}
	return strings.Join(parts, ", ")
}

// settleSpread unites the spread constraints with the manifest's.
func (d *draft) settleSpread() {
	slices.SortStableFunc(d.spreads, func(a, b spreadWish) int {
		return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.when(), b.when()), cmp.Compare(canonicalSelector(a.subject.selector), canonicalSelector(b.subject.selector)))
	})
	for i, s := range d.spreads {
		if j := slices.IndexFunc(d.spreads[:i], func(o spreadWish) bool { return o.key == s.key && o.when() == s.when() }); j >= 0 {
			d.spreadClash(s, d.spreads[j])
			continue
		}
		want, notes := d.constraint(s)
		d.placeConstraint(placedConstraint{want, spreadReason(want, notes), s.origins})
	}
	for _, p := range d.rawSpreads {
		d.placeConstraint(p)
	}
}

// placedConstraint is a spread constraint that policies ask for.
type placedConstraint struct {
	constraint corev1.TopologySpreadConstraint
	reason     string
	origins    []Origin
}

// placeConstraint adds a constraint to the result, or joins it with the one on
// the same key and of the same strength, of which the API allows one alone.
func (d *draft) placeConstraint(p placedConstraint) {
	have, want := d.after.TopologySpreadConstraints, p.constraint
	at := slices.IndexFunc(have, func(c corev1.TopologySpreadConstraint) bool {
		return c.TopologyKey == want.TopologyKey && c.WhenUnsatisfiable == want.WhenUnsatisfiable
	})
	if at < 0 {
		if want.WhenUnsatisfiable == corev1.ScheduleAnyway && stricterExists(have, want) || !d.carries(workload.SpreadConstraints, p.origins...) {
			return
		}
		d.after.TopologySpreadConstraints = append(slices.Clip(have), want)
		d.effect(string(workload.SpreadConstraints), want, p.reason, p.origins...)
		return
	}
	joined, problem := joinConstraint(have[at], want)
	if problem != "" {
		related := diag.Related{Range: d.manifestAt(workload.SpreadConstraints, at), Message: "the other constraint"}
		if at < len(d.t.Pods.TopologySpreadConstraints) {
			related.Message = "the manifest's constraint"
		}
		d.report(finding{rule: "compile/contradiction", policy: p.origins[0].Policy, at: p.origins[0].Range, message: problem, related: []diag.Related{related}})
		return
	}
	if keyOf(joined) == keyOf(have[at]) || !d.carries(workload.SpreadConstraints, p.origins...) {
		return
	}
	d.after.TopologySpreadConstraints = slices.Clone(have)
	d.after.TopologySpreadConstraints[at] = joined
	d.effect(string(workload.SpreadConstraints), joined, p.reason+"; joined with the constraint on the same key that is there", p.origins...)
}

func (d *draft) spreadClash(s, other spreadWish) {
	o, p := other.origins[0], s.origins[0]
	d.report(finding{
		rule: "compile/contradiction", policy: o.Policy, at: o.Range,
		message: fmt.Sprintf("policies %q and %q spread over %q and count different pods (%s, and %s), but a pod has one constraint of a strength for each key; count the same pods, or say one of them with apart",
			o.Policy, p.Policy, s.key, describeSelector(other.subject.selector), describeSelector(s.subject.selector)),
		related: relatedOrigins([]Origin{p}, "counts others"),
	})
}

// stricterExists reports whether a hard constraint of the manifest already does
// more than a soft one.
func stricterExists(have []corev1.TopologySpreadConstraint, want corev1.TopologySpreadConstraint) bool {
	return slices.ContainsFunc(have, func(c corev1.TopologySpreadConstraint) bool {
		return c.TopologyKey == want.TopologyKey && c.WhenUnsatisfiable == corev1.DoNotSchedule && c.MaxSkew <= want.MaxSkew &&
			canonicalSelector(c.LabelSelector) == canonicalSelector(want.LabelSelector) && slices.Equal(c.MatchLabelKeys, want.MatchLabelKeys)
	})
}

// joinConstraint returns a constraint of the manifest together with ours on
// the same key, or why they cannot be one. A manifest's constraint without a
// selector counts nothing, and is replaced.
func joinConstraint(have, want corev1.TopologySpreadConstraint) (corev1.TopologySpreadConstraint, string) {
	out := *have.DeepCopy()
	switch {
	case have.LabelSelector == nil || len(have.LabelSelector.MatchLabels)+len(have.LabelSelector.MatchExpressions) == 0:
		out.LabelSelector, out.MatchLabelKeys = want.LabelSelector, nil
	case canonicalSelector(have.LabelSelector) != canonicalSelector(want.LabelSelector):
		return out, fmt.Sprintf("the manifest spreads over %q too and counts other pods (%s, not %s), but a pod has one constraint of a strength for each key; take it out of the manifest, or count the same pods",
			want.TopologyKey, describeSelector(have.LabelSelector), describeSelector(want.LabelSelector))
	}
	if have.NodeTaintsPolicy != nil && want.NodeTaintsPolicy != nil && *have.NodeTaintsPolicy != *want.NodeTaintsPolicy {
		return out, fmt.Sprintf("the manifest's constraint on %q says nodeTaintsPolicy %q, so that nodes which no pod can reach count as domains; take that out of the manifest", want.TopologyKey, *have.NodeTaintsPolicy)
	}
	for _, k := range want.MatchLabelKeys {
		if !slices.Contains(out.MatchLabelKeys, k) {
			out.MatchLabelKeys = append(out.MatchLabelKeys, k)
		}
	}
	out.NodeTaintsPolicy = want.NodeTaintsPolicy
	if have.NodeTaintsPolicy != nil {
		out.NodeTaintsPolicy = have.NodeTaintsPolicy
	}
	out.MaxSkew = min(have.MaxSkew, want.MaxSkew)
	if want.MinDomains != nil && (have.MinDomains == nil || *have.MinDomains < *want.MinDomains) {
		out.MinDomains = want.MinDomains
	}
	return out, ""
}

// constraint returns the API's constraint for a wish, and remarks for its reason.
func (d *draft) constraint(s spreadWish) (corev1.TopologySpreadConstraint, []string) {
	out := corev1.TopologySpreadConstraint{
		MaxSkew:           s.maxSkew,
		TopologyKey:       s.key,
		WhenUnsatisfiable: s.when(),
		LabelSelector:     s.subject.selector,
		MatchLabelKeys:    s.subject.matchLabelKeys,
	}
	if s.plain {
		out.MatchLabelKeys = nil
		if s.require && s.minDomains > 0 && d.c.facts.supports(27) {
			out.MinDomains = &s.minDomains
		}
		return out, nil
	}
	if !d.c.facts.supports(27) {
		d.c.reportOnce("minor", finding{
			rule: "compile/old-cluster", severity: warning, policy: s.origins[0].Policy, at: s.origins[0].Range,
			message: fmt.Sprintf("Kubernetes 1.%d cannot say minDomains, nodeTaintsPolicy and matchLabelKeys, so spreads count tainted nodes, pile up in the domains that exist, and are skewed by rollouts; use 1.27 or later", d.c.facts.Minor),
		})
	}
	if d.c.facts.supports(27) {
		honor := corev1.NodeInclusionPolicyHonor
		out.NodeTaintsPolicy = &honor
	}
	if !s.require || !d.c.facts.supports(27) {
		return out, nil
	}
	var nodes []string
	if !d.failed {
		nodes = d.c.facts.domainsOf(s.key, d.eligibleNodes().nodes)
	}
	least, notes := d.minDomains(s, nodes)
	if s.minDomains == 0 && least != 2 {
		d.learn(func(k *admission.Known) {
			if k.Domains == nil {
				k.Domains = map[string]int32{}
			}
			k.Domains[s.key] = least
		})
	}
	out.MinDomains = &least
	return out, notes
}

// minDomains returns how many domains there must be before pods double up: what
// a policy says, or else all that are known, but not more than there are pods
// nor less than two. Nodes come and go with every upgrade, so that for them two
// are enough.
func (d *draft) minDomains(s spreadWish, known []string) (int32, []string) {
	least := int32(2)
	var notes []string
	replicas := d.w.Replicas
	switch {
	case s.minDomains > 0:
		least = s.minDomains
	case s.key == corev1.LabelHostname:
	default:
		least = max(least, int32(len(known)))
		if replicas != nil {
			least = max(2, min(least, *replicas))
		}
	}
	if known == nil {
		d.domainsUnknown(s, least)
	}
	if known == nil || int(least) <= len(known) {
		return least, nil
	}
	if s.minDomains == 0 && replicas != nil && *replicas < 2 {
		return least, nil
	}
	room := int32(len(known)) * s.maxSkew
	have := fmt.Sprintf("%d of the %d domains of %q that are asked for exist so far", len(known), least, s.key)
	if replicas != nil && *replicas > room {
		note := fmt.Sprintf("%s, so %d of %d pods stay Pending until there are more", have, *replicas-room, *replicas)
		notes = append(notes, note)
		d.report(finding{
			rule: "compile/pending-for-domains", severity: warning, policy: s.origins[0].Policy, at: s.origins[0].Range,
			message: note + "; lower minDomains, or raise maxSkew, if that is not meant",
		})
	} else if replicas == nil {
		notes = append(notes, fmt.Sprintf("%s, so pods beyond %d stay Pending until there are more", have, room))
	}
	return least, notes
}

// domainsUnknown says, once a policy, that nothing is known of the domains that
// there are, where it would have made a difference.
func (d *draft) domainsUnknown(s spreadWish, least int32) {
	if d.failed || s.minDomains > 0 || s.key == corev1.LabelHostname || d.w.Replicas != nil && *d.w.Replicas <= least {
		return
	}
	o := s.origins[0]
	where := "give the document a clusters block with domains"
	if d.c.facts.cluster != nil {
		where = fmt.Sprintf("list them under the domains of cluster %q", d.c.facts.cluster.Name)
	}
	d.c.reportOnce("domains"+o.Policy+s.key, finding{
		rule: "compile/domains-unknown", severity: info, policy: o.Policy, at: o.Range,
		message: fmt.Sprintf("which domains of %q there are is not known here, so minDomains is %d, and the pods pile up in %d of them while the others have no node; %s, compile with --with-cluster, or say minDomains", s.key, least, least, where),
	})
}

func spreadReason(c corev1.TopologySpreadConstraint, notes []string) string {
	reason := "a topology spread constraint says exactly this"
	if len(c.MatchLabelKeys) > 0 {
		reason += "; matchLabelKeys counts the pods of one revision or run alone, so that a rollout does not skew it"
	}
	if c.NodeTaintsPolicy != nil {
		reason += "; nodeTaintsPolicy leaves out nodes that the pods cannot use"
	}
	if c.MinDomains != nil {
		reason += "; minDomains keeps the pods from piling up in the domains that exist so far"
	}
	for _, n := range notes {
		reason += "; " + n
	}
	return reason
}
