package report_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-sched/kubectl-sched/internal/gating"
	"github.com/kubectl-sched/kubectl-sched/internal/report"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gates/condition"
)

func TestGates(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	waits := []gating.Wait{
		{Namespace: "ml", Pod: "train-0", Gate: condition.Prefix + "release", Name: "release", Ours: true, Since: now.Add(-90 * time.Minute), For: condition.KindApproval, Why: "nobody has approved it"},
		{Namespace: "ml", Pod: "train-0", Gate: "example.com/data", Name: "example.com/data", Since: now.Add(-90 * time.Minute), By: "loader"},
		{Namespace: "ml", Pod: "train-1", Gate: condition.Prefix + "quota", Name: "quota", Ours: true, Since: now.Add(-5 * time.Second), For: condition.KindQuota},
	}
	var out strings.Builder
	if err := report.Gates(&out, report.Text, waits, false, report.Options{Now: now}); err != nil {
		t.Fatal(err)
	}
	want := `POD      GATE              FOR  WHY
train-0  release           90m  nobody has approved it
train-0  example.com/data  90m  not ours; put in by loader
train-1  quota             5s   waits for quota; the bundled scheduler has said
                                nothing of it yet: does it run?
`
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	out.Reset()
	if err := report.Gates(&out, report.JSON, waits[:1], true, report.Options{}); err != nil {
		t.Fatal(err)
	}
	want = `{
  "apiVersion": "kubectl-sched.github.io/v1alpha1",
  "gates": [
    {
      "namespace": "ml",
      "pod": "train-0",
      "gate": "gates.kubectl-sched.github.io/release",
      "name": "release",
      "ours": true,
      "since": "2026-11-30T10:30:00Z",
      "for": "approval",
      "why": "nobody has approved it"
    }
  ],
  "kind": "GateList"
}
`
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
