package report

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/kubectl-sched/kubectl-sched/internal/apply"
)

// admissionText writes how far admission policies have come: of each policy, how
// many running pods it is for, has placed, and has not.
func admissionText(b *strings.Builder, s *apply.Status) error {
	a := s.Admission
	fmt.Fprintf(b, "\n%s\n", StepLine(a.Step, s.Scope))
	if a.Expires != "" {
		fmt.Fprintf(b, "an exception in it ends on %s; apply again then\n", a.Expires)
	}
	fmt.Fprintf(b, "%s there, %d of them placed by it\n", plural(a.Pods, "running pod"), a.Placed)
	if len(a.Policies) == 0 {
		return nil
	}
	b.WriteByte('\n')
	t := tabwriter.NewWriter(b, 0, 0, 3, ' ', 0)
	last := "PREDATE IT"
	if a.Step.Observe {
		last = "WOULD CHANGE"
	}
	fmt.Fprintf(t, "POLICY\tFOR PODS\tPLACED\t%s\tBY REVISION\n", last)
	for _, p := range a.Policies {
		n := p.Predating
		if a.Step.Observe {
			n = p.Pending
		}
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%s\n", p.Policy, p.Selected, p.PlacedPods(), n, orNone(byRevision(p.Placed)))
	}
	return t.Flush()
}

// byRevision writes counts of pods by revision, the newest first: "4: 12, 3: 1".
func byRevision(pods map[int]int) string {
	var parts []string
	for _, number := range slices.Backward(slices.Sorted(maps.Keys(pods))) {
		name := strconv.Itoa(number)
		if number == 0 {
			name = "older"
		}
		parts = append(parts, fmt.Sprintf("%s: %d", name, pods[number]))
	}
	return strings.Join(parts, ", ")
}

func admissionDocument(a *apply.AdmissionStatus) map[string]any {
	policies := []map[string]any{}
	for _, p := range a.Policies {
		placed := []map[string]any{}
		for _, number := range slices.Backward(slices.Sorted(maps.Keys(p.Placed))) {
			placed = append(placed, map[string]any{"revision": number, "pods": p.Placed[number]})
		}
		policies = append(policies, map[string]any{
			"policy": p.Policy, "selected": p.Selected, "placed": p.PlacedPods(), "byRevision": placed,
			"predating": p.Predating, "pending": p.Pending,
		})
	}
	document := map[string]any{
		"surface": a.Step.Surface, "observe": a.Step.Observe, "content": a.Content,
		"pods": a.Pods, "placed": a.Placed, "policies": policies,
	}
	if a.Expires != "" {
		document["expires"] = a.Expires
	}
	return document
}
