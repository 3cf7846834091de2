package lint

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

func tolerationRules() []Rule {
	return []Rule{
		{
			ID: "workload/tolerates-all", Severity: diag.Warning, Needs: Files, each: toleratesAll,
			Doc: "A toleration without a key tolerates every taint: those of dedicated pools, of control planes, and of nodes that fail or are drained. For DaemonSets, and in kube-system, nothing is said.",
			Fix: "Tolerate the taints that are meant, by key.",
		},
		{
			ID: "workload/toleration-idle", Severity: diag.Warning, Needs: Nodes, each: tolerationIdle,
			Doc: "A toleration that meets no taint of any node, NodePool or dedicated pool does nothing. It is a warning where it looks misspelt, or where only value or effect keep it from a taint; otherwise only a note, since the nodes may be yet to come.",
			Fix: "Write the taint as the nodes have it, or leave the toleration out.",
		},
		{
			ID: "workload/daemonset-skips", Severity: diag.Warning, Needs: Nodes, each: daemonSetSkips,
			Doc: "A DaemonSet does not count the nodes whose taints it does not tolerate, and looks healthy without them.",
			Fix: "Tolerate the taint, or select the other nodes.",
		},
	}
}

func toleratesAll(t *template) {
	if t.isDaemonSet() || t.w.Namespace == "kube-system" || t.w.Controller != "" {
		return
	}
	for i, tol := range t.t.Pods.Tolerations {
		if tol.Key == "" && tol.Operator == corev1.TolerationOpExists {
			effect := "every taint"
			if tol.Effect != "" {
				effect = "every taint with effect " + string(tol.Effect)
			}
			t.report("", fmt.Sprintf("it tolerates %s, those of dedicated and of failing nodes too; tolerate those that are meant, by key", effect), workload.Tolerations, i)
		}
	}
}

// wellKnownTaints are put on nodes now and then, by whoever runs them.
func wellKnownTaint(key string) bool {
	return isTransient(key) || strings.HasPrefix(key, "node-role.kubernetes.io/") || key == "CriticalAddonsOnly" ||
		slices.Contains([]string{"ToBeDeletedByClusterAutoscaler", "DeletionCandidateOfClusterAutoscaler", "karpenter.sh/disrupted", "karpenter.sh/unregistered"}, key)
}

func tolerationIdle(t *template) {
	taints := t.taints()
	for i, tol := range t.t.Pods.Tolerations {
		if tol.Key == "" || wellKnownTaint(tol.Key) {
			continue
		}
		keys := map[string]bool{}
		var same *corev1.Taint
		met := slices.ContainsFunc(taints, func(taint corev1.Taint) bool {
			keys[taint.Key] = true
			if taint.Key == tol.Key {
				same = &taint
			}
			return tol.ToleratesTaint(klog.Logger{}, &taint, false)
		})
		if met {
			continue
		}
		near, isNear := diag.Nearest(tol.Key, sortedKeys(keys))
		switch {
		case same != nil:
			t.report("", fmt.Sprintf("it tolerates no taint: nodes have %s, with another value or effect; write it so", same.ToString()), workload.Tolerations, i)
		case isNear:
			t.report("", fmt.Sprintf("no node has a taint %q; did you mean %q?", tol.Key, near), workload.Tolerations, i, "key")
		default:
			t.report(diag.Info, fmt.Sprintf("no node has a taint %q, so that the toleration does nothing; leave it out if no such node is to come", tol.Key), workload.Tolerations, i)
		}
	}
}

// taints are all that nodes have, or are to be given.
func (j *judgement) taints() []corev1.Taint {
	if j.allTaints != nil {
		return j.allTaints
	}
	seen := map[corev1.Taint]bool{}
	out := []corev1.Taint{}
	add := func(taints ...corev1.Taint) {
		for _, t := range taints {
			t.TimeAdded = nil
			if !seen[t] {
				seen[t], out = true, append(out, t)
			}
		}
	}
	for _, n := range j.caps().Nodes {
		add(n.Taints...)
	}
	for _, p := range j.caps().NodePools {
		add(p.Taints...)
		add(p.StartupTaints...)
	}
	for _, p := range j.pools() {
		if t := dedicatedTaint(p); t != nil {
			add(*t)
		}
	}
	j.allTaints = out
	return out
}

// daemonSetSkips is for DaemonSets without a policy; of the others the compiler
// says the same at the policy's line.
func daemonSetSkips(t *template) {
	if !t.isDaemonSet() || t.change != nil {
		return
	}
	network, _ := workload.Lookup(t.w.Object, append(t.t.PodSpec[:len(t.t.PodSpec):len(t.t.PodSpec)], "hostNetwork")...)
	selected, skipped := compiler.DaemonSetNodes(t.pods, network == true, t.caps().Nodes)
	if len(skipped) == 0 {
		return
	}
	t.report("", fmt.Sprintf("the DaemonSet runs on %d of the %d nodes that it is for, and skips %s; tolerate the taint, or select the other nodes", selected-len(skipped), selected, compiler.DescribeSkipped(skipped)),
		workload.Tolerations)
}
