package podstatus

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// change is what is to be written on the status of a pod: conditions, or the node
// that it is expected on, and not both.
type change struct {
	conditions []corev1.PodCondition // whole, so that a later one covers it
	nominated  string
}

// parseChange returns what the strategic merge patch changes on pod, and whether
// that may be written later. Something else than those two may not, nor may both in
// one: that is a preemption's result, which must outlive the scheduler.
func parseChange(patch []byte, pod *corev1.Pod) (change, bool) {
	var document struct {
		Status map[string]json.RawMessage `json:"status"`
	}
	var top map[string]json.RawMessage
	if json.Unmarshal(patch, &top) != nil || json.Unmarshal(patch, &document) != nil || len(top) != 1 {
		return change{}, false
	}
	var c change
	for field, value := range document.Status {
		switch field {
		case "$setElementOrder/conditions": // an order that does not matter
		case "conditions":
			var ok bool
			if c.conditions, ok = mergeConditions(value, pod); !ok {
				return change{}, false
			}
		case "nominatedNodeName":
			if json.Unmarshal(value, &c.nominated) != nil || c.nominated == "" {
				return change{}, false
			}
		default:
			return change{}, false
		}
	}
	return c, (len(c.conditions) > 0) != (c.nominated != "")
}

// mergeConditions returns the conditions that the patch has, with what it leaves
// out as it is on pod.
func mergeConditions(patch json.RawMessage, pod *corev1.Pod) ([]corev1.PodCondition, bool) {
	var entries []json.RawMessage
	if json.Unmarshal(patch, &entries) != nil {
		return nil, false
	}
	var merged []corev1.PodCondition
	for _, entry := range entries {
		var head struct {
			Type      corev1.PodConditionType `json:"type"`
			Directive *string                 `json:"$patch"`
		}
		if json.Unmarshal(entry, &head) != nil || head.Type == "" || head.Directive != nil {
			return nil, false
		}
		condition := corev1.PodCondition{Type: head.Type}
		if i := indexOf(pod.Status.Conditions, head.Type); i >= 0 {
			condition = pod.Status.Conditions[i]
		}
		if json.Unmarshal(entry, &condition) != nil {
			return nil, false
		}
		merged = append(merged, condition)
	}
	return merged, true
}

func indexOf(conditions []corev1.PodCondition, kind corev1.PodConditionType) int {
	return slices.IndexFunc(conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
}

// on returns pod with the change.
func (c change) on(pod *corev1.Pod) *corev1.Pod {
	pod = pod.DeepCopy()
	for _, condition := range c.conditions {
		if i := indexOf(pod.Status.Conditions, condition.Type); i >= 0 {
			pod.Status.Conditions[i] = condition
		} else {
			pod.Status.Conditions = append(pod.Status.Conditions, condition)
		}
	}
	if c.nominated != "" {
		pod.Status.NominatedNodeName = c.nominated
	}
	return pod
}

// patch returns the strategic merge patch that makes the change on the pod of that
// UID, and on no other of its name.
func (c change) patch(uid types.UID) ([]byte, error) {
	status := map[string]any{}
	if len(c.conditions) > 0 {
		status["conditions"] = c.conditions
	}
	if c.nominated != "" {
		status["nominatedNodeName"] = c.nominated
	}
	return json.Marshal(map[string]any{"metadata": map[string]any{"uid": uid}, "status": status})
}
