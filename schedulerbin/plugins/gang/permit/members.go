package permit

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gangkey"
)

// byGang is the index of pods by the gang that they are members of.
const byGang = "kubectl-sched.github.io/gang"

// indexByGang is the index's function.
func indexByGang(object any) ([]string, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return nil, nil
	}
	if gang, ok := gangOf(pod); ok {
		return []string{gang.String()}, nil
	}
	return nil, nil
}

// members are the members of one gang that the scheduler's informer has, by name.
// Finished pods are not among them: the group's minCount shrinks by those.
type members []*corev1.Pod

// members returns the members of the gang.
func (s *State) members(gang types.NamespacedName) members {
	objects, err := s.pods.ByIndex(byGang, gang.String())
	if err != nil {
		return nil // there is such an index: attach made it
	}
	all := make(members, 0, len(objects))
	for _, object := range objects {
		if pod, ok := object.(*corev1.Pod); ok {
			all = append(all, pod)
		}
	}
	slices.SortFunc(all, func(a, b *corev1.Pod) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID)) })
	return all
}

// there returns the members that have a node or can get one.
func (m members) there() members { return slices.DeleteFunc(slices.Clone(m), isOut) }

// isOut reports whether a member counts for nothing: it is leaving, or somebody
// holds it back by a scheduling gate.
func isOut(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil || gangkey.Gated(pod)
}

// minCount returns how many members of the group must have a node.
func minCount(group *schedulingv1beta1.PodGroup) int {
	if group.Spec.SchedulingPolicy.Gang == nil {
		return 0
	}
	return int(group.Spec.SchedulingPolicy.Gang.MinCount)
}

// count returns how many members have a node for good, in the API or by Reserve, and
// those that have none and can get one. The caller holds s.mu.
func (g *gang) count(all members) (placed int, open members) {
	for _, pod := range all {
		switch {
		case isOut(pod):
		case pod.Spec.NodeName != "" || g.reserved[pod.UID] == waits || g.reserved[pod.UID] == allowed:
			placed++
		case g.reserved[pod.UID] == leaves:
		default:
			open = append(open, pod)
		}
	}
	return placed, open
}

// byKey returns pods as handle.Activate takes them.
func byKey(pods members) map[string]*corev1.Pod {
	all := make(map[string]*corev1.Pod, len(pods))
	for _, pod := range pods {
		all[pod.Namespace+"/"+pod.Name] = pod
	}
	return all
}
