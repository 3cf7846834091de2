// Package compiler turns placement policies into the Kubernetes fields that
// carry them out.
//
// Compile maps a Placement, workloads and a cluster's Capabilities to a Plan.
// It is pure: no clock, no cluster, no file, and no order of a map shows in
// what it returns. One file holds one intent; table.go lists them. The package
// must not know where manifests come from, how plans are written out (emit) or
// how they reach a cluster (apply).
package compiler

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/compiler/admission"
	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// Compile returns the Plan for the request, and everything that a user must
// mend or know, sorted. The Plan is complete only if no finding is an Error.
func Compile(r Request) (*Plan, diag.Findings) { return CompileContext(context.Background(), r) }

// CompileContext is Compile that ends early, with a finding, when ctx does.
func CompileContext(ctx context.Context, r Request) (*Plan, diag.Findings) {
	c := newCompilation(r)
	c.ended = ctx.Err
	c.findCluster()
	c.preparePools()
	c.foresee()
	c.prepareRules()
	c.checkKinds()
	c.compileAll()
	c.nodeEffects()
	c.checkNodePlan()
	c.guardPools()
	c.admit()
	c.settleClasses()
	c.checkProfiles()
	c.reportUnknownNamespaces()
	c.reportUnsaidNamespaces()
	c.finish()
	if err := c.ended(); err != nil {
		c.report(finding{rule: "compile/interrupted", message: fmt.Sprintf("compiling was interrupted: %v", err)})
	}
	if c.Incomplete {
		c.findings = whateverElse(c.findings)
	}
	return c.plan, joinSubjects(c.findings.Sort())
}

// joinSubjects makes one of the warnings that say the same of several workloads,
// at the same line for the same reason.
func joinSubjects(findings diag.Findings) diag.Findings {
	type key struct {
		severity              diag.Severity
		rule, policy, message string
		at                    diag.Range
	}
	places := map[key]int{}
	subjects := map[int][]string{}
	var out diag.Findings
	for _, f := range findings {
		k := key{f.Severity, f.Rule, f.Policy, f.Message, f.Range}
		i, ok := places[k]
		if f.Severity == diag.Error || f.Subject == "" || f.Policy == "" || !ok {
			places[k] = len(out)
			subjects[len(out)] = []string{f.Subject}
			out = append(out, f)
			continue
		}
		subjects[i] = append(subjects[i], f.Subject)
	}
	for i := range out {
		if names := subjects[i]; len(names) > 1 {
			out[i].Subject, out[i].Subjects = diag.JoinSubjects(names), names
		}
	}
	return out
}

func newCompilation(r Request) *compilation {
	if r.Placement == nil {
		r.Placement = &policy.Placement{}
	}
	// Capabilities come sorted; who made them by hand may have forgotten.
	byName := func(a, b capability.Node) int { return cmp.Compare(a.Name, b.Name) }
	if !slices.IsSortedFunc(r.Capabilities.Nodes, byName) {
		r.Capabilities.Nodes = slices.SortedFunc(slices.Values(r.Capabilities.Nodes), byName)
	}
	return &compilation{
		Request:  r,
		ended:    func() error { return nil },
		facts:    facts{Capabilities: r.Capabilities},
		plan:     &Plan{Cluster: r.Capabilities.Cluster},
		once:     map[string]bool{},
		eligible: map[string]*eligible{},
	}
}

// compilation is one run of Compile.
type compilation struct {
	Request
	// ended says why to end early; nil for going on.
	ended func() error
	facts facts
	// actual are the known nodes as they are; those of facts, in the same order,
	// are as they will be once what is ours to write is written.
	actual   []capability.Node
	plan     *Plan
	findings diag.Findings
	pools    map[string]*pool
	rules    []*rule
	// once holds the keys of the findings that are reported once for all
	// workloads.
	once map[string]bool
	// eligible remembers which nodes meet an expression and tolerations.
	eligible map[string]*eligible
	// known is what is known of workloads beyond what their pods show, by
	// namespace, group, kind and name; on the admission surface alone.
	known map[string]*admission.Known
	// classes are the PriorityClasses that policies in force ask for.
	classes []classWish
	// podGangs are the single pods that are members of gangs.
	podGangs []*draft
	// namespaces are those whose labels decide and are not known, by the place
	// in the policy that asks for them.
	namespaces map[string]*unknownNamespaces
	// unsaid is what workloads of no namespace miss for that, by workload.
	unsaid map[*workload.Workload][]missed
}

// finding is a diag.Finding in the making; its severity is Error if none is said.
type finding struct {
	rule     string
	severity diag.Severity
	policy   string
	subject  string
	at       diag.Range
	message  string
	related  []diag.Related
	fix      *diag.Fix
}

const (
	warning = diag.Warning
	info    = diag.Info
)

func (c *compilation) report(f finding) {
	c.findings = append(c.findings, diag.Finding{
		Rule:     f.rule,
		Severity: cmp.Or(f.severity, diag.Error),
		Policy:   f.policy,
		Subject:  f.subject,
		Range:    f.at,
		Message:  f.message,
		Related:  f.related,
		Fix:      f.fix,
	})
}

// reportOnce is report, for the first finding with the key.
func (c *compilation) reportOnce(key string, f finding) {
	if !c.once[key] {
		c.once[key] = true
		c.report(f)
	}
}

func (c *compilation) findCluster() {
	name := c.facts.Cluster
	if name == "" {
		return
	}
	if c.facts.cluster = c.Placement.Cluster(name); c.facts.cluster != nil {
		if minor, err := strconv.Atoi(strings.TrimPrefix(c.facts.cluster.Version, "1.")); err == nil && c.facts.Minor == 0 {
			c.facts.Minor = minor
		}
		if c.facts.PodGroups == "" {
			c.facts.PodGroups = capability.PodGroupForm(c.facts.cluster.PodGroups)
		}
		return
	}
	if len(c.Placement.Clusters) == 0 {
		return
	}
	var names []string
	for _, cluster := range c.Placement.Clusters {
		names = append(names, cluster.Name)
	}
	message := fmt.Sprintf("the document has no cluster %q", name)
	if near, ok := diag.Nearest(name, names); ok {
		message += fmt.Sprintf("; did you mean %q?", near)
	} else {
		message += "; its clusters are " + quoted(names)
	}
	c.report(finding{rule: "policy/unknown-cluster", message: message})
}

// compileAll compiles the policies into every template that they select.
func (c *compilation) compileAll() {
	x := newIndex(c.facts, c.rules)
	elsewhere := c.elsewhere()
	for _, w := range c.Workloads {
		if c.ended() != nil {
			return
		}
		var drafts []*draft
		for i := range w.Templates {
			selected, uncertain := x.matching(w, &w.Templates[i])
			elsewhere.notePolicies(w, &w.Templates[i], selected, uncertain)
			for _, r := range uncertain {
				c.namespaceUnknown(r, w.Namespace, "workloads", "namespaceLabels")
				r.matched = true
			}
			if len(selected) == 0 {
				continue
			}
			for _, r := range selected {
				r.matched = true
			}
			if c.placedBefore(w) && !c.WithPlaced {
				continue
			}
			d := &draft{c: c, w: w, t: &w.Templates[i], index: i, after: w.Templates[i].Pods}
			d.layer(selected)
			drafts = append(drafts, d)
		}
		for _, d := range drafts {
			d.siblings = drafts
			d.compile()
			c.plan.Changes = append(c.plan.Changes, Change{
				Workload: w, Template: d.index, Policies: d.policyNames(), After: d.after, Effects: d.effects, Nowhere: d.nowhere,
			})
		}
		c.settleGang(w, drafts)
	}
	c.settlePodGangs()
}

func (c *compilation) finish() {
	for _, r := range c.rules {
		c.plan.Policies = append(c.plan.Policies, r.Name)
		if !r.matched {
			c.plan.Unmatched = append(c.plan.Unmatched, r.Name)
		}
	}
	slices.SortFunc(c.plan.Profiles, func(a, b ProfileUse) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(c.plan.Exceptions, func(a, b ExceptionUse) int {
		return cmp.Or(cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.Exception, b.Exception), cmp.Compare(a.Workload, b.Workload))
	})
	c.plan.Exceptions = slices.Compact(c.plan.Exceptions)
	slices.SortFunc(c.plan.Objects, func(a, b Object) int {
		return cmp.Or(cmp.Compare(a.Kind(), b.Kind()), cmp.Compare(a.Object.GetNamespace(), b.Object.GetNamespace()), cmp.Compare(a.Object.GetName(), b.Object.GetName()))
	})
}

// unknownNamespaces are the namespaces whose labels one place in a policy
// needs.
type unknownNamespaces struct {
	rule  *rule
	path  []string
	names map[string]bool
}

// namespaceUnknown notes that the labels of a namespace decide and are not known.
func (c *compilation) namespaceUnknown(r *rule, namespace string, path ...string) {
	if c.admitting() {
		return // The API server will know them.
	}
	if c.namespaces == nil {
		c.namespaces = map[string]*unknownNamespaces{}
	}
	key := r.Name + policy.Pointer(path...)
	u := c.namespaces[key]
	if u == nil {
		u = &unknownNamespaces{rule: r, path: path, names: map[string]bool{}}
		c.namespaces[key] = u
	}
	u.names[namespace] = true
}

func (c *compilation) reportUnknownNamespaces() {
	for _, key := range sortedKeys(c.namespaces) {
		u := c.namespaces[key]
		names := sortedKeys(u.names)
		noun := "namespace"
		if len(names) > 1 {
			noun = "namespaces"
		}
		c.report(finding{
			rule: "compile/namespace-unknown", policy: u.rule.Name, at: u.rule.author.at(u.path...),
			message: fmt.Sprintf("namespaceLabels cannot be judged, because the labels of %s %s are not known; compile with --with-cluster, give the manifests of the namespaces too, or select by namespaces", noun, quoted(names)),
		})
	}
}

func joinPath(path []string) string { return strings.Join(path, ".") }
