package compiler

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/kubectl-sched/kubectl-sched/compiler/guard"
	"github.com/kubectl-sched/kubectl-sched/compiler/nodelabel"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// admissionPolicyMinor is the minor version that serves the v1 of
// ValidatingAdmissionPolicy (KEP 3488).
const admissionPolicyMinor = 30

// guarded reports whether the API server watches the pool.
func (p *pool) guarded() bool {
	return p.taint != nil && p.Dedicated.Guard != "" && p.Dedicated.Guard != policy.GuardOff && p.Dedicated.Grants != nil
}

// guardPools makes the objects that guard the pools, and reports what would make
// a guard worth less than it looks.
func (c *compilation) guardPools() {
	for _, name := range sortedKeys(c.pools) {
		p := c.pools[name]
		if !p.guarded() || p.broken {
			continue
		}
		c.guardObjects(p)
		c.checkOpenGrants(p)
		c.checkForgeableLabels(p)
		c.checkSharedTaint(p)
		c.checkRefused(p)
	}
}

// guardObjects adds the admission policies of one pool to the plan.
func (c *compilation) guardObjects(p *pool) {
	at := p.Positions.At("dedicated", "guard")
	if !c.facts.supports(admissionPolicyMinor) {
		c.report(finding{
			rule: "guard/not-served", subject: "pool " + p.Name, at: at,
			message: fmt.Sprintf("Kubernetes 1.%d has no ValidatingAdmissionPolicy in v1, which came with 1.%d, so nothing can guard the pool there; take guard out, or upgrade", c.facts.Minor, admissionPolicyMinor),
		})
		return
	}
	guardPool := guard.Pool{Name: p.Name, Taint: *p.taint, Guard: p.Dedicated.Guard, Grants: *p.Dedicated.Grants, Set: c.Set}
	if p.Dedicated.Exempt != nil {
		guardPool.Exempt = *p.Dedicated.Exempt
	}
	for _, made := range guardPool.Policies() {
		for _, object := range []KubeObject{made.Policy, made.Binding} {
			c.plan.Objects = append(c.plan.Objects, Object{
				Object: object, Level: LevelBuiltin, Reason: made.Reason, Origins: []Origin{{Range: at}},
			})
		}
	}
}

// checkOpenGrants reports grants that anybody can give himself.
func (c *compilation) checkOpenGrants(p *pool) {
	g := p.Dedicated.Grants
	everywhere := func(pattern string) bool { return strings.Trim(pattern, "*") == "" }
	warn := func(message string, path ...string) {
		c.report(finding{
			rule: "guard/open-grant", severity: warning, subject: "pool " + p.Name,
			at: p.Positions.At(append([]string{"dedicated", "grants"}, path...)...), message: message,
		})
	}
	if len(g.NamespaceLabels) > 0 || len(g.Namespaces) > 0 && !slices.ContainsFunc(g.Namespaces, everywhere) {
		return
	}
	if len(g.ServiceAccounts) == 0 {
		warn(`every namespace but kube-system has the grant, so the guard keeps nobody off; name those that shall have it`, "namespaces")
	}
	for i, account := range g.ServiceAccounts {
		if namespace, name, ok := policy.SplitAccount(account); !ok || everywhere(namespace) {
			warn(fmt.Sprintf("whoever may make service accounts in a namespace of his own can call one so and has the grant; write \"namespace/%s\", or grant namespaces too", name),
				"serviceAccounts", fmt.Sprint(i))
		}
	}
}

// checkForgeableLabels reports a pool that a node can join by labelling itself:
// pods that require the pool would come to it with all that they may read. The
// rule is the NodeRestriction plugin's (k8s.io/kubernetes,
// plugin/pkg/admission/noderestriction): a kubelet may not touch taints, labels of
// node-restriction.kubernetes.io, and most others of kubernetes.io and k8s.io.
func (c *compilation) checkForgeableLabels(p *pool) {
	var forgeable []string
	for _, term := range p.expr.Terms() {
		if slices.ContainsFunc(term.MatchExpressions, unforgeable) || slices.ContainsFunc(term.MatchFields, hasValues) {
			continue
		}
		for _, r := range term.MatchExpressions {
			forgeable = append(forgeable, r.Key)
		}
	}
	if len(forgeable) == 0 {
		return
	}
	slices.Sort(forgeable)
	forgeable = slices.Compact(forgeable)
	c.report(finding{
		rule: "guard/forgeable-labels", severity: warning, subject: "pool " + p.Name, at: p.Positions.At("nodes"),
		message: fmt.Sprintf("a node may set %s on itself, and one that is broken into could so join the pool and draw its pods to itself; tell the nodes by a label that kubelets may not set, such as %q",
			quoted(forgeable), corev1.LabelNamespaceNodeRestriction+"/pool"),
	})
}

// unforgeable reports whether a node must have a label for the requirement that
// its own kubelet may not set.
func unforgeable(r corev1.NodeSelectorRequirement) bool {
	return hasValues(r) && nodelabel.Kubelet.Refusal(r.Key) != ""
}

// hasValues reports whether the requirement asks for the field to be there.
func hasValues(r corev1.NodeSelectorRequirement) bool {
	return r.Operator != corev1.NodeSelectorOpNotIn && r.Operator != corev1.NodeSelectorOpDoesNotExist
}

// checkSharedTaint reports a pool whose guard would refuse the pods of another
// pool, because they have to tolerate the same taint.
func (c *compilation) checkSharedTaint(p *pool) {
	severity := warning
	if p.Dedicated.Guard == policy.GuardDeny {
		severity = diag.Error
	}
	for _, name := range sortedKeys(c.pools) {
		other := c.pools[name]
		if other == p || other.taint == nil || !tolerates([]corev1.Toleration{exactToleration(*other.taint)}, *p.taint) ||
			equality.Semantic.DeepEqual(other.Dedicated.Grants, p.Dedicated.Grants) {
			continue
		}
		c.report(finding{
			rule: "guard/shared-taint", severity: severity, subject: "pool " + p.Name, at: p.Positions.At("dedicated", "taint"),
			message: fmt.Sprintf("pool %q has the same taint, %s, so whoever is granted that pool alone meets the guard of this one; give one of them a taint of its own, or both the same grants", other.Name, describeTaint(*p.taint)),
			related: []diag.Related{{Range: other.Positions.At("dedicated"), Message: fmt.Sprintf("pool %q", other.Name)}},
		})
	}
}

// checkRefused reports the workloads at hand whose pods the guard would refuse,
// because they bear the pool's taint by themselves. Those that a policy sends
// there without a grant have an error of their own.
func (c *compilation) checkRefused(p *pool) {
	after := map[string][]corev1.Toleration{}
	key := func(ref string, template int) string { return fmt.Sprint(ref, "#", template) }
	for _, change := range c.plan.Changes {
		after[key(change.Workload.Ref(), change.Template)] = change.After.Tolerations
	}
	var refused []string
	for _, w := range c.Workloads {
		for i := range w.Templates {
			t := &w.Templates[i]
			tolerations, changed := after[key(w.Ref(), i)]
			if !changed {
				tolerations = t.Pods.Tolerations
			}
			if !tolerates(tolerations, *p.taint) || p.spares(w.Namespace, t.ServiceAccount) {
				continue
			}
			if _, v := p.grants.lacks(c.facts, w, t); v == no {
				c.noteGrant(p, w, t)
				refused = append(refused, w.Ref())
			}
		}
	}
	if len(refused) == 0 {
		return
	}
	does := map[policy.Guard]string{policy.GuardAudit: "notes", policy.GuardWarn: "warns about", policy.GuardDeny: "refuses"}
	slices.Sort(refused)
	refused = slices.Compact(refused)
	c.report(finding{
		rule: "guard/would-refuse", severity: warning, subject: "pool " + p.Name, at: p.Positions.At("dedicated", "guard"),
		message: fmt.Sprintf("the guard %s new pods of %s, whose manifests tolerate the pool's taint without a grant; take the tolerations out, or add the workloads to grants or exempt", does[p.Dedicated.Guard], quoted(refused)),
	})
}

// spares reports whether the guard does not watch pods of the namespace with the
// service account, whoever makes them.
func (p *pool) spares(namespace, account string) bool {
	e := p.Dedicated.Exempt
	if namespace == systemNamespace {
		return true
	}
	return e != nil && (anyMatches(patterns(e.Namespaces), namespace) ||
		slices.ContainsFunc(accountPatterns(e.ServiceAccounts), func(a accountPattern) bool { return a.matches(namespace, account) }))
}
