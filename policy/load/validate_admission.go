package load

import "github.com/kubectl-sched/kubectl-sched/policy"

// admission checks where no admission policy acts. A namespace is exempt by its
// name alone: the API server selects namespaces by labels, which have no globs.
func (s subject) admission(a *policy.Admission) {
	if a == nil || a.Exempt == nil {
		return
	}
	path := []string{"admission", "exempt", "namespaces"}
	s.namespaces(path, a.Exempt.Namespaces)
	for i, name := range a.Exempt.Namespaces {
		if isGlob(name) {
			s.bad("policy/bad-name", join(path, nth(i)), "%q is a pattern, and namespaces are exempt by their names alone; list them", name)
		}
	}
}
