package lint

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

func spreadRules() []Rule {
	return []Rule{
		{
			ID: "workload/spread-no-selector", Severity: diag.Error, Needs: Files, each: spreadNoSelector,
			Doc: "A topology spread constraint without a label selector, or with an empty one, counts no pods, and so constrains nothing.",
			Fix: "Select the workload's own pods.",
		},
		{
			ID: "workload/spread-misses-own-pods", Severity: diag.Warning, Needs: Files, each: spreadMissesOwnPods,
			Doc: "A topology spread constraint that does not select the pods it is on does not count them, and nothing keeps them from piling up.",
			Fix: "Select the workload's own pods.",
		},
		{
			ID: "workload/spread-rollout", Severity: diag.Warning, Needs: Files, each: spreadRollout,
			Doc: "Without matchLabelKeys a required spread counts the pods of the old revision during a rollout, and the new ones end up uneven.",
			Fix: "Add matchLabelKeys with the label that tells revisions apart.",
		},
		{
			ID: "workload/spread-tainted-nodes", Severity: diag.Warning, Needs: Nodes, each: spreadTaintedNodes,
			Doc: "Without nodeTaintsPolicy: Honor a required spread counts domains whose nodes the pods cannot use, and pods stay Pending for the sake of those.",
			Fix: "Set nodeTaintsPolicy: Honor.",
		},
		{
			ID: "workload/spread-one-domain", Severity: diag.Warning, Needs: Files, each: spreadOneDomain,
			Doc: "A required spread over a single domain is always met: it looks like high availability, and all pods are in one place. Either the workload's own node affinity leaves one domain, or the cluster has no more.",
			Fix: "Allow more domains, or say minDomains, so that the pods wait for them.",
		},
		{
			ID: "workload/min-domains", Severity: diag.Warning, Needs: Nodes, each: spreadMinDomains,
			Doc: "While there are fewer domains than minDomains, the scheduler takes the emptiest to have no pods: each domain gets maxSkew pods, and the rest stay Pending.",
			Fix: "Lower minDomains, or add nodes in more domains.",
		},
		{
			ID: "workload/daemonset-spread", Severity: diag.Warning, Needs: Files, each: daemonSetSpread,
			Doc: "The controller of a DaemonSet makes each pod for one node. A spread or a rule between pods cannot move it elsewhere, it can only keep it Pending.",
			Fix: "Leave the constraint out; choose nodes by labels.",
		},
		{
			ID: "workload/topology-missing", Severity: diag.Error, Needs: Nodes, each: topologyMissing,
			Doc: "Nodes without the label that tells domains apart belong to none: a required spread never uses them, and an affinity has no effect there.",
			Fix: "Label the nodes, or use a key that they have.",
		},
	}
}

// spreadOneDomain looks at what the manifest and the policies leave of the domains.
// One node is no domain to speak of while no cluster is known.
func spreadOneDomain(t *template) {
	if n, known := t.replicas(); t.isDaemonSet() || known && n < 2 {
		return
	}
	t.eachSpread(func(i int, c corev1.TopologySpreadConstraint) {
		if c.WhenUnsatisfiable != corev1.DoNotSchedule || selectsNothing(c) || c.MinDomains != nil && *c.MinDomains > 1 {
			return
		}
		if c.NodeAffinityPolicy == nil || *c.NodeAffinityPolicy == corev1.NodeInclusionPolicyHonor {
			if at, value := t.pinnedTo(c.TopologyKey); value != "" {
				f := t.report("", fmt.Sprintf("the spread over %q has one domain, because the pods may run in %q alone: it is always met, and keeps nothing apart; allow more values, or leave the spread out", c.TopologyKey, value), workload.SpreadConstraints, i)
				f.Related = append(f.Related, diag.Related{Range: at, Message: "what leaves one"})
				return
			}
		}
		domains := t.domains(c.TopologyKey)
		if len(domains) != 1 {
			return
		}
		only := slices.Collect(maps.Keys(domains))[0]
		t.report("", fmt.Sprintf("all nodes that could take the pods have %s=%s, so that the spread is always met and keeps nothing apart; add nodes elsewhere, or say minDomains: 2 to wait for them", c.TopologyKey, only), workload.SpreadConstraints, i)
	})
}

// pinnedTo returns the one value that the required node affinity leaves for the
// label, and where the manifest says so; empty where it leaves more.
func (t *template) pinnedTo(key string) (diag.Range, string) {
	at := func(f workload.Field, below ...any) diag.Range {
		path, _ := t.t.PathOf(f, below...)
		return t.w.Source.At(path...)
	}
	if v := t.pods.NodeSelector[key]; v != "" {
		return at(workload.NodeSelector, key), v
	}
	value, where := "", diag.Range{}
	terms := nodeTerms(t.pods)
	for i, term := range terms {
		one := ""
		for j, e := range term.MatchExpressions {
			if e.Key == key && e.Operator == corev1.NodeSelectorOpIn && len(e.Values) == 1 {
				one, where = e.Values[0], at(workload.NodeAffinity, requiredTerms, "nodeSelectorTerms", i, "matchExpressions", j)
			}
		}
		for j, e := range term.MatchFields {
			if key == corev1.LabelHostname && e.Operator == corev1.NodeSelectorOpIn && len(e.Values) == 1 {
				one, where = e.Values[0], at(workload.NodeAffinity, requiredTerms, "nodeSelectorTerms", i, "matchFields", j)
			}
		}
		if one == "" || value != "" && one != value {
			return diag.Range{}, ""
		}
		value = one
	}
	return where, value
}

// spreadMinDomains follows the scheduler's PodTopologySpread (minMatchNum): with too
// few domains the least count is taken to be 0.
func spreadMinDomains(t *template) {
	if t.isDaemonSet() {
		return
	}
	t.eachSpread(func(i int, c corev1.TopologySpreadConstraint) {
		if c.MinDomains == nil || c.WhenUnsatisfiable != corev1.DoNotSchedule || selectsNothing(c) {
			return
		}
		n := len(t.domains(c.TopologyKey))
		if n == 0 || n >= int(*c.MinDomains) {
			return
		}
		place := n * int(c.MaxSkew)
		left := ""
		if replicas, known := t.replicas(); known {
			if replicas <= place {
				return
			}
			left = fmt.Sprintf(", and %d of the %d stay Pending", replicas-place, replicas)
		}
		domains, find := fmt.Sprintf("there are %d domains", n), fmt.Sprintf("%d pods find", place)
		if n == 1 {
			domains = "there is 1 domain"
		}
		if place == 1 {
			find = "1 pod finds"
		}
		t.report("", fmt.Sprintf("%s of %q for the pods, and minDomains is %d: until there are as many, %s a place%s; add nodes in other domains, or write minDomains: %d", domains, c.TopologyKey, *c.MinDomains, find, left, n), workload.SpreadConstraints, i, "minDomains")
	})
}

func daemonSetSpread(t *template) {
	if !t.isDaemonSet() {
		return
	}
	t.eachSpread(func(i int, c corev1.TopologySpreadConstraint) {
		if c.WhenUnsatisfiable == corev1.DoNotSchedule && !selectsNothing(c) {
			t.report("", fmt.Sprintf("each pod of a DaemonSet is for one node, and the spread over %q can only keep it Pending there; leave it out", c.TopologyKey), workload.SpreadConstraints, i)
		}
	})
	for _, a := range t.affinityTerms() {
		if a.TopologyKey != corev1.LabelHostname && t.selectsOwn(a.LabelSelector) {
			t.report("", fmt.Sprintf("each pod of a DaemonSet is for one node, and a rule over %q about its own pods can only keep it Pending there; leave it out", a.TopologyKey), a.field, a.path()...)
		}
	}
}
