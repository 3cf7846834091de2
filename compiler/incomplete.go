package compiler

import (
	"slices"

	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// unanswerable are the rules whose findings no other policy or workload can
// answer: more of them only ask for more. A toleration, a grant, a class or a
// member of a gang, in contrast, may stand in what is missing.
var unanswerable = map[string]bool{
	"policy/expired-exception":        true,
	"compile/breaks-selector":         true,
	"compile/contradiction":           true,
	"compile/exception-without-clock": true,
	"compile/inexpressible":           true,
	"compile/interrupted":             true,
	"compile/no-own-labels":           true,
	"compile/old-cluster":             true,
	"compile/overrides-disagree":      true,
	"compile/preemption-of-class":     true,
	"compile/spread-misses-own-pods":  true,
	"compile/too-large":               true,
	"compile/too-many-terms":          true,
	"compile/unknown-container":       true,
	"compile/unsupported-field":       true,
	"compile/volume-elsewhere":        true,
	"compile/when-unknown":            true,
	"workload/contradiction":          true,
	"workload/no-namespace":           true,
}

// whateverElse keeps the findings that are there whatever an incomplete request lacks.
func whateverElse(findings diag.Findings) diag.Findings {
	return slices.DeleteFunc(findings, func(f diag.Finding) bool { return !unanswerable[f.Rule] })
}
