package compiler

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// checkDaemonSet lists the known nodes that a DaemonSet skips, which nothing in
// the cluster ever reports: the controller does not even count them as wanted.
func (d *draft) checkDaemonSet() {
	if !d.isDaemonSet() || !d.c.facts.NodesKnown || d.failed {
		return
	}
	required := nodeaffinity.NewRequiredNodeAffinity(d.after.NodeSelector, d.after.Affinity)
	tolerations := append(slices.Clone(d.after.Tolerations), daemonTolerations()...)
	if d.hostNetwork() {
		tolerations = append(tolerations, corev1.Toleration{Key: corev1.TaintNodeNetworkUnavailable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule})
	}
	byTaint := map[string][]string{}
	unasked := false
	var unselected []string
	for _, n := range d.c.facts.Nodes {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: n.Labels}}
		if ok, err := required.Match(node); err != nil || !ok {
			unselected = append(unselected, n.Name)
			continue
		}
		var bad []corev1.Taint
		for _, t := range n.Taints {
			if repels(t) && !tolerates(tolerations, t) {
				bad = append(bad, t)
				unasked = unasked || !d.c.guarded(t)
			}
		}
		if len(bad) > 0 {
			byTaint[describeTaints(bad)] = append(byTaint[describeTaints(bad)], n.Name)
		}
	}
	if len(byTaint)+len(unselected) == 0 {
		return
	}
	o := d.daemonOrigin()
	f := finding{rule: "compile/daemonset-skips", severity: info, policy: o.Policy, at: o.Range}
	var parts []string
	skipped := len(unselected)
	for _, taint := range sortedKeys(byTaint) {
		skipped += len(byTaint[taint])
		parts = append(parts, fmt.Sprintf("%s for the taint %s", quoted(byTaint[taint]), taint))
	}
	if len(unselected) > 0 {
		parts = append(parts, fmt.Sprintf("%s for the node affinity", quoted(unselected)))
	}
	f.message = fmt.Sprintf("the DaemonSet runs on %d of %d nodes and skips %s", len(d.c.facts.Nodes)-skipped, len(d.c.facts.Nodes), strings.Join(parts, "; "))
	// The taints of dedicated pools keep off whom the document means to.
	if unasked {
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
