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
// That is not so for pods that pick nodes by name or by such a label; see alike.
func groups(nodes []fwk.NodeInfo) []int {
	type label struct{ key, value string }
	seen := map[label]int{}
	for _, node := range nodes {
		for key, value := range node.Node().Labels {
			seen[label{key, value}]++
		}
	}
	numbers := map[string]int{}
	out := make([]int, len(nodes))
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
	return out
}

// alike reports whether the pod cannot tell nodes of a group apart: it picks none by
// name, nor by a label that the group's nodes may not share.
func alike(pod *corev1.Pod, nodes []fwk.NodeInfo) bool {
	var keys []string
	for key := range pod.Spec.NodeSelector {
		keys = append(keys, key)
	}
	if a := pod.Spec.Affinity; a != nil && a.NodeAffinity != nil {
		var terms []corev1.NodeSelectorTerm
		if required := a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution; required != nil {
			terms = required.NodeSelectorTerms
		}
		for _, term := range terms {
			if len(term.MatchFields) > 0 {
				return false
			}
			for _, e := range term.MatchExpressions {
				keys = append(keys, e.Key)
			}
		}
	}
	return !slices.ContainsFunc(keys, func(key string) bool { return hasUnique(key, nodes) })
}

// hasUnique reports whether a value of the label is on one node only.
func hasUnique(key string, nodes []fwk.NodeInfo) bool {
	seen := map[string]int{}
	for _, node := range nodes {
		if value, ok := node.Node().Labels[key]; ok {
			seen[value]++
		}
	}
	return slices.Contains(slices.Collect(maps.Values(seen)), 1)
}
