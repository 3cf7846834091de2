package workload

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// rolloutRule is how the controller of a kind replaces pods.
type rolloutRule int

const (
	noRollout rolloutRule = iota
	deploymentRollout
	statefulSetRollout
	daemonSetRollout
)

// resolve returns the rollout of an object, its numbers resolved as the
// controller of the kind does; nil where the kind has none.
func (r rolloutRule) resolve(object map[string]any, replicas *int32) *Rollout {
	desired := 1
	if replicas != nil {
		desired = int(*replicas)
	}
	field := "updateStrategy"
	if r == deploymentRollout {
		field = "strategy"
	}
	out := &Rollout{Strategy: "RollingUpdate"}
	if s, _ := Lookup(object, "spec", field, "type"); s != nil {
		if text, ok := s.(string); ok && text != "" {
			out.Strategy = text
		}
	}
	number := func(name string, otherwise intstr.IntOrString, up bool) int32 {
		v, _ := Lookup(object, "spec", field, "rollingUpdate", name)
		n, err := intstr.GetScaledValueFromIntOrPercent(intOrPercent(v, otherwise), desired, up)
		if err != nil || n < 0 {
			n, _ = intstr.GetScaledValueFromIntOrPercent(&otherwise, desired, up)
		}
		return int32(n)
	}
	rolling := out.Strategy == "RollingUpdate"
	switch {
	case r == noRollout:
		return nil
	case !rolling:
	case r == deploymentRollout:
		out.MaxSurge = number("maxSurge", intstr.FromString("25%"), true)
		out.MaxUnavailable = number("maxUnavailable", intstr.FromString("25%"), false)
		if out.MaxSurge == 0 && out.MaxUnavailable == 0 {
			// Both may round to nothing; the controller then takes one pod down,
			// or it could never go on.
			out.MaxUnavailable = 1
		}
	case r == statefulSetRollout:
		out.MaxUnavailable = max(1, number("maxUnavailable", intstr.FromInt32(1), false))
	case r == daemonSetRollout:
		// Percentages are of the nodes that run a pod, whose number the object
		// does not know; there is at least one.
		out.MaxSurge = number("maxSurge", intstr.FromInt32(0), true)
		out.MaxUnavailable = number("maxUnavailable", intstr.FromInt32(1), true)
		if out.MaxSurge == 0 && out.MaxUnavailable == 0 {
			out.MaxUnavailable = 1
		}
	}
	return out
}

func intOrPercent(v any, otherwise intstr.IntOrString) *intstr.IntOrString {
	switch v := v.(type) {
	case int64:
		out := intstr.FromInt32(int32(min(max(v, -1), 1<<30)))
		return &out
	case string:
		if strings.HasSuffix(v, "%") {
			out := intstr.FromString(v)
			return &out
		}
	}
	return &otherwise
}
