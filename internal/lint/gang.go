package lint

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gangkey"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gates/condition"
)

func gangRules() []Rule {
	return []Rule{
		{
			ID: "workload/gang-mixed", Severity: diag.Warning, Needs: Files, each: gangMixed,
			Doc: "Members of one gang that differ in priorityClassName, preemptionPolicy or schedulerName are never placed: the whole gang has one priority, one preemption policy and one profile.",
			Fix: "Make them equal.",
		},
		{
			ID: "workload/gang-min-above-replicas", Severity: diag.Error, Needs: Files, run: gangTooFew,
			Doc: "A gang whose least number of members is more than its workloads make pods never starts.",
			Fix: "Lower minMember, or make more pods.",
		},
		{
			ID: "workload/gang-above-quota", Severity: diag.Error, Needs: Files, run: gangAboveQuota,
			Doc: "A gang whose least members ask for more than a quota of their namespace allows in all never starts: the pods beyond it are not even made.",
			Fix: "Raise the quota, or ask for less.",
		},
		{
			ID: "workload/gang-timeout", Severity: diag.Warning, Needs: Files, run: gangTimeout,
			Doc: "A node that is made on demand takes some minutes. A gang that gives up sooner releases its places before the nodes are there, and starts over, without end.",
			Fix: "Wait at least as long as a node takes to come up.",
		},
		{
			ID: "workload/gate-unremoved", Severity: diag.Warning, Needs: Files, each: gateUnremoved,
			Doc: "A scheduling gate that a manifest has must be removed by some controller; until then the pod is not even tried. Gates of Kueue, Grove and Volcano, which those remove, are not reported.",
			Fix: "Take the gate out, or let a policy say what the pods wait for (gates).",
		},
	}
}

// members are the templates of a gang, in their order.
func (j *judgement) members(gang string) []*template {
	if j.gangs == nil {
		j.gangs = map[string][]*template{}
		for _, t := range j.templates {
			if t.gang != "" {
				j.gangs[t.gang] = append(j.gangs[t.gang], t)
			}
		}
	}
	return j.gangs[gang]
}

// gang is what the group's gang is called. Runs of one workload, which are gangs of
// their own, have no group.
func (g group) gang() string {
	if g.crd {
		return g.namespace + "/" + gangkey.Gang{Family: gangkey.FamilyX, Name: g.name}.Key()
	}
	return g.namespace + "/" + g.name
}

func gangTooFew(j *judgement) {
	for _, g := range j.known.groups {
		members := j.members(g.gang())
		pods := 0
		var names []string
		for _, t := range members {
			n := t.t.Count
			if s := t.known.scalerOf(t.w); s != nil {
				n = &s.max
			}
			if n == nil {
				members = nil
				break
			}
			pods, names = pods+int(*n), append(names, t.subject())
		}
		if len(members) == 0 || int(g.min) <= pods {
			continue
		}
		f := diag.Finding{Subject: g.ref(), Range: g.at(g.minPath...), Message: fmt.Sprintf("the gang needs %d members and %s makes %d, so that none ever starts; write %d at most", g.min, strings.Join(names, " and "), pods, pods)}
		if !f.Range.Start.IsValid() {
			f.Range = members[0].w.Source.At("spec")
		}
		j.report(f)
	}
}

// gangAboveQuota adds up what the least members ask for, the cheapest first.
func gangAboveQuota(j *judgement) {
	for _, g := range j.known.groups {
		members := j.members(g.gang())
		for _, q := range j.known.quotas {
			if q.namespace != g.namespace || q.scoped || len(members) == 0 {
				continue
			}
			for _, name := range sortedKeys(q.hard) {
				limit := q.hard[name]
				need, known := leastNeed(members, int(g.min), name)
				if !known || need.Cmp(limit) <= 0 {
					continue
				}
				f := diag.Finding{Subject: g.ref(), Range: g.at(g.minPath...), Message: fmt.Sprintf("%d members ask for %s of %s, and %s allows %s, so that the gang never starts; raise the quota, or ask for less", g.min, need.String(), name, q.ref(), limit.String())}
				at := q.at(append(q.path, string(name))...)
				if !f.Range.Start.IsValid() {
					f.Range = at
				}
				if at.Start.IsValid() {
					f.Related = []diag.Related{{Range: at, Message: "the limit"}}
				}
				j.report(f)
			}
		}
	}
}

// leastNeed is what so many of the members ask for at the least, of a resource as a
// quota names it; false where that is not known.
func leastNeed(members []*template, n int, name corev1.ResourceName) (resource.Quantity, bool) {
	pods := name == corev1.ResourcePods || name == "count/pods"
	if strings.HasPrefix(string(name), "limits.") || strings.HasPrefix(string(name), "count/") && !pods {
		return resource.Quantity{}, false
	}
	if pods {
		return *resource.NewQuantity(int64(n), resource.DecimalSI), true
	}
	resourceName := corev1.ResourceName(strings.TrimPrefix(string(name), "requests."))
	type alike struct {
		ask   resource.Quantity
		count int64
	}
	var all []alike
	for _, t := range members {
		asked, known := t.requests()
		if !known || t.t.Count == nil {
			return resource.Quantity{}, false
		}
		all = append(all, alike{asked[resourceName], int64(*t.t.Count)})
	}
	slices.SortFunc(all, func(a, b alike) int { return a.ask.Cmp(b.ask) })
	var sum resource.Quantity
	left := int64(n)
	for _, p := range all {
		some := min(left, p.count)
		if !p.ask.Mul(some) {
			return resource.Quantity{}, false // more than a quantity can say
		}
		sum.Add(p.ask)
		left -= some
	}
	return sum, true
}

// scaleUp is how long a node that is made on demand takes at the least, from the
// pod that has no place to the pod that runs.
const scaleUp = 3 * time.Minute

// onDemand says who makes nodes when pods are Pending; empty for nobody known.
func (j *judgement) onDemand() string {
	if pools := j.caps().NodePools; len(pools) > 0 {
		return "Karpenter, by NodePool " + fmt.Sprintf("%q", pools[0].Name)
	}
	for _, p := range j.pools() {
		if p.ManagedBy == "karpenter" {
			return fmt.Sprintf("Karpenter, for pool %q", p.Name)
		}
	}
	if j.Snapshot != nil {
		for _, p := range j.Snapshot.Pods {
			for _, key := range []string{"app", "app.kubernetes.io/name", "k8s-app"} {
				if strings.HasSuffix(p.Labels[key], "cluster-autoscaler") {
					return "the cluster autoscaler, pod " + p.Namespace + "/" + p.Name
				}
			}
		}
	}
	return ""
}

func gangTimeout(j *judgement) {
	who := j.nodesBy
	if who == "" {
		return
	}
	for _, g := range j.known.groups {
		if g.timeout == nil || *g.timeout >= scaleUp || !g.at().Start.IsValid() {
			continue
		}
		j.report(diag.Finding{Subject: g.ref(), Range: g.at(g.timeoutPath...), Message: fmt.Sprintf("the gang gives up after %s, and a node that is made for it (%s) takes %s or more: it would start over without end; write at least %d", *g.timeout, who, scaleUp, int(scaleUp.Seconds()))})
	}
}

// removedBy maps the ends of gates' domains to what removes them.
var removedBy = []string{"kueue.x-k8s.io", "grove.io", "volcano.sh", "run.ai", condition.Prefix[:len(condition.Prefix)-1]}

func gateUnremoved(t *template) {
	for i, gate := range t.t.Pods.SchedulingGates {
		if knownGate(gate.Name) {
			continue
		}
		t.report("", fmt.Sprintf("the pods wait at gate %q, and nobody is known to remove it; take it out, or let a policy say what they wait for", gate.Name), workload.SchedulingGates, i)
	}
}

func knownGate(name string) bool {
	domain, _, _ := strings.Cut(name, "/")
	return slices.ContainsFunc(removedBy, func(known string) bool { return domain == known || strings.HasSuffix(domain, "."+known) })
}
