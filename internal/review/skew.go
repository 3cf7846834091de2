package review

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-sched/kubectl-sched/internal/preview"
	"github.com/kubectl-sched/kubectl-sched/internal/simulate"
)

// spread counts pods over domains.
type spread struct{ nodes []*corev1.Node }

func newSpread(nodes []*corev1.Node) spread { return spread{nodes} }

// changes returns the skews of a workload that are other than before: over zones, and
// over what its spread constraints name.
func (s spread) changes(name string, base, head []simulate.Pod) []Skew {
	keys := map[string]bool{corev1.LabelTopologyZone: false}
	for _, list := range [][]simulate.Pod{base, head} {
		for _, p := range list[:min(1, len(list))] { // they have the same template
			for _, c := range p.Pod.Spec.TopologySpreadConstraints {
				keys[c.TopologyKey] = true
			}
		}
	}
	var out []Skew
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		k := Skew{Workload: name, Key: key, Asked: keys[key], Before: s.over(key, base), After: s.over(key, head)}
		if k.Before != k.After {
			out = append(out, k)
		}
	}
	return out
}

// over is the difference between the domains with the most and the fewest of the
// pods, of those domains with a node that the pods' own affinity and tolerations let
// them onto.
func (s spread) over(key string, list []simulate.Pod) int {
	if len(list) == 0 {
		return 0
	}
	pod := list[len(list)-1].Pod
	count, of := map[string]int{}, map[string]string{}
	for _, n := range s.nodes {
		domain, ok := n.Labels[key]
		if !ok {
			continue
		}
		of[n.Name] = domain
		if _, counted := count[domain]; !counted && preview.MayRun(pod, n) {
			count[domain] = 0
		}
	}
	for _, p := range list {
		if domain, ok := of[p.After]; ok {
			count[domain]++
		}
	}
	if len(count) == 0 {
		return 0
	}
	values := slices.Collect(maps.Values(count))
	return slices.Max(values) - slices.Min(values)
}
