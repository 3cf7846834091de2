package apply

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/internal/cluster/trim"
)

// stuckPods are the pods of one workload that have no node, by what the
// scheduler says of them.
type stuckPods struct{ reasons []stuckReason }

// stuckReason is one thing that the scheduler says of some pods.
type stuckReason struct {
	// message is the scheduler's own.
	message string
	pods    int
}

// stuckIn groups the pods that the scheduler has looked at and not placed; nil
// for none.
func stuckIn(pods []*corev1.Pod) *stuckPods {
	counts := map[string]int{}
	for _, pod := range pods {
		if message, ok := unplaced(pod); ok {
			counts[message]++
		}
	}
	if len(counts) == 0 {
		return nil
	}
	s := &stuckPods{}
	for message, n := range counts {
		s.reasons = append(s.reasons, stuckReason{message, n})
	}
	slices.SortFunc(s.reasons, func(a, b stuckReason) int {
		return cmp.Or(cmp.Compare(b.pods, a.pods), cmp.Compare(a.message, b.message))
	})
	return s
}

// unplaced returns why the pod has no node; false for one that has, or that the
// scheduler has not looked at yet.
func unplaced(pod *corev1.Pod) (string, bool) {
	if pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil || trim.Ended(pod) {
		return "", false
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return reasonText(c.Message), true
		}
	}
	return "", false
}

// reasonText is the scheduler's message without what it adds about preemption,
// which repeats in other words that nothing would help.
func reasonText(message string) string {
	message, _, _ = strings.Cut(message, " preemption: ")
	message = strings.ReplaceAll(message, " no new claims to deallocate,", "")
	return strings.TrimRight(strings.TrimSpace(message), ".,")
}

// String says how many pods have no node, and why.
func (s *stuckPods) String() string {
	parts := make([]string, len(s.reasons))
	for i, r := range s.reasons {
		word := "pods have"
		if r.pods == 1 {
			word = "pod has"
		}
		parts[i] = fmt.Sprintf("%d %s no node", r.pods, word)
		if r.message != "" {
			parts[i] += ", because the scheduler says: " + r.message
		}
	}
	return strings.Join(parts, "; ")
}

// asksFor tells by the words of the scheduler's plugins (ErrReason… in
// pkg/scheduler/framework/plugins) which field of the pod made it say no.
var asksFor = []struct{ words, field string }{
	{"node affinity/selector", "nodeSelector"},
	{"node affinity/selector", "nodeAffinity"},
	{"topology spread constraints", "topologySpreadConstraints"},
	{"pod anti-affinity rules", "podAntiAffinity"},
	{"anti-affinity rules", "podAntiAffinity"},
	{"pod affinity rules", "podAffinity"},
}

// origins returns the policies' lines that ask for what fails: those of the
// fields that the scheduler's messages speak of. They are the workload's, by
// the JSON pointer of the field.
func (s *stuckPods) origins(byField map[string][]compiler.Origin) []compiler.Origin {
	var found []compiler.Origin
	for _, r := range s.reasons {
		for _, a := range asksFor {
			if !strings.Contains(r.message, a.words) {
				continue
			}
			for at, origins := range byField {
				// What a policy only prefers rules no node out.
				if steps := splitPointer(at); slices.Contains(steps, a.field) && !slices.Contains(steps, "preferredDuringSchedulingIgnoredDuringExecution") {
					found = append(found, origins...)
				}
			}
		}
	}
	return uniqueOrigins(found)
}
