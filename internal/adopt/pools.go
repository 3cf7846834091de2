package adopt

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-sched/kubectl-sched/compiler/nodeexpr"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// pool is a dedicated pool that the pieces show.
type pool struct {
	policy.Pool
	key, value string
	taint      corev1.Taint
	why        string
	// used says that a policy names it; dropped that it did not come out right.
	used, dropped bool
}

func (w *work) findPools() {}

func (w *work) requireByPool(nodeexpr.Requirement) []phrase { return nil }

func (w *work) tolerateByPool(*template, corev1.Toleration) []phrase { return nil }

// policyPools are the pools as the document has them: those that policies name, or
// all that were found.
func (w *work) policyPools(all bool) []policy.Pool { return nil }

// dropPools gives up the pools that an error is about.
func (c *comparison) dropPools(f diag.Finding) {}

// poolComment is what the pool's comment says.
func (w *work) poolComment(name string) []string { return nil }

// reportedPools are the pools that are proposed.
func (w *work) reportedPools() []Pool { return nil }
