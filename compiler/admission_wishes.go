package compiler

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-sched/kubectl-sched/compiler/admission"
	"github.com/kubectl-sched/kubectl-sched/compiler/cel"
	"github.com/kubectl-sched/kubectl-sched/compiler/nodeexpr"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy"
)

// anyPod stands for a pod of which nothing is known, for what is asked of all.
func (c *compilation) anyPod() *draft {
	return &draft{c: c, w: &workload.Workload{}, t: &workload.Template{}}
}

// subjectOf returns the pods that the intent counts, for any pod, and reports
// what cannot be said.
func (g *gathering) subjectOf(r *rule, s policy.Subject, path []string) (admission.Subject, subject, bool) {
	if s.Kind != policy.ByLabels && s.Kind != policy.AllSelected {
		return admission.Subject{Own: true}, subject{}, true
	}
	sub, problem := g.c.anyPod().counted(r, s)
	if problem != nil {
		g.c.report(finding{rule: problem.rule, policy: r.Name, at: r.author.at(append(slices.Clone(path), problem.path...)...), message: problem.message})
		return admission.Subject{}, subject{}, false
	}
	return admission.Subject{Selector: sub.selector, Namespaces: sub.namespaces}, sub, true
}

func (g *gathering) spread(r *rule, when admission.Case) {
	for _, name := range sortedKeys(r.Spread) {
		s := r.Spread[name]
		path := []string{"spread", name}
		key, ok := g.c.anyPod().topology(r, name, path...)
		if !ok {
			continue
		}
		counted, sub, ok := g.subjectOf(r, s.Of, path)
		if !ok {
			continue
		}
		wish := admission.Spread{When: admission.Any(when), Key: key, Subject: counted, Require: s.Strength == policy.Require, MaxSkew: int32(s.MaxSkew), Plain: s.Plain}
		if s.MinDomains != nil && wish.Require {
			wish.MinDomains = int32(*s.MinDomains)
		}
		if !counted.Own {
			// It counts pods of the pod's own namespace alone, and must count the pod.
			if sub.namespaceSelector != nil || len(sub.namespaces) > 1 {
				g.c.report(finding{
					rule: "compile/inexpressible", policy: r.Name, at: r.author.at(append(path, "of")...),
					message: "a spread constraint counts pods of the pod's own namespace alone; restrict the policy to one namespace, or use apart",
				})
				continue
			}
			conditions := []string{selectsPod(counted.Selector)}
			if len(sub.namespaces) == 1 {
				conditions = append(conditions, admission.Namespace+" == "+cel.Quote(sub.namespaces[0]))
			}
			if s.Of.Kind == policy.AllSelected {
				conditions = append(conditions, "!"+admission.DaemonSet)
			}
			wish.When = admission.Any(when.And(conditions...))
		}
		g.set.Spreads = append(g.set.Spreads, wish)
	}
}

// selectsPod is the condition that a selector of ours selects the pod.
func selectsPod(s *metav1.LabelSelector) string {
	want := map[string][]string{}
	for k, v := range s.MatchLabels {
		want[k] = []string{v}
	}
	for _, e := range s.MatchExpressions {
		want[e.Key] = e.Values
		if e.Operator == metav1.LabelSelectorOpExists {
			want[e.Key] = []string{"*"}
		}
	}
	return cel.Labels(admission.Labels, want)
}

func (g *gathering) colocate(r *rule, when admission.Case, all map[string]policy.Colocation, apart bool) {
	intent := affinityWish{apart: apart}.intent()
	for _, name := range sortedKeys(all) {
		col := all[name]
		key, ok := g.c.anyPod().topology(r, cmp.Or(col.On, "node"), intent, name, "on")
		if !ok {
			continue
		}
		counted, sub, ok := g.subjectOf(r, col.Of, []string{intent, name})
		if !ok {
			continue
		}
		g.affinities = append(g.affinities, conditional[affinityWish]{when, affinityWish{
			apart: apart, required: col.Strength == policy.Require, weight: int32(col.Weight), own: counted.Own, plain: col.Plain,
			term: corev1.PodAffinityTerm{LabelSelector: sub.selector, Namespaces: sub.namespaces, NamespaceSelector: sub.namespaceSelector, TopologyKey: key},
		}})
	}
}

// afterAdmission are the fields of a pod spec that are not what a template says
// by the time that an admission policy sees the pod: other parts of the API
// server have written them, or acted on them.
var afterAdmission = []string{
	"automountServiceAccountToken", "containers", "ephemeralContainers", "imagePullSecrets", "initContainers",
	"overhead", "priority", "serviceAccount", "serviceAccountName", "volumes",
}

// raw gathers the fragment of a policy.
func (g *gathering) raw(r *rule, when admission.Case) {
	if r.raw == nil {
		return
	}
	spec := r.raw.spec.DeepCopy()
	origin := func(path ...string) Origin { return r.author.origin(append([]string{"raw", "pod"}, path...)...) }
	for _, k := range sortedKeys(spec.NodeSelector) {
		g.set.NodeLabels = append(g.set.NodeLabels, admission.NodeLabel{When: admission.Any(when), Key: k, Value: spec.NodeSelector[k]})
	}
	for i, t := range spec.Tolerations {
		t.Operator = operatorOf(t)
		g.tolerate(when, []tolerationWish{g.c.namedToleration(t, origin("tolerations", fmt.Sprint(i)), rawReason)})
	}
	for _, s := range spec.TopologySpreadConstraints {
		if s.LabelSelector != nil && len(s.LabelSelector.MatchLabels)+len(s.LabelSelector.MatchExpressions) > 0 {
			g.set.RawSpreads = append(g.set.RawSpreads, admission.RawSpread{When: admission.Any(when), Constraint: s})
		}
	}
	g.scalar(when, workload.PriorityClassName, spec.PriorityClassName)
	g.scalar(when, workload.SchedulerName, spec.SchedulerName)
	g.scalar(when, workload.PreemptionPolicy, scalar(workload.PodFields{PreemptionPolicy: spec.PreemptionPolicy}, workload.PreemptionPolicy))
	for _, gate := range spec.SchedulingGates {
		g.set.Gates = append(g.set.Gates, admission.Gate{When: admission.Any(when), Name: gate.Name})
	}
	if a := spec.Affinity; a != nil {
		g.rawAffinity(r, when, a, origin)
	}
	for _, leaf := range r.raw.leaves {
		if slices.Contains(afterAdmission, leaf.path[0]) {
			g.c.report(finding{
				rule: "compile/inexpressible", policy: r.Name, at: leaf.origin.Range,
				message: fmt.Sprintf("the API server itself has written or used %s by the time that an admission policy sees a pod, so the policy could not set it as a template does; use the surface render or live for it", joinPath(leaf.path)),
			})
			continue
		}
		g.set.Leaves = append(g.set.Leaves, admission.Leaf{When: admission.Any(when), Path: leaf.path, Value: leaf.value})
	}
}

func (g *gathering) rawAffinity(r *rule, when admission.Case, a *corev1.Affinity, origin func(...string) Origin) {
	if n := a.NodeAffinity; n != nil {
		if n.RequiredDuringSchedulingIgnoredDuringExecution != nil {
			o := origin("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
			e, err := nodeexpr.FromSelector(n.RequiredDuringSchedulingIgnoredDuringExecution)
			if err != nil {
				g.c.reportOnce("raw"+r.Name, finding{rule: "policy/bad-raw", policy: r.Name, at: o.Range, message: fmt.Sprintf("the node affinity cannot be read: %s", err)})
			} else {
				g.required = append(g.required, conditional[statement]{when, statement{expr: e, origin: o, field: "raw"}})
			}
		}
		for _, t := range n.PreferredDuringSchedulingIgnoredDuringExecution {
			g.preferred = append(g.preferred, conditional[preferredTerm]{when, preferredTerm{term: t.Preference, weight: t.Weight}})
		}
	}
	gather := func(apart bool, hard []corev1.PodAffinityTerm, soft []corev1.WeightedPodAffinityTerm) {
		for _, t := range hard {
			g.affinities = append(g.affinities, conditional[affinityWish]{when, affinityWish{apart: apart, term: t, required: true}})
		}
		for _, t := range soft {
			g.affinities = append(g.affinities, conditional[affinityWish]{when, affinityWish{apart: apart, term: t.PodAffinityTerm, weight: t.Weight}})
		}
	}
	if p := a.PodAffinity; p != nil {
		gather(false, p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if p := a.PodAntiAffinity; p != nil {
		gather(true, p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution)
	}
}

// learn notes what is known of the draft's workload beyond what any pod shows.
func (d *draft) learn(note func(*admission.Known)) {
	if !d.c.admitting() || len(d.w.Templates) != 1 {
		return
	}
	key := strings.Join([]string{d.w.Namespace, d.w.Group, d.w.Kind, d.w.Name}, "/")
	if d.c.known == nil {
		d.c.known = map[string]*admission.Known{}
	}
	if d.c.known[key] == nil {
		d.c.known[key] = &admission.Known{Namespace: d.w.Namespace, Group: d.w.Group, Kind: d.w.Kind, Name: d.w.Name}
	}
	note(d.c.known[key])
}

// knownWorkloads returns what was learned, and all CronJobs, whose pods are told
// from those of other Jobs by their names alone.
func (c *compilation) knownWorkloads() []admission.Known {
	for _, w := range c.Workloads {
		if w.Group == "batch" && w.Kind == "CronJob" && len(w.Templates) == 1 {
			d := &draft{c: c, w: w, t: &w.Templates[0]}
			d.learn(func(*admission.Known) {})
		}
	}
	var out []admission.Known
	for _, key := range sortedKeys(c.known) {
		out = append(out, *c.known[key])
	}
	return out
}
