package adopt_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
	"github.com/kubectl-sched/kubectl-sched/internal/adopt"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/test/golden"
)

// TestGolden makes policies of the manifests of each case, with the nodes if there
// are any, and compares them and what is said of them; UPDATE=1 writes both anew.
func TestGolden(t *testing.T) {
	t.Parallel()
	golden.Run(t, func(t *testing.T, input *txtar.Archive) []txtar.File {
		r := adopt.Request{}
		for _, f := range input.Files {
			switch f.Name {
			case "manifests.yaml":
				set, findings := workload.Read(t.Context(), workload.Input{Files: []string{"-"}, Stdin: strings.NewReader(string(f.Data))}, workload.Options{})
				if findings.HasErrors() {
					t.Fatal(findings)
				}
				r.Workloads = set.Workloads
			case "nodes.yaml":
				var nodes []corev1.Node
				if err := yaml.UnmarshalStrict(f.Data, &nodes); err != nil {
					t.Fatal(err)
				}
				r.Capabilities.NodesKnown = true
				for _, n := range nodes {
					r.Capabilities.Nodes = append(r.Capabilities.Nodes, capability.Node{Name: n.Name, Labels: n.Labels, Taints: n.Spec.Taints})
				}
			case "modernize":
				r.Modernize = true
			}
		}
		p := propose(t, r)
		if !r.Modernize {
			roundTrip(t, r.Workloads, p)
		} else {
			loaded(t, p)
		}
		return append(golden.Result("want.cue", string(p.Document)), golden.Result("want", said(p))...)
	})
}

// said writes what is said of a proposal.
func said(p *adopt.Proposal) string {
	var b strings.Builder
	for _, policy := range p.Policies {
		fmt.Fprintf(&b, "%s: %s\n  for %s\n  selected %s, because %s\n", policy.Name, strings.Join(policy.Says, "; "), strings.Join(policy.Workloads, ", "), policy.Selects, policy.Why)
	}
	for _, pool := range p.Pools {
		fmt.Fprintf(&b, "pool %s: %s\n", pool.Name, pool.Why)
	}
	for i, remarks := range [][]adopt.Remark{p.Raw, p.Left, p.Changes} {
		for _, r := range remarks {
			fmt.Fprintf(&b, "%s %s %s of %s at %s: %s\n", []string{"raw", "left", "changed"}[i], r.Field, r.Value, strings.Join(r.Workloads, ", "), r.At.Start, r.Why)
		}
	}
	fmt.Fprintf(&b, "%+v\n", p.Proof)
	return b.String()
}
