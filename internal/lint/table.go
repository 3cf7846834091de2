package lint

import (
	"slices"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// Needs is what a rule must know of to say anything.
type Needs string

// What a rule may need.
const (
	// Files are policies and manifests alone.
	Files Needs = "files"
	// Nodes are the nodes of a cluster besides, with labels and taints.
	Nodes Needs = "nodes"
	// Cluster is a whole snapshot: pods, quotas and budgets too.
	Cluster Needs = "cluster"
)

// Rule is one kind of finding.
type Rule struct {
	// ID is the rule of its findings, "area/kebab-name".
	ID string
	// Severity is the gravest that its findings have.
	Severity diag.Severity
	// Doc says what is wrong and what comes of it, and Fix what to do, in sentences.
	Doc, Fix string
	// Needs is empty for what other parts of the program find.
	Needs Needs

	// each looks at a single pod template, run at all there is; a rule has one of them.
	each func(*template)
	run  func(*judgement)
}

// areaScheduler is the area of the rules for a scheduler's own configuration.
const areaScheduler = "scheduler"

// Area is the part of the ID before the slash.
func (r Rule) Area() string {
	area, _, _ := strings.Cut(r.ID, "/")
	return area
}

// Rules returns the rules that Check runs, in the order of the documentation.
func Rules() []Rule {
	return slices.Concat(spreadRules(), podAffinityRules(), nodeRules(), preferenceRules(), tolerationRules(), rolloutRules(), gangRules(), priorityRules(), ownerRules(), clusterRules(), policyRules(), schedulerRules())
}

// Documented returns every rule that any finding of the program has: Rules, and
// those that are found where something is read, compiled or applied.
func Documented() []Rule {
	return slices.Concat(Rules(), elsewhere())
}
