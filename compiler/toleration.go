package compiler

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/kubectl-sched/kubectl-sched/policy"
)

// tolerates reports whether any of the tolerations bears the taint. The
// comparison operators count as off, as they are by default.
func tolerates(tolerations []corev1.Toleration, t corev1.Taint) bool {
	return slices.ContainsFunc(tolerations, func(tol corev1.Toleration) bool {
		return tol.ToleratesTaint(klog.Logger{}, &t, false)
	})
}

// tolerationOf returns the toleration that a policy's taint names.
func tolerationOf(t policy.Taint) corev1.Toleration {
	out := corev1.Toleration{
		Key:               t.Key,
		Operator:          corev1.TolerationOpExists,
		Effect:            corev1.TaintEffect(t.Effect),
		TolerationSeconds: t.Seconds,
	}
	if t.Value != nil {
		out.Operator, out.Value = corev1.TolerationOpEqual, *t.Value
	}
	return out
}

// exactToleration returns the toleration of precisely this taint.
func exactToleration(t corev1.Taint) corev1.Toleration {
	return corev1.Toleration{Key: t.Key, Operator: corev1.TolerationOpEqual, Value: t.Value, Effect: t.Effect}
}

// covers reports whether whatever b tolerates a tolerates too, and for as long.
func covers(a, b corev1.Toleration) bool {
	if !sameSeconds(a.TolerationSeconds, b.TolerationSeconds) || a.Effect != "" && a.Effect != b.Effect {
		return false
	}
	if a.Operator == corev1.TolerationOpExists {
		return a.Key == "" || a.Key == b.Key
	}
	return a.Key == b.Key && operatorOf(a) == operatorOf(b) && a.Value == b.Value
}

// strictlyCovers reports whether a tolerates more than b.
func strictlyCovers(a, b corev1.Toleration) bool { return covers(a, b) && !covers(b, a) }

func operatorOf(t corev1.Toleration) corev1.TolerationOperator {
	return cmp.Or(t.Operator, corev1.TolerationOpEqual)
}

func sameSeconds(a, b *int64) bool {
	return a == b || a != nil && b != nil && *a == *b
}

// compareTolerations orders tolerations by key, value, effect and time.
func compareTolerations(a, b corev1.Toleration) int {
	seconds := func(t corev1.Toleration) int64 {
		if t.TolerationSeconds == nil {
			return -1
		}
		return *t.TolerationSeconds
	}
	return cmp.Or(
		cmp.Compare(a.Key, b.Key),
		cmp.Compare(operatorOf(a), operatorOf(b)),
		cmp.Compare(a.Value, b.Value),
		cmp.Compare(a.Effect, b.Effect),
		cmp.Compare(seconds(a), seconds(b)),
	)
}

func describeTaint(t corev1.Taint) string {
	if t.Value == "" {
		return fmt.Sprintf("%s:%s", t.Key, t.Effect)
	}
	return fmt.Sprintf("%s=%s:%s", t.Key, t.Value, t.Effect)
}

func describeTaints(ts []corev1.Taint) string {
	out := make([]string, len(ts))
	for i, t := range ts {
		out[i] = describeTaint(t)
	}
	return strings.Join(out, ", ")
}
