package adopt

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-sched/kubectl-sched/policy"
)

// tolerate says a toleration by tolerate.
func tolerate(t corev1.Toleration) ([]phrase, string) {
	exists := t.Operator == corev1.TolerationOpExists
	says := "tolerates " + describeToleration(t)
	switch {
	case t.Operator != "" && t.Operator != corev1.TolerationOpEqual && !exists:
		return nil, fmt.Sprintf("tolerate does not compare: operator %s", t.Operator)
	case t.Key == "" && exists && t.Effect == "" && t.TolerationSeconds == nil:
		return []phrase{intent("tolerate-all", says, false, func(p *policy.Policy) bool {
			if p.Tolerate != nil && len(p.Tolerate.Taints)+len(p.Tolerate.Pools) > 0 {
				return false
			}
			p.Tolerate = &policy.Tolerate{All: true}
			return true
		})}, ""
	case t.Key == "":
		return nil, "tolerate does not say every taint of one effect, or for a time"
	case t.TolerationSeconds != nil && *t.TolerationSeconds < 0:
		return nil, "tolerate takes no negative seconds"
	case t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute:
		return nil, "seconds count for taints that evict, and this names another effect, or none"
	}
	taint := policy.Taint{Key: t.Key, Effect: string(t.Effect), Seconds: t.TolerationSeconds}
	if !exists {
		taint.Value = &t.Value
	}
	name := taintName(t)
	return []phrase{intent("tolerate-"+shortTaintName(t), says, false, func(p *policy.Policy) bool {
		to := policy.Tolerate{}
		if p.Tolerate != nil {
			to = *p.Tolerate
		}
		if _, there := to.Taints[name]; there || to.All {
			return false
		}
		to.Taints = with(to.Taints, name, taint)
		p.Tolerate = &to
		return true
	})}, "tolerate does not give it back as it was"
}

// shortTaintName is the taint's value or, without one, the last part of its key.
func shortTaintName(t corev1.Toleration) string {
	key := word(t.Key[strings.LastIndexByte(t.Key, '/')+1:])
	if t.Value != "" && t.Value != "true" {
		return word(t.Value)
	}
	return key
}

// taintName is the name, for people, of an entry.
func taintName(t corev1.Toleration) string {
	parts := []string{t.Key[strings.LastIndexByte(t.Key, '/')+1:]}
	if t.Value != "" && t.Value != "true" {
		parts = append(parts, t.Value)
	}
	switch t.Effect {
	case corev1.TaintEffectNoExecute:
		parts = append(parts, "evicting")
	case corev1.TaintEffectPreferNoSchedule:
		parts = append(parts, "soft")
	default:
	}
	return word(strings.Join(parts, "-"))
}

// classOf says a PriorityClass by priority.
func classOf(c priority) ([]phrase, string) {
	if word(c.Class) != c.Class {
		return nil, "priority takes a class whose name is a DNS label"
	}
	p := policy.Priority{Class: c.Class}
	switch c.Preemption {
	case "":
	case string(corev1.PreemptNever):
		p.Preemption = "never"
	default:
		return nil, "priority says only that the pods never preempt; otherwise that is the class's"
	}
	return []phrase{intent("priority-"+c.Class, "priority class "+c.Class, false, func(policy *policy.Policy) bool {
		if policy.Priority != nil {
			return false
		}
		policy.Priority = &p
		return true
	})}, "priority does not give it back as it was"
}
