package apply

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// Scope is what a set speaks for: the policy folders that it is made from, and
// the namespaces whose workloads it may touch. Only a run that covers the scope
// of its set knows that what it does not mention is to go.
type Scope struct {
	// Folders are the policy folders, relative to the root of their repository
	// where they are in one, sorted.
	Folders []string `json:"folders"`
	// Namespaces are sorted; empty means all.
	Namespaces []string `json:"namespaces,omitempty"`
}

// String returns the scope for messages.
func (s Scope) String() string {
	return fmt.Sprintf("policies in %s, %s", strings.Join(s.Folders, ", "), s.Where())
}

// Where names the namespaces for messages: "all namespaces".
func (s Scope) Where() string {
	switch len(s.Namespaces) {
	case 0:
		return "all namespaces"
	case 1:
		return "namespace " + s.Namespaces[0]
	}
	return "namespaces " + strings.Join(s.Namespaces, ", ")
}

// coversNamespaces reports whether s may touch every namespace that t may.
func (s Scope) coversNamespaces(t Scope) bool {
	if len(s.Namespaces) == 0 {
		return true
	}
	return len(t.Namespaces) > 0 && subset(t.Namespaces, s.Namespaces)
}

func subset(small, large []string) bool {
	return !slices.ContainsFunc(small, func(s string) bool { return !slices.Contains(large, s) })
}

// fit says whether a run of scope s may act on a set with the recorded scope,
// and whether it may prune.
//
// The same folders in fewer namespaces do what they say and leave the rest
// alone. Other folders are refused: each workload holds the fields of all the
// folders of its set, so a run that reads only some would take the others' away.
func (s Scope) fit(set Set, recorded Scope, change bool) (prune bool, findings diag.Findings) {
	switch {
	case change:
		return true, nil
	case !slices.Equal(s.Folders, recorded.Folders):
		return false, diag.Findings{{Rule: "apply/other-scope", Severity: diag.Error, Subject: "set " + set.Name, Message: fmt.Sprintf(
			"the set is recorded for %s, and this run reads %s; give the same folders, or --change-scope to record this run's, or another --set",
			recorded, s)}}
	case !recorded.coversNamespaces(s):
		return false, diag.Findings{{Rule: "apply/other-scope", Severity: diag.Error, Subject: "set " + set.Name, Message: fmt.Sprintf(
			"the set is recorded for %s, and this run is for %s; give --change-scope to widen the set to it, or another --set",
			recorded, s)}}
	case !s.coversNamespaces(recorded):
		return false, diag.Findings{{Rule: "apply/not-pruned", Severity: diag.Info, Subject: "set " + set.Name, Message: fmt.Sprintf(
			"the run covers %s, less than the set's %s; nothing is pruned outside of it", s, recorded)}}
	}
	return true, nil
}
