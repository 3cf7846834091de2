package compiler

import "github.com/kubectl-sched/kubectl-sched/policy"

// accountPattern is a service account; a nil namespace is any. The two parts are
// matched apart, so that no glob reaches from one into the other.
type accountPattern struct {
	namespace *pattern
	name      pattern
}

func accountPatterns(texts []string) []accountPattern {
	if texts == nil {
		return nil
	}
	out := make([]accountPattern, len(texts))
	for i, t := range texts {
		namespace, name, ok := policy.SplitAccount(t)
		out[i].name = pattern{name, isGlob(name)}
		if ok {
			out[i].namespace = &pattern{namespace, isGlob(namespace)}
		}
	}
	return out
}

func (a accountPattern) matches(namespace, name string) bool {
	return (a.namespace == nil || a.namespace.matches(namespace)) && a.name.matches(name)
}
