package engine

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// groups numbers the nodes so that those with the same number are equal to a plugin
// that counts pods by domain, as long as none of the pods that it counts is on them:
// they differ in nothing but their names and labels that no other node has. The
// domain of such a label has no node but one without any such pod, so that there,
// too, nothing is counted. What such a plugin says of one holds for all.
//
// That is not so for pods that pick nodes by name or by such a label: its key is in
// unique; see alike.
func groups(nodes []fwk.NodeInfo) (out []int, unique map[string]bool) {
	type label struct{ key, value string }
	seen := map[label]int{}
	for _, node := range nodes {
		for key, value := range node.Node().Labels {
			seen[label{key, value}]++
		}
	}
	unique = map[string]bool{}
	for l, n := range seen {
		if n == 1 {
			unique[l.key] = true
		}
	}
	numbers := map[string]int{}
	out = make([]int, len(nodes))
	var b strings.Builder
	for i, info := range nodes {
		node := info.Node()
		b.Reset()
		for _, key := range slices.Sorted(maps.Keys(node.Labels)) {
			if value := node.Labels[key]; seen[label{key, value}] > 1 {
				fmt.Fprintf(&b, "%q=%q ", key, value)
			} else {
				fmt.Fprintf(&b, "%q ", key)
			}
		}
		taints := slices.SortedFunc(slices.Values(node.Spec.Taints), func(x, y corev1.Taint) int {
			return cmp.Or(cmp.Compare(x.Key, y.Key), cmp.Compare(x.Value, y.Value), cmp.Compare(x.Effect, y.Effect))
		})
		for _, taint := range taints {
			fmt.Fprintf(&b, "%q:%q:%q ", taint.Key, taint.Value, taint.Effect)
		}
		fmt.Fprint(&b, node.Spec.Unschedulable)
		number, ok := numbers[b.String()]
		if !ok {
			number = len(numbers)
			numbers[b.String()] = number
		}
		out[i] = number
	}
	return out, unique
}

// keysOnAll returns the keys of labels that all of the nodes have.
func keysOnAll(nodes []fwk.NodeInfo) map[string]bool {
	count := map[string]int{}
	for _, node := range nodes {
		for key := range node.Node().Labels {
			count[key]++
		}
	}
	onAll := map[string]bool{}
	for key, n := range count {
		onAll[key] = n == len(nodes)
	}
	return onAll
}

// ownHostnames reports whether no two of the nodes have the same hostname in their
// labels.
func ownHostnames(nodes []fwk.NodeInfo) bool {
	seen := map[string]bool{}
	for _, node := range nodes {
		name, ok := node.Node().Labels[corev1.LabelHostname]
		if !ok {
			continue
		}
		if seen[name] {
			return false
		}
		seen[name] = true
	}
	return true
}

// alike reports whether the pod cannot tell nodes of a group apart: it picks none by
// name, nor by a label that the group's nodes may not share, whose keys are in unique.
func alike(pod *corev1.Pod, unique map[string]bool) bool {
	for key := range pod.Spec.NodeSelector {
		if unique[key] {
			return false
		}
	}
	a := pod.Spec.Affinity
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return true
	}
	for _, term := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		if len(term.MatchFields) > 0 {
			return false
		}
		for _, e := range term.MatchExpressions {
			if unique[e.Key] {
				return false
			}
		}
	}
	return true
}
