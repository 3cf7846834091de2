package compiler_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/internal/workload/ownership"
	"github.com/kubectl-sched/kubectl-sched/policy"
)

// TestRawOwnership checks that a raw value which an earlier run wrote does not
// stand in the way of another, and that somebody's edit of it does.
func TestRawOwnership(t *testing.T) {
	t.Parallel()
	const pointer = "/spec/template/spec/runtimeClassName"
	for _, test := range []struct {
		name   string
		object string
		record *ownership.Record
		raw    map[string]any
		rules  []string
	}{
		{"nothing there", "", nil, map[string]any{"runtimeClassName": "kata"}, nil},
		{"the same of theirs", "kata", nil, nil, nil},
		{"another of theirs", "runc", nil, nil, []string{"compile/contradiction"}},
		{"the same of ours", "kata", &ownership.Record{Fields: []ownership.Field{{Path: pointer, Wrote: "kata"}}}, map[string]any{"runtimeClassName": "kata"}, nil},
		{"another of ours", "gvisor", &ownership.Record{Fields: []ownership.Field{{Path: pointer, Wrote: "gvisor"}}}, map[string]any{"runtimeClassName": "kata"}, nil},
		{"ours, edited since", "runc", &ownership.Record{Fields: []ownership.Field{{Path: pointer, Wrote: "gvisor"}}}, nil, []string{"compile/contradiction"}},
		{"ours over theirs", "gvisor", &ownership.Record{Fields: []ownership.Field{{Path: pointer, Before: "runc", Wrote: "gvisor"}}}, nil, []string{"compile/contradiction"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			o := object(t, workload.PodFields{})
			if test.object != "" {
				o["spec"].(map[string]any)["template"] = podTemplate(map[string]any{"runtimeClassName": test.object})
			}
			if test.record != nil {
				text, err := test.record.Encode()
				if err != nil {
					t.Fatal(err)
				}
				o["metadata"].(map[string]any)["annotations"] = map[string]any{ownership.Annotation: text}
			}
			w := fromObject(t, o)
			plan, findings := compiler.Compile(request(&policy.Placement{Policies: []policy.Policy{{
				Name: "p", Level: policy.Mandatory, Positions: anywhere("policies", 0),
				Raw: &policy.Raw{Pod: map[string]any{"runtimeClassName": "kata"}},
			}}}, nil, w))
			var rules []string
			for _, f := range findings {
				rules = append(rules, f.Rule)
			}
			if diff := cmp.Diff(test.rules, rules); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.raw, plan.Changes[0].After.Raw); diff != "" {
				t.Errorf("raw (-want +got):\n%s", diff)
			}
		})
	}
}
