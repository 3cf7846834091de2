package load

import "github.com/kubectl-sched/kubectl-sched/policy/diag"

func validate(m *merged) diag.Findings { return nil }
