// Package compiler turns placement policies into the Kubernetes fields that
// carry them out.
//
// Compile maps a Placement, workloads and a cluster's Capabilities to a Plan.
// It is pure: no clock, no cluster, no file, and no order of a map shows in
// what it returns. One file holds one intent; table.go lists them. The package
// must not know where manifests come from, how plans are written out (emit) or
// how they reach a cluster (apply).
package compiler

import "github.com/kubectl-sched/kubectl-sched/policy/diag"

// Compile returns the Plan for the request, and everything that a user must
// mend or know. The Plan is complete only if no finding is an Error.
func Compile(r Request) (*Plan, diag.Findings) {
	return &Plan{Cluster: r.Capabilities.Cluster}, nil
}
