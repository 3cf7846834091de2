package compiler

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
	"github.com/kubectl-sched/kubectl-sched/compiler/profile"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// need notes what the policy asks of the profile that schedules the pods it
// selects. An intent says it once, when the rule is prepared; what it comes to for
// a template, and for any pod on the admission surface, is settled here.
func (r *rule) need(wishes ...profile.Wish) { r.needs = append(r.needs, wishes...) }

// wishOrigin is where the policy says something, for a profile.Wish.
func (a author) wishOrigin(path ...string) profile.Origin {
	return profile.Origin(a.origin(path...))
}

// prepareScores notes what pack and balance ask of the profile.
func (c *compilation) prepareScores(r *rule) {
	if p := r.Pack; p != nil {
		how := "NodeResourcesFit scores by MostAllocated"
		if p.UpTo > 0 {
			how = fmt.Sprintf("NodeResourcesFit scores by RequestedToCapacityRatio with its best at %d %%", p.UpTo)
		}
		r.need(profile.Pack(p.Resources, p.UpTo, "no field of a pod says how nodes score by what is in use, so a profile does: "+how+
			"; NodeResourcesBalancedAllocation is off, because an empty node has its full score, and so are the spread constraints that PodTopologySpread gives to pods without any; every node is scored, not a sample", r.author.wishOrigin("pack")))
	}
	if b := r.Balance; b != nil {
		r.need(profile.Balance(b.Resources, "no field of a pod says how nodes score by what is in use, so a profile does: NodeResourcesFit scores by LeastAllocated and "+
			"NodeResourcesBalancedAllocation the same resources; ImageLocality is off, because it draws pods to the nodes that ran the image before", r.author.wishOrigin("balance")))
	}
}

// settleProfile settles what all policies ask of the profile as one schedulerName.
func (d *draft) settleProfile() {
	var wishes []profile.Wish
	for _, r := range d.rules {
		for _, w := range r.needs {
			if w.Ranks && d.isDaemonSet() {
				d.report(finding{
					rule: "compile/daemonset-profile", severity: info, policy: r.Name, at: w.Origin.Range,
					message: "a DaemonSet's controller picks the nodes of its pods, so which nodes score best means nothing to them",
				})
				continue
			}
			if d.wins(w) {
				wishes = append(wishes, w)
			}
		}
	}
	need := profile.NewNeed(wishes...)
	if need.Empty() || d.needClashes(need) {
		return
	}
	p := profile.Of(need)
	if d.leftToOther(p) || !d.c.served(p) {
		return
	}
	level, reason := profileLevel(p), profileReason(p)
	for _, o := range need.Origins() {
		d.scalars = append(d.scalars, scalarWish{field: workload.SchedulerName, value: p.Name, level: level, reason: reason, origin: Origin(o)})
	}
	d.c.use(p, 1)
}

// profileReason says why a template's pods need a scheduler of their own.
func profileReason(p profile.Profile) string {
	var reasons []string
	for _, w := range p.Need.Wishes() {
		if !slices.Contains(reasons, w.Reason) {
			reasons = append(reasons, w.Reason)
		}
	}
	if text := p.Arithmetic(); text != "" {
		reasons = append(reasons, text)
	}
	return strings.Join(reasons, "; ")
}

// needClashes reports what policies ask of one profile and contradict each other
// in.
func (d *draft) needClashes(need profile.Need) bool {
	clashes := need.Conflicts()
	for _, c := range clashes {
		d.report(needClash(c))
	}
	return len(clashes) > 0
}

func needClash(c profile.Conflict) finding {
	first, second := Origin(c.Origins[0]), Origin(c.Origins[1])
	return finding{
		rule: "compile/contradiction", policy: first.Policy, at: first.Range,
		message: fmt.Sprintf("%s would be %s here and %s by policy %q, and a pod has one profile; only one can be", c.Subject, c.Values[0], c.Values[1], second.Policy),
		related: relatedOrigins([]Origin{second}, "asks for "+c.Values[1]),
	}
}

// leftToOther reports whether the manifest names another scheduler that the
// document declares, and says what is left to do there.
func (d *draft) leftToOther(p profile.Profile) bool {
	name := d.t.Pods.SchedulerName
	if name == "" || name == corev1.DefaultSchedulerName || name == p.Name {
		return false
	}
	i := slices.IndexFunc(d.c.facts.schedulers(), func(s capability.Scheduler) bool { return !s.Bundled && s.Serves(name) })
	if i < 0 {
		return false // settleScalars reports the contradiction.
	}
	o := p.Need.Origins()[0]
	d.report(finding{
		rule: "compile/other-scheduler", severity: warning, policy: o.Policy, at: o.Range,
		message: fmt.Sprintf("the manifest names %q of scheduler %q, which is not the bundled one, so this must be configured there by hand (\"kubectl sched compile -o profiles\" writes such a profile), or schedulerName taken out of the manifest",
			name, d.c.facts.schedulers()[i].Name),
		related: []diag.Related{{Range: d.manifestAt(workload.SchedulerName), Message: "the manifest's schedulerName"}},
	})
	return true
}

// schedulers are those of the cluster: what was read from it, and what the
// document declares and cannot be read, or was not.
func (f facts) schedulers() []capability.Scheduler {
	out := slices.Clone(f.Schedulers)
	if f.cluster == nil {
		return out
	}
	for _, name := range sortedKeys(f.cluster.Schedulers) {
		s := f.cluster.Schedulers[name]
		if s.Bundled && f.SchedulersKnown {
			continue // What runs stands over what is said to.
		}
		declared := capability.Scheduler{Name: name, Bundled: s.Bundled, Profiles: s.Profiles, ProfilesKnown: len(s.Profiles) > 0}
		if !s.Bundled && !declared.ProfilesKnown {
			declared.Profiles, declared.ProfilesKnown = []string{name}, true
		}
		out = append(out, declared)
	}
	return out
}

// served reports whether pods may be given to the profile, and reports a finding
// where it is not there.
func (c *compilation) served(p profile.Profile) bool {
	if c.Installing {
		return true
	}
	var bundled *capability.Scheduler
	for _, s := range c.facts.schedulers() {
		if s.Bundled {
			bundled = &s
			if !s.ProfilesKnown || s.Serves(p.Name) {
				return true
			}
		}
	}
	severity, rule := diag.Error, "compile/no-scheduler"
	var message string
	where := "under clusters.NAME.schedulers, in a document that names its clusters"
	if c.facts.cluster != nil {
		where = fmt.Sprintf("under clusters.%s.schedulers (placement: bundled: true)", c.facts.cluster.Name)
	}
	needs := fmt.Sprintf("this needs the profile %q of the bundled scheduler", p.Name)
	switch {
	case bundled != nil:
		rule = "compile/profile-not-served"
		message = fmt.Sprintf("%s, and the one that is there serves %s, so the pods would stay Pending; run \"kubectl sched scheduler upgrade\" first", needs, cmp.Or(quoted(bundled.Profiles), "none"))
		if c.Surface == policy.SurfaceRender || c.Surface == "" {
			severity = warning // Whoever deploys the manifests deploys the profile before.
		}
	case c.facts.SchedulersKnown:
		message = needs + ", and the cluster has none that is ready; run \"kubectl sched scheduler install\" first"
	default:
		message = fmt.Sprintf("%s, and none is known to run there; run \"kubectl sched scheduler install\", and declare it %s, or compile --with-cluster", needs, where)
	}
	for _, o := range p.Need.Origins() {
		f := finding{rule: rule, severity: severity, policy: o.Policy, at: o.Range, message: message}
		if c.facts.cluster != nil && len(c.facts.cluster.Schedulers) > 0 {
			f.related = []diag.Related{{Range: c.facts.cluster.Positions.At("schedulers"), Message: "the schedulers that the document declares"}}
		}
		c.reportOnce(rule+p.Name+fmt.Sprint(o), f)
	}
	return severity != diag.Error
}

// use counts workloads that need the profile.
func (c *compilation) use(p profile.Profile, workloads int) {
	i := slices.IndexFunc(c.plan.Profiles, func(u ProfileUse) bool { return u.Name == p.Name })
	if i < 0 {
		c.plan.Profiles = append(c.plan.Profiles, ProfileUse{Profile: p, Workloads: workloads})
		return
	}
	u := &c.plan.Profiles[i]
	u.Profile = profile.Join(u.Profile, p)[0]
	u.Workloads += workloads
}
