package compiler

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-sched/kubectl-sched/compiler/admission"
	"github.com/kubectl-sched/kubectl-sched/compiler/cel"
	"github.com/kubectl-sched/kubectl-sched/compiler/nodeexpr"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

const (
	// mutatingPolicyMinor is the minor version that serves the v1 of
	// MutatingAdmissionPolicy (KEP 3962), with the CEL libraries that we use.
	mutatingPolicyMinor = 37
	// maxObject is the most bytes of JSON that one of our objects may have; etcd
	// takes 1.5 MiB for a request, and managedFields come on top.
	maxObject = 1 << 20
)

// admitting reports whether the API server will carry the policies out on the
// pods, which then need no template that carries the fields.
func (c *compilation) admitting() bool { return c.Surface == policy.SurfaceAdmission }

// placedBefore reports whether the admission surface has had its say on the
// object already: it acts on what comes, so a pod that is there stays as it is,
// and what a former version of the set wrote is not the author's to mend.
func (c *compilation) placedBefore(w *workload.Workload) bool {
	if !c.admitting() || w.UID == "" {
		return false
	}
	_, marked := w.Annotations[admission.Annotation(c.Set)]
	return marked || w.Group == "" && w.Kind == "Pod"
}

// admit makes the objects of the admission surface.
func (c *compilation) admit() {
	if !c.admitting() || len(c.rules) == 0 {
		return
	}
	if !c.facts.supports(mutatingPolicyMinor) {
		c.report(finding{
			rule: "compile/old-cluster", at: c.surfaceRange(),
			message: fmt.Sprintf("Kubernetes 1.%d does not serve MutatingAdmissionPolicy in v1, which the surface \"admission\" needs; use the surface \"render\" or \"live\", or upgrade to 1.%d", c.facts.Minor, mutatingPolicyMinor),
		})
		return
	}
	s := c.admissionSet()
	made := s.Objects()
	var origins []Origin
	for _, r := range c.rules {
		origins = append(origins, r.author.origin())
	}
	add := func(object KubeObject, reason string) {
		c.checkSize(object)
		c.plan.Objects = append(c.plan.Objects, Object{Object: object, Level: LevelBuiltin, Reason: reason, Origins: uniqueOrigins(origins)})
	}
	if expires := c.firstExpiry(); expires != "" {
		metav1.SetMetaDataAnnotation(&made.Place.ObjectMeta, admission.ExpiresAnnotation, expires)
	}
	add(made.Place, "a MutatingAdmissionPolicy gives the pods as they are created what render gives their templates; all policies are in one, so that no pod gets half of a change")
	add(made.PlaceBinding, "puts the policy in force")
	add(made.Unmark, "takes marks away that users write, so that nobody opts out by one")
	add(made.UnmarkBinding, "puts the policy in force")
	add(made.Audit, "notes in the audit log which policies placed a pod, or would have")
	add(made.AuditBinding, "puts the policy in force, to note and never to refuse")
}

// surfaceRange is where the document says that the cluster's surface is
// admission, or the zero Range.
func (c *compilation) surfaceRange() diag.Range {
	if c.facts.cluster == nil {
		return diag.Range{}
	}
	return c.facts.cluster.Positions.At("surface")
}

func (c *compilation) checkSize(object KubeObject) {
	data, err := json.Marshal(object)
	if err != nil || len(data) <= maxObject {
		return
	}
	c.report(finding{
		rule: "compile/too-large", at: c.surfaceRange(), subject: object.GetObjectKind().GroupVersionKind().Kind + " " + object.GetName(),
		message: fmt.Sprintf("it comes to %d KiB, and the API server stores %d KiB at most; divide the policies among several sets, or select fewer workloads by name", len(data)>>10, maxObject>>10),
	})
}

// firstExpiry is the first day on which an exception that is compiled in ends.
func (c *compilation) firstExpiry() string {
	first := ""
	for _, r := range c.rules {
		for _, e := range r.except {
			if e.expired {
				continue
			}
			if first == "" || e.Expires < first {
				first = e.Expires
			}
			c.report(finding{
				rule: "compile/exception-without-clock", severity: info, policy: r.Name, at: r.author.at("except", e.name, "expires"),
				message: fmt.Sprintf("an admission policy has no clock, so exception %q spares pods until the set is applied again after %s", e.name, e.Expires),
			})
		}
	}
	return first
}

// admissionSet gathers what the policies in force ask of any pod.
func (c *compilation) admissionSet() admission.Set {
	s := admission.Set{Name: c.Set, DefaultClass: c.facts.DefaultPriorityClass, Kinds: c.kindTable().rows()}
	c.admissionBehaviour(&s)
	for _, name := range sortedKeys(c.pools) {
		if p := c.pools[name]; p.taint != nil && p.grants != nil {
			s.Grants = append(s.Grants, admission.Grant{Pool: name, Holds: grantCondition(*p.Dedicated.Grants)})
		}
	}
	replacedBy := map[string][]string{}
	for _, r := range c.rules {
		for _, o := range r.replaces {
			replacedBy[o.Name] = append(replacedBy[o.Name], r.Name)
		}
	}
	g := &gathering{c: c, set: &s}
	for _, r := range c.rules {
		selects := c.selects(r, r.Workloads, false, "workloads")
		for _, e := range r.except {
			if !e.expired {
				selects.Condition(cel.Not(c.selects(r, e.Workloads, false, "except", e.name, "workloads").Text()))
			}
		}
		slices.Sort(replacedBy[r.Name])
		s.Policies = append(s.Policies, admission.Policy{Name: r.Name, Selects: selects, ReplacedBy: slices.Compact(replacedBy[r.Name])})
		g.gather(r)
	}
	g.needs()
	g.settle()
	s.Known = c.knownWorkloads()
	return s
}

// admissionBehaviour says what the cluster's document says of its policies.
func (c *compilation) admissionBehaviour(s *admission.Set) {
	if named := slices.ContainsFunc(c.rules, func(r *rule) bool { return slices.Contains(r.Workloads.Namespaces, systemNamespace) }); !named {
		s.Exempt = append(s.Exempt, systemNamespace)
	}
	if c.facts.cluster == nil || c.facts.cluster.Admission == nil {
		return
	}
	a := c.facts.cluster.Admission
	s.FailClosed = a.FailurePolicy == policy.FailureFail
	if a.Exempt == nil {
		return
	}
	for i, name := range a.Exempt.Namespaces {
		if isGlob(name) {
			c.report(finding{
				rule: "compile/inexpressible", at: c.facts.cluster.Positions.At("admission", "exempt", "namespaces", strconv.Itoa(i)),
				message: fmt.Sprintf("namespaces are exempt by their names alone, and %q is a pattern; list the namespaces", name),
			})
			continue
		}
		s.Exempt = append(s.Exempt, name)
	}
	slices.Sort(s.Exempt)
	s.Exempt = slices.Compact(s.Exempt)
}

// grantCondition is grants.lacks in CEL.
func grantCondition(g policy.Grants) string {
	var conditions []string
	if g.Namespaces != nil {
		conditions = append(conditions, namespaceCondition(g.Namespaces))
	}
	if g.ServiceAccounts != nil {
		var accounts []string
		for _, a := range g.ServiceAccounts {
			namespace, name, full := strings.Cut(a, "/")
			if !full {
				accounts = append(accounts, cel.Matches("variables.serviceAccount", []string{a}))
				continue
			}
			accounts = append(accounts, cel.And(cel.Matches(admission.Namespace, []string{namespace}), cel.Matches("variables.serviceAccount", []string{name})))
		}
		conditions = append(conditions, cel.Or(accounts...))
	}
	return cel.And(append(conditions, cel.Labels("variables.namespaceLabels", g.NamespaceLabels))...)
}

// namespaceCondition says whether the pod's namespace is one of those meant;
// kube-system is by its name alone.
func namespaceCondition(patterns []string) string {
	condition := cel.Matches(admission.Namespace, patterns)
	globs := slices.ContainsFunc(patterns, cel.IsGlob)
	if globs && !slices.Contains(patterns, systemNamespace) {
		return cel.And(admission.Namespace+" != "+cel.Quote(systemNamespace), condition)
	}
	return condition
}

// gathering collects the wishes of all policies, whatever the pod.
type gathering struct {
	c   *compilation
	set *admission.Set

	required    []conditional[statement]
	preferred   []conditional[preferredTerm]
	tolerations []conditional[tolerationWish]
	affinities  []conditional[affinityWish]
}

type conditional[T any] struct {
	when admission.Case
	wish T
}

func (g *gathering) gather(r *rule) {
	when := admission.InForce(r.Name)
	for _, s := range slices.Concat(r.nodes.required, r.tolerate.required) {
		g.required = append(g.required, conditional[statement]{when, s})
	}
	for _, t := range r.nodes.preferred {
		g.preferred = append(g.preferred, conditional[preferredTerm]{when, t})
	}
	for _, u := range r.nodes.poolUses {
		g.tolerate(when, requiredPoolTolerations(u))
	}
	g.tolerate(when, r.tolerate.wishes)
	g.spread(r, when)
	g.colocate(r, when, r.Together, false)
	g.colocate(r, when, r.Apart, true)
	if p := r.Priority; p != nil {
		g.scalar(when, workload.PriorityClassName, p.Class)
		if p.Preemption == "never" {
			g.scalar(when, workload.PreemptionPolicy, "Never")
		}
		// The class is made whether or not any workload is known.
		if !slices.ContainsFunc(g.c.classes, func(c classWish) bool { return c.rule == r }) {
			g.c.classes = append(g.c.classes, classWish{r, *p})
		}
	}
	g.carry(r, when)
	g.raw(r, when)
}

func (g *gathering) scalar(when admission.Case, field workload.Field, value string) {
	if value != "" {
		g.set.Scalars = append(g.set.Scalars, admission.Scalar{When: admission.Any(when), Field: string(field), Value: value})
	}
}

func (g *gathering) tolerate(when admission.Case, wishes []tolerationWish) {
	for _, w := range wishes {
		var conditions []string
		if w.notDaemonSet {
			conditions = append(conditions, "!"+admission.DaemonSet)
		}
		for _, p := range w.needs {
			if p.grants != nil {
				conditions = append(conditions, admission.Granted(p.Name))
			}
		}
		g.tolerations = append(g.tolerations, conditional[tolerationWish]{when.And(conditions...), w})
	}
}

// settle orders and joins what was gathered, as the settling of one template
// does.
func (g *gathering) settle() {
	exprs := make([]nodeexpr.Expr, len(g.required))
	for i, s := range g.required {
		exprs[i] = s.wish.expr
		if s.wish.expr.IsFalse() {
			g.c.report(finding{
				rule: "compile/contradiction", policy: s.wish.origin.Policy, at: s.wish.origin.Range,
				message: fmt.Sprintf("no node can ever meet %s; require something else", cmp.Or(s.wish.field, "this")),
			})
		}
	}
	g.set.Required.Table = nodeexpr.NewTable(exprs)
	for _, x := range g.set.Required.Table.Expressions {
		var when []admission.Case
		for _, i := range x.Given {
			when = append(when, g.required[i].when)
		}
		g.set.Required.When = append(g.set.Required.When, admission.Any(when...))
	}
	g.settlePreferred()
	g.settleTolerations()
	slices.SortStableFunc(g.set.Spreads, func(a, b admission.Spread) int { return cmp.Compare(a.Key, b.Key) })
	slices.SortStableFunc(g.affinities, func(a, b conditional[affinityWish]) int { return a.wish.order(b.wish) })
	for _, a := range g.affinities {
		g.set.Colocations = append(g.set.Colocations, admission.Colocation{
			When: admission.Any(a.when), Apart: a.wish.apart, Required: a.wish.required, Weight: a.wish.weight, Own: a.wish.own, Plain: a.wish.plain, Term: a.wish.term,
		})
	}
}

func (g *gathering) settlePreferred() {
	byKey := map[string]*admission.Preferred{}
	for _, p := range g.preferred {
		p.wish.term = canonicalTerm(p.wish.term)
		key := keyOf(p.wish.term)
		if byKey[key] == nil {
			byKey[key] = &admission.Preferred{Term: p.wish.term}
		}
		byKey[key].Weights = append(byKey[key].Weights, admission.Weight{When: p.when, Weight: p.wish.weight})
	}
	for _, key := range sortedKeys(byKey) {
		g.set.Preferred = append(g.set.Preferred, *byKey[key])
	}
}

func (g *gathering) settleTolerations() {
	slices.SortStableFunc(g.tolerations, func(a, b conditional[tolerationWish]) int {
		return compareTolerations(a.wish.toleration, b.wish.toleration)
	})
	for i := 0; i < len(g.tolerations); {
		first := g.tolerations[i].wish.toleration
		var when []admission.Case
		for ; i < len(g.tolerations) && compareTolerations(g.tolerations[i].wish.toleration, first) == 0; i++ {
			when = append(when, g.tolerations[i].when)
		}
		g.set.Tolerations = append(g.set.Tolerations, admission.Toleration{When: admission.Any(when...), Toleration: first})
	}
	all := g.set.Tolerations
	for i := range all {
		for j := range all {
			if strictlyCovers(all[i].Toleration, all[j].Toleration) {
				all[i].Covers = append(all[i].Covers, j)
			}
		}
	}
}
