package compiler

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
	"github.com/kubectl-sched/kubectl-sched/compiler/profile"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/args"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gangkey"
)

const gangReason = "no field of a pod makes pods wait for each other, and whether the cluster's own scheduler has the feature gate GenericWorkload cannot be seen from outside; " +
	"the plugin Gang of the bundled scheduler places all or none, says what is missing, and gives back what it holds after the timeout"

// gang is what the pods of a template are members of.
type gang struct {
	name string
	// min is how many must find a place at once; 0 where the manifest's own group
	// says it.
	min  int32
	form capability.PodGroupForm
	// adopted says that the manifest names the group itself.
	adopted bool
	rules   []*rule
	origin  Origin
}

// prepareGang notes what a policy's gang asks of the profile.
func (c *compilation) prepareGang(r *rule) {
	g := r.Gang
	if g == nil {
		return
	}
	said := map[string]any{}
	if g.Timeout != "" {
		t, err := time.ParseDuration(g.Timeout)
		if err != nil {
			c.report(finding{rule: "policy/gang", policy: r.Name, at: r.author.at("gang", "timeout"), message: err.Error()})
			return
		}
		said["timeout"], r.gangTimeout = g.Timeout, t
	}
	if g.OnPartial != "" {
		said["onPartial"] = g.OnPartial
	}
	origin := r.author.origin("gang")
	wish, err := profile.Plugin(args.Gang, said, gangReason, profile.Origin(origin))
	if err != nil {
		c.report(finding{rule: "policy/gang", policy: r.Name, at: origin.Range, message: err.Error()})
		return
	}
	r.need(wish)
}

// gatherGang is the gang intent.
func gatherGang(d *draft, r *rule) {
	if r.Gang == nil {
		return
	}
	origin := r.author.origin("gang")
	if d.isDaemonSet() {
		d.report(finding{
			rule: "compile/gang", policy: r.Name, at: origin.Range,
			message: "a DaemonSet runs one pod on each node that there is, which are never all there at once; leave DaemonSets out with not: {kinds: [\"DaemonSet\"]}",
		})
		return
	}
	least, ok := d.gangMin(r)
	if !ok {
		return
	}
	if d.gang != nil {
		if d.gang.min != least {
			d.report(finding{
				rule: "compile/contradiction", policy: d.gang.origin.Policy, at: d.gang.rules[0].author.at("gang", "min"),
				message: fmt.Sprintf("the gang would need %d pods here and %d by policy %q; only one can be", d.gang.min, least, r.Name),
				related: relatedOrigins([]Origin{r.author.origin("gang", "min")}, fmt.Sprintf("needs %d", least)),
			})
			return
		}
		d.gang.rules = append(d.gang.rules, r)
	} else {
		d.gang = &gang{name: d.gangName(r), min: least, form: d.gangForm(), rules: []*rule{r}, origin: origin}
		d.joinGang(r)
	}
	d.gangWithin(r)
}

// gangName is what the gang is called: as the workload, or, of single pods, as the
// policy that makes them one.
func (d *draft) gangName(r *rule) string {
	if d.isPod() {
		return r.Name
	}
	return d.w.Name
}

func (d *draft) isPod() bool { return d.w.Group == "" && d.w.Kind == "Pod" }

// gangForm is the form in which the template's gang is said. The runs of a CronJob
// share their template, so that no object of the API can be a group for each.
func (d *draft) gangForm() capability.PodGroupForm {
	form := d.c.facts.PodGroups
	switch {
	case form == "" || d.c.admitting():
		return capability.PodGroupLabels
	case form == capability.PodGroupAPI && d.t.RunLabel != "":
		return capability.PodGroupLabels
	}
	return form
}

// gangMin returns how many pods the rule wants at once, and reports what cannot be.
func (d *draft) gangMin(r *rule) (int32, bool) {
	origin := r.author.origin("gang", "min")
	total, unknown := d.gangSize(r)
	want := int32(r.Gang.Min)
	switch {
	case want == 0 && d.c.admitting():
		d.c.reportOnce("gangAll"+r.Name, finding{
			rule: "compile/inexpressible", policy: r.Name, at: origin.Range,
			message: "a pod does not say how many others its workload makes; write a number, or use the surface render or live",
		})
		return 0, false
	case d.w.Kind == "":
		return want, true // Any pod: what its workload makes is not known.
	case want == 0 && unknown != "":
		d.report(finding{
			rule: "compile/gang", policy: r.Name, at: origin.Range,
			message: fmt.Sprintf("how many pods are all is not known, because %s; write the number", unknown),
		})
		return 0, false
	case want == 0 && total == 0:
		d.report(finding{
			rule: "compile/gang", policy: r.Name, at: origin.Range, severity: info,
			message: "the workload has no pods now, so there is nothing to place together",
		})
		return 0, false
	case want == 0:
		return total, true
	case unknown == "" && want > total:
		d.report(finding{
			rule: "compile/gang", policy: r.Name, at: origin.Range,
			message: fmt.Sprintf("%d pods are to find a place at once, but the workload makes %d at a time, so none would ever start; write %d at most, or \"all\"", want, total, total),
			related: []diag.Related{{Range: d.w.Source.At("spec"), Message: "the workload"}},
		})
		return 0, false
	}
	return want, true
}

// gangSize returns how many pods the rule's templates of the workload make at a
// time, or why that is not known. Single pods are counted over the namespace.
func (d *draft) gangSize(r *rule) (total int32, unknown string) {
	if d.isPod() {
		return d.c.podsOf(r, d.w.Namespace), ""
	}
	for _, s := range d.siblings {
		if !slices.Contains(s.rules, r) {
			continue
		}
		if s.t.Count == nil {
			what := d.w.Kind
			if len(d.w.Templates) > 1 {
				what += fmt.Sprintf(" (%s)", s.t.Name)
			}
			return 0, "the " + what + " does not say it"
		}
		total += *s.t.Count
	}
	return total, ""
}

// podsOf counts the single pods of a namespace that the rule selects.
func (c *compilation) podsOf(r *rule, namespace string) int32 {
	var n int32
	for _, w := range c.Workloads {
		if w.Group == "" && w.Kind == "Pod" && w.Namespace == namespace && w.Controller == "" && r.selects.selects(c.facts, w, &w.Templates[0]) == yes {
			n++
		}
	}
	return n
}

// joinGang marks the template's pods as members.
func (d *draft) joinGang(r *rule) {
	g := d.gang
	if d.adoptGang(r) {
		return
	}
	if said := validation.IsValidLabelValue(g.name); len(said) > 0 && g.form != capability.PodGroupAPI {
		d.report(finding{
			rule: "compile/gang", policy: r.Name, at: g.origin.Range,
			message: fmt.Sprintf("the gang would be named %q, which no label can say: %s; give the workload a shorter name", g.name, said[0]),
		})
		return
	}
	label := func(key, value, reason string) {
		d.keys = append(d.keys, keyWish{field: workload.TemplateLabels, key: key, value: value, level: LevelPlugin, reason: reason, origin: g.origin})
	}
	switch g.form {
	case capability.PodGroupAPI:
		d.scalars = append(d.scalars, scalarWish{
			field: workload.SchedulingGroup, value: g.name, level: LevelPlugin, origin: g.origin,
			reason: "names the PodGroup of the API, which says how many pods must find a place at once; " + gangReason,
		})
	case capability.PodGroupCRD:
		label(gangkey.Label, g.name, "names the PodGroup of scheduling.x-k8s.io, because the API server has none of its own for it; "+gangReason)
	default:
		label(gangkey.LabelOldest, g.name, "names the gang, because the cluster has no PodGroups for it; "+gangReason)
		label(gangkey.LabelMinAvailable, strconv.Itoa(int(g.min)), "says how many pods must find a place at once, because no PodGroup can")
	}
	if d.t.RunLabel != "" {
		d.keys = append(d.keys, keyWish{
			field: workload.TemplateAnnotations, key: gangkey.PerAnnotation, value: gangkey.PerController, level: LevelPlugin, origin: g.origin,
			reason: "makes each run a gang of its own, though all runs have the same labels",
		})
	}
}

// adoptGang reports whether the manifest names a group itself, which is then kept.
func (d *draft) adoptGang(r *rule) bool {
	g := d.gang
	name := scalar(d.t.Pods, workload.SchedulingGroup)
	field, key, form := workload.SchedulingGroup, "", capability.PodGroupAPI
	for _, label := range gangkey.Labels() {
		if value := d.t.Pods.Labels[label]; value != "" && name == "" {
			name, field, key, form = value, workload.TemplateLabels, label, capability.PodGroupCRD
		}
	}
	if name == "" {
		return false
	}
	g.adopted, g.name, g.form = true, name, form
	at := d.manifestAt(field)
	if key != "" {
		at = d.manifestAt(field, key)
	}
	related := []diag.Related{{Range: at, Message: "the manifest's group"}}
	have, known := d.c.facts.Gangs[d.w.Namespace+"/"+name]
	if text := d.t.Pods.Labels[gangkey.LabelMinAvailable]; text != "" && !known {
		if n, err := strconv.ParseInt(text, 10, 32); err == nil {
			have, known = int32(n), true
		}
	}
	if known && have != g.min {
		d.report(finding{
			rule: "compile/contradiction", policy: r.Name, at: r.author.at("gang", "min"), related: related,
			message: fmt.Sprintf("the policy needs %d pods at once, but the group %q that the manifest names needs %d; change one of them, or take the group out of the manifest", g.min, name, have),
		})
		return true
	}
	if !known {
		d.report(finding{
			rule: "compile/gang-adopted", severity: info, policy: r.Name, at: g.origin.Range, related: related,
			message: fmt.Sprintf("the manifest names the group %q, which is kept as it is: how many pods it needs is said there, and not by min", name),
		})
	}
	return true
}

// gangWithin keeps the gang in one domain of a topology.
func (d *draft) gangWithin(r *rule) {
	if r.Gang.Within == "" {
		return
	}
	path := []string{"gang", "within"}
	origin := r.author.origin(path...)
	key, ok := d.topology(r, r.Gang.Within, path...)
	if !ok {
		return
	}
	g := d.gang
	if g.form == capability.PodGroupAPI && d.c.facts.PodGroupTopology && !g.adopted {
		return // The PodGroup says it.
	}
	if d.c.admitting() {
		d.c.reportOnce("gangWithin"+r.Name, finding{
			rule: "compile/inexpressible", policy: r.Name, at: origin.Range,
			message: "an admission policy sees a pod and not which others are of its gang; use together with of: {labels: ...}, or the surface render or live",
		})
		return
	}
	wish := affinityWish{required: true, origin: origin, reason: "required pod affinity lets no pod of the gang out of the domain of the first"}
	wish.term = corev1.PodAffinityTerm{TopologyKey: key}
	switch label := d.gangLabel(); {
	case label != "":
		wish.term.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{label: g.name}}
		if d.t.RunLabel != "" {
			wish.term.MatchLabelKeys = []string{d.t.RunLabel}
		}
	case len(d.siblings) == 1 && len(d.w.Templates) == 1 && !d.isPod():
		sub, problem := d.subjectOwn()
		if problem != nil {
			d.report(finding{rule: problem.rule, policy: r.Name, at: origin.Range, message: problem.message})
			return
		}
		wish.term.LabelSelector = sub.selector
	default:
		d.report(finding{
			rule: "compile/inexpressible", policy: r.Name, at: origin.Range,
			message: "the pods of the gang have no label in common by which pod affinity could tell them, and the API server's PodGroups take no topology (feature gate TopologyAwareWorkloadScheduling); leave within out, or give the templates a label and use together with of: {labels: ...}",
		})
		return
	}
	d.affinities = append(d.affinities, wish)
}

// gangLabel is the label that all pods of the gang have, empty if there is none.
func (d *draft) gangLabel() string {
	switch g := d.gang; {
	case g.adopted:
		for _, label := range gangkey.Labels() {
			if d.t.Pods.Labels[label] == g.name {
				return label
			}
		}
	case g.form == capability.PodGroupCRD:
		return gangkey.Label
	case g.form == capability.PodGroupLabels:
		return gangkey.LabelOldest
	}
	return ""
}
