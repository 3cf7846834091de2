package compiler

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
)

// A SkippedNode is a node that a DaemonSet does not run on.
type SkippedNode struct {
	Name string
	// Taints are those that keep the pods off.
	Taints []corev1.Taint
}

// DaemonSetNodes returns how many of the nodes the pods of a DaemonSet may use
// by their node affinity, and which of those they skip for their taints, in the
// order of the nodes. The controller's own tolerations are taken into account;
// hostNetwork says that the pods use the node's network, which brings one more.
func DaemonSetNodes(pods workload.PodFields, hostNetwork bool, nodes []capability.Node) (selected int, skipped []SkippedNode) {
	required := nodeaffinity.NewRequiredNodeAffinity(pods.NodeSelector, pods.Affinity)
	tolerations := append(slices.Clone(pods.Tolerations), daemonTolerations()...)
	if hostNetwork {
		tolerations = append(tolerations, corev1.Toleration{Key: corev1.TaintNodeNetworkUnavailable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule})
	}
	for _, n := range nodes {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: n.Labels}}
		if ok, err := required.Match(node); err != nil || !ok {
			continue
		}
		selected++
		var bad []corev1.Taint
		for _, t := range n.Taints {
			if repels(t) && !tolerates(tolerations, t) {
				bad = append(bad, t)
			}
		}
		if len(bad) > 0 {
			skipped = append(skipped, SkippedNode{n.Name, bad})
		}
	}
	return selected, skipped
}

// DescribeSkipped lists nodes by the taints that they are skipped for.
func DescribeSkipped(skipped []SkippedNode) string {
	byTaint := map[string][]string{}
	for _, n := range skipped {
		byTaint[describeTaints(n.Taints)] = append(byTaint[describeTaints(n.Taints)], n.Name)
	}
	var parts []string
	for _, taint := range sortedKeys(byTaint) {
		noun := "taint"
		if strings.Contains(taint, ", ") {
			noun = "taints"
		}
		parts = append(parts, fmt.Sprintf("%s for the %s %s", quoted(byTaint[taint]), noun, taint))
	}
	return strings.Join(parts, "; ")
}

// checkDaemonSet lists the known nodes that a DaemonSet skips, which nothing in
// the cluster ever reports: the controller does not even count them as wanted.
// Nodes that its affinity leaves out are not for it, and taints on the pools
// that a policy requires have been reported by then.
func (d *draft) checkDaemonSet() {
	if !d.isDaemonSet() || !d.c.facts.NodesKnown || d.failed || d.tainted {
		return
	}
	selected, skipped := DaemonSetNodes(d.after, d.hostNetwork(), d.c.facts.Nodes)
	if len(skipped) == 0 {
		return
	}
	o := d.daemonOrigin()
	f := finding{rule: "compile/daemonset-skips", severity: info, policy: o.Policy, at: o.Range}
	f.message = fmt.Sprintf("the DaemonSet runs on %d of the %d nodes that it is for, and skips %s", selected-len(skipped), selected, DescribeSkipped(skipped))
	// The taints of dedicated pools keep off whom the document means to.
	if slices.ContainsFunc(skipped, func(n SkippedNode) bool {
		return slices.ContainsFunc(n.Taints, func(t corev1.Taint) bool { return !d.c.guarded(t) })
	}) {
		f.severity = warning
		f.message += "; tolerate the taint, or forbid those nodes"
	}
	d.report(f)
}

// hostNetwork reports whether the pods use the node's network, for which the
// controller tolerates that the pod network is not there.
func (d *draft) hostNetwork() bool {
	if d.after.Raw["hostNetwork"] == true {
		return true
	}
	v, _, _ := d.podSpecValue([]string{"hostNetwork"})
	return v == true
}

// daemonOrigin is the line of a policy that speaks of the DaemonSet's nodes.
func (d *draft) daemonOrigin() Origin {
	for _, r := range d.rules {
		switch {
		case r.Tolerate != nil:
			return r.author.origin("tolerate")
		case r.Nodes != nil:
			return r.author.origin("nodes")
		}
	}
	return d.rules[0].author.origin()
}
